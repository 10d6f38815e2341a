//! Carries decisions out: the only place that forks, signals and waits.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::prctl;
use nix::sys::signal::{kill, SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::{getpid, getppid, ForkResult, Pid};

use crate::fork::fork;
use crate::seat::{FAILED, READY};
use crate::state::{Action, Death, Event, Outcome, State};
use crate::{Listeners, Seat};

#[derive(Clone, Debug)]
pub struct Config {
    /// From SIGTERM to SIGKILL. Longer than the time that workers give their own requests.
    pub drain: Duration,
}

/// Exit code of a worker that panicked outside of a request, as Rust's runtime has it.
const PANICKED: i32 = 101;

/// Forks one worker per seat and keeps them running until a signal ends it all.
///
/// `worker` is a worker's whole life: it runs in the child, which exits with the code it returns. `announce` is called
/// once, when every worker is ready. This returns in the master only.
pub fn run(
    config: &Config,
    listeners: Listeners,
    worker: &dyn Fn(Seat) -> i32,
    announce: &mut dyn FnMut(),
) -> io::Result<Outcome> {
    let mut master = Master::new(config, listeners, worker)?;
    let outcome = master.run(announce);
    master.mask.thread_set_mask()?;
    outcome
}

struct Process {
    pid: Pid,
    /// `None` once the worker has reported.
    report: Option<UnixStream>,
    received: Vec<u8>,
}

struct Master<'a> {
    state: State,
    listeners: Listeners,
    processes: Vec<Option<Process>>,
    worker: &'a dyn Fn(Seat) -> i32,
    signals: SignalFd,
    /// The signal mask from before, which workers get back.
    mask: SigSet,
    started: Instant,
}

impl<'a> Master<'a> {
    fn new(
        config: &Config,
        listeners: Listeners,
        worker: &'a dyn Fn(Seat) -> i32,
    ) -> io::Result<Self> {
        let watched = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGCHLD]);
        // Blocked from here on: they arrive through the descriptor, at a place of our choosing.
        let mask = watched.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let signals =
            SignalFd::with_flags(&watched, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Master {
            state: State::new(listeners.workers(), config.drain),
            processes: (0..listeners.workers()).map(|_| None).collect(),
            listeners,
            worker,
            signals,
            mask,
            started: Instant::now(),
        })
    }

    fn run(&mut self, announce: &mut dyn FnMut()) -> io::Result<Outcome> {
        let mut actions = self.state.start(self.started.elapsed());
        loop {
            for action in actions {
                match action {
                    Action::Spawn(index) => self.spawn(index)?,
                    Action::Announce => announce(),
                    Action::CloseListeners => self.listeners.close(),
                    Action::Terminate(index) => self.signal(index, Signal::SIGTERM),
                    Action::Kill(index) => self.signal(index, Signal::SIGKILL),
                    Action::Log(message) => eprintln!("surus: {message}"),
                    Action::Finish(outcome) => return Ok(outcome),
                }
            }
            actions = Vec::new();
            for event in self.wait()? {
                let now = self.started.elapsed();
                actions.extend(self.state.on(event, now));
            }
        }
    }

    /// Sleeps until something has happened.
    fn wait(&mut self) -> io::Result<Vec<Event>> {
        let timeout = match self.state.deadline() {
            // Rounded up, or the last fraction of a millisecond would be spent spinning.
            Some(at) => {
                let left = at.saturating_sub(self.started.elapsed());
                PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
            }
            None => PollTimeout::NONE,
        };
        let mut fds = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        let reports = self
            .processes
            .iter()
            .flatten()
            .filter_map(|process| process.report.as_ref());
        fds.extend(reports.map(|report| PollFd::new(report.as_fd(), PollFlags::POLLIN)));
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut events = Vec::new();
        let mut stop = false;
        let mut deaths = false;
        while let Some(signal) = self.signals.read_signal()? {
            if signal.ssi_signo == Signal::SIGCHLD as u32 {
                deaths = true;
            } else {
                stop = true;
            }
        }
        // The order matters. Reports before deaths: a worker that could not boot says why, and then exits. The signal
        // to stop before deaths: workers may have got it as well, from a terminal or a service manager.
        self.read_reports(&mut events);
        if stop {
            events.push(Event::Stop);
        }
        if deaths {
            self.reap(&mut events)?;
        }
        events.push(Event::Tick);
        Ok(events)
    }

    fn read_reports(&mut self, events: &mut Vec<Event>) {
        for (index, process) in self.processes.iter_mut().enumerate() {
            let Some(process) = process else { continue };
            let Some(mut report) = process.report.as_ref() else {
                continue;
            };
            match report.read_to_end(&mut process.received) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                // A worker that is gone says no more than it has said.
                Ok(_) | Err(_) => {}
            }
            process.report = None;
            match process.received.split_first() {
                Some((&READY, _)) => events.push(Event::Ready(index)),
                Some((&FAILED, text)) => {
                    events.push(Event::BootFailed(
                        index,
                        String::from_utf8_lossy(text).into_owned(),
                    ));
                }
                _ => {}
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
            let of = |process: &Option<Process>| {
                process.as_ref().is_some_and(|process| process.pid == pid)
            };
            if let Some(index) = self.processes.iter().position(of) {
                self.processes[index] = None;
                events.push(Event::Exited(index, death));
            }
        }
    }

    fn signal(&self, index: usize, signal: Signal) {
        if let Some(process) = &self.processes[index] {
            // Not reaped yet, so the number is still its own; ESRCH cannot be, and EPERM would be nothing to act on.
            let _ = kill(process.pid, signal);
        }
    }

    fn spawn(&mut self, index: usize) -> io::Result<()> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let master = getpid();
        match fork()? {
            ForkResult::Parent { child } => {
                self.processes[index] = Some(Process {
                    pid: child,
                    report: Some(ours),
                    received: Vec::new(),
                });
                Ok(())
            }
            ForkResult::Child => {
                drop(ours);
                std::process::exit(self.live(index, theirs, master))
            }
        }
    }

    /// In the child.
    fn live(&mut self, index: usize, report: UnixStream, master: Pid) -> i32 {
        // A worker must not outlive its master, however that one dies. If it died before this call, nothing will come.
        if prctl::set_pdeathsig(Signal::SIGKILL).is_err() || getppid() != master {
            return PANICKED;
        }
        // The other workers' reports: held open here, they would never end.
        self.processes.clear();
        if self.mask.thread_set_mask().is_err() {
            return PANICKED;
        }
        let (listeners, held) = self.listeners.take(index);
        let seat = Seat {
            index,
            listeners,
            held,
            report: Some(report),
        };
        catch_unwind(AssertUnwindSafe(|| (self.worker)(seat))).unwrap_or(PANICKED)
    }
}
