//! Starts and ends the processes that serve no requests.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::{getpid, ForkResult, Pid};

use surus_log::Log;

use super::Master;
use crate::companions::Printed;
use crate::fork::fork;
use crate::state::Death;

/// How long they have to end when no worker is left.
const GRACE: Duration = Duration::from_secs(10);

impl Master<'_> {
    /// Starts those that are due, and kills those that do not end. One that the system cannot start is tried again later.
    pub(super) fn start_companions(&mut self) {
        for (pid, message) in self.companions.late(self.started.elapsed()) {
            surus_log::say!("{message}");
            // Not reaped yet: the id is still its own.
            let _ = kill(pid, Signal::SIGKILL);
        }
        loop {
            let now = self.started.elapsed();
            let Some(index) = self.companions.next(now) else {
                return;
            };
            if let Err(error) = self.start_companion(index) {
                let said = self
                    .companions
                    .refused(index, Death::NotStarted(error), now);
                if let Some(message) = said {
                    surus_log::say!("{message}");
                }
            }
        }
    }

    fn start_companion(&mut self, index: usize) -> nix::Result<()> {
        let pipe = match surus_log::is_file(Log::Error) {
            true => Some(Printed::new()?),
            false => None,
        };
        let (ours, theirs) = pipe.unzip();
        let master = getpid();
        match fork()? {
            ForkResult::Parent { child } => {
                self.companions
                    .started(index, child, self.started.elapsed());
                if let Some(ours) = ours {
                    self.printed.add(ours, child);
                }
                Ok(())
            }
            ForkResult::Child => {
                drop(ours);
                std::process::exit(self.live_as_companion(index, theirs, master))
            }
        }
    }

    fn live_as_companion(&mut self, index: usize, log: Option<OwnedFd>, master: Pid) -> i32 {
        if let Err(error) = self.become_child(master) {
            surus_log::say!("{error}");
            return super::spawn::PANICKED;
        }
        if let Some(log) = log {
            surus_log::adopt(Log::Error, log);
        }
        self.listeners.close();
        super::spawn::guarded(|| self.companions.run(index))
    }

    /// What companions have printed goes to the error log.
    pub(super) fn pass_printed(&mut self) {
        self.printed
            .pass(|lines| surus_log::write(Log::Error, lines));
    }

    /// Whether it was one of them that has ended.
    pub(super) fn companion_exited(&mut self, pid: Pid, death: Death) -> bool {
        let now = self.started.elapsed();
        let Some(message) = self.companions.exited(pid, death, now) else {
            return false;
        };
        self.printed.ended(pid);
        if !message.is_empty() {
            surus_log::say!("{message}");
        }
        true
    }

    /// Tells these to end.
    pub(super) fn terminate(pids: &[Pid]) {
        for &pid in pids {
            // Not reaped yet: the id is still its own.
            let _ = kill(pid, Signal::SIGTERM);
        }
    }

    /// Returns when all have ended: no worker needs them any more.
    pub(super) fn end_companions(&mut self) {
        let pids = self.companions.end();
        Self::terminate(&pids);
        let deadline = Instant::now() + GRACE;
        let mut is_killed = false;
        while !self.companions.is_empty() {
            self.pass_printed();
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => {
                    _ = self.companion_exited(pid, Death::Exit(code))
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) => {
                    self.companion_exited(pid, Death::Signal(signal.as_str()));
                }
                Err(Errno::ECHILD) => break,
                _ => std::thread::sleep(Duration::from_millis(2)),
            }
            if Instant::now() >= deadline && !is_killed {
                is_killed = true;
                // Those that are left: the id of one that was reaped may be another process's by now.
                for pid in self.companions.end() {
                    let _ = kill(pid, Signal::SIGKILL);
                }
            }
        }
        self.pass_printed();
    }
}
