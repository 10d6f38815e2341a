//! Waits with one `poll` for everything that can happen, and returns it as events for the state.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::Signal;
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};

use super::Master;
use crate::admin::Admin;
use crate::control::{outcome, Control, Request};
use crate::process::Process;
use crate::protocol::Report;
use crate::state::{Death, Event, Id};
use crate::status::{Asker, Question};

impl Master<'_> {
    /// Sleeps until something happens.
    pub(super) fn wait(&mut self) -> io::Result<Vec<Event>> {
        let next = [
            self.state.deadline(),
            self.question_due(),
            self.next_look,
            self.clients_due(),
            self.companions.due(),
        ];
        let timeout = match next.into_iter().flatten().min() {
            // Rounded up, because otherwise the last fraction of a millisecond would be a busy loop.
            Some(at) => {
                let left = at.saturating_sub(self.started.elapsed());
                PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
            }
            None => PollTimeout::NONE,
        };
        let mut fds = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        let channels = self.processes.values().filter_map(Process::channel);
        fds.extend(channels.map(|channel| PollFd::new(channel.as_fd(), PollFlags::POLLIN)));
        let control = self.control.iter().flat_map(Control::descriptors);
        let admin = self.admin.iter().flat_map(Admin::descriptors);
        fds.extend(control);
        fds.extend(admin);
        let printed = self.printed.descriptors();
        fds.extend(printed.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        let stuck = surus_log::stuck();
        fds.extend(
            stuck
                .iter()
                .map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLOUT)),
        );
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        drop(fds);
        self.pass_printed();
        if !stuck.is_empty() {
            surus_log::flush();
        }
        let mut events = Vec::new();
        let mut stop = false;
        let mut deaths = false;
        while let Some(signal) = self.signals.read_signal()? {
            match Signal::try_from(signal.ssi_signo as i32) {
                Ok(Signal::SIGCHLD) => deaths = true,
                // Scripts that rotate logs send one or the other.
                Ok(Signal::SIGHUP) => {
                    self.reopen_logs();
                    events.push(Event::Reload(u64::MAX));
                }
                Ok(Signal::SIGUSR1) => self.reopen_logs(),
                Ok(Signal::SIGUSR2) => events.push(Event::Upgrade),
                _ if self.is_successor(signal.ssi_pid) => {
                    self.successor = self.upgrade.take().map(|upgrade| upgrade.pid);
                    self.companions.taken_over();
                    events.push(Event::TakenOver);
                }
                _ => stop = true,
            }
        }
        // The order matters. Reports before deaths: a worker that could not boot says why, and then exits. The signal
        // to stop before deaths: workers may have got it as well, from a terminal or a service manager.
        self.read_reports(&mut events);
        self.read_control(&mut events);
        self.read_admin();
        if stop {
            events.push(Event::Stop);
        }
        if deaths {
            self.reap(&mut events)?;
        }
        self.look_after_workers(&mut events);
        self.ask_workers();
        self.answer_questions();
        events.push(Event::Tick);
        Ok(events)
    }

    fn is_successor(&self, pid: u32) -> bool {
        self.upgrade
            .as_ref()
            .is_some_and(|upgrade| i32::try_from(pid) == Ok(upgrade.pid.as_raw()))
    }

    /// When the time of the next client is over that the master waits for.
    fn clients_due(&self) -> Option<Duration> {
        let control = self.control.as_ref().and_then(Control::due);
        let admin = self.admin.as_ref().and_then(Admin::due);
        let at = control.into_iter().chain(admin).min()?;
        Some(at.saturating_duration_since(self.started))
    }

    fn read_reports(&mut self, events: &mut Vec<Event>) {
        let now = self.started.elapsed();
        for (&id, process) in &mut self.processes {
            for report in process.reports() {
                match report {
                    Report::Ready => events.push(Event::Ready(id)),
                    Report::BootFailed { error } => events.push(Event::BootFailed(id, error)),
                    Report::Prepared { reload } => events.push(Event::Prepared(id, reload)),
                    Report::PrepareFailed { reload, error } => {
                        events.push(Event::PrepareFailed(id, reload, error));
                    }
                    Report::Committed { reload } => events.push(Event::Committed(id, reload)),
                    Report::Retired => events.push(Event::Retired(id)),
                    Report::Wake => events.push(Event::Wake),
                    Report::Summon { name } => self.companions.summon(&name, now),
                    Report::Status { question, status } => process.answered(question, status, now),
                    Report::Worn { why } => events.push(Event::Recycle(id, why)),
                    // Its successor has already read the new file.
                    Report::Changed { .. } if self.state.is_leaving(id) => {}
                    Report::Changed { file, stamp } => {
                        // Every worker reports the change, but one reload is enough.
                        if self.changes.get(&file) != Some(&stamp) {
                            surus_log::say!("{file} has changed");
                            events.push(Event::Reload(u64::MAX));
                            self.changes.insert(file, stamp);
                        }
                    }
                }
            }
        }
    }

    fn read_control(&mut self, events: &mut Vec<Event>) {
        let Some(control) = &mut self.control else {
            return;
        };
        for (client, request) in control.read() {
            match request {
                Request::Reload => events.push(Event::Reload(u64::MAX)),
                Request::Upgrade => events.push(Event::Upgrade),
                Request::Stop => {
                    events.push(Event::Stop);
                    control.answer(client, &outcome(Ok(())));
                }
                Request::Status => {
                    self.questions
                        .push_back(Question::new(Asker::Control(client)));
                }
            }
        }
    }

    /// Answers the clients whose question every worker has answered, or had the time to answer.
    fn answer_questions(&mut self) {
        while let Some(asker) = self.answerable() {
            let status = self.status();
            match asker {
                Asker::Control(client) => {
                    if let Some(control) = &mut self.control {
                        control.answer(client, &status);
                    }
                }
                Asker::Admin(client, page) => self.answer_admin(client, page, &status),
            }
        }
    }

    fn reap(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        loop {
            let (pid, death) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, Death::Exit(code)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, Death::Signal(signal.as_str())),
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(()),
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if self
                .upgrade
                .as_ref()
                .is_some_and(|upgrade| upgrade.pid == pid)
            {
                let why = self.upgrade.take().map(|upgrade| upgrade.reason());
                let why = why.filter(|why| !why.is_empty()).map_or_else(
                    || format!("it {death}; its last messages are in the log"),
                    |why| format!("it {death}: {why}"),
                );
                events.push(Event::UpgradeFailed(why));
                continue;
            }
            if self.companion_exited(pid, death) {
                continue;
            }
            let of = |(_, process): &(&Id, &Process)| process.pid == pid;
            if let Some((&id, _)) = self.processes.iter().find(of) {
                self.processes.remove(&id);
                events.push(Event::Exited(id, death));
            }
        }
    }
}
