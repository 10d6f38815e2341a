//! Starts and ends the processes that serve no requests.

use std::io;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::{getpid, ForkResult, Pid};

use super::Master;
use crate::fork::fork;
use crate::state::Death;

/// How long they have to end when no worker is left.
const GRACE: Duration = Duration::from_secs(10);

impl Master<'_> {
    /// Starts those that are due.
    pub(super) fn start_companions(&mut self) -> io::Result<()> {
        loop {
            let now = self.started.elapsed();
            let Some(index) = self.companions.next(now) else {
                return Ok(());
            };
            let master = getpid();
            match fork()? {
                ForkResult::Parent { child } => self.companions.started(index, child, now),
                ForkResult::Child => std::process::exit(self.live_as_companion(index, master)),
            }
        }
    }

    fn live_as_companion(&mut self, index: usize, master: Pid) -> i32 {
        if let Err(error) = self.become_child(master) {
            surus_log::say!("{error}");
            return super::spawn::PANICKED;
        }
        self.listeners.close();
        super::spawn::guarded(|| self.companions.run(index))
    }

    /// Whether it was one of them that has ended.
    pub(super) fn companion_exited(&mut self, pid: Pid, death: Death) -> bool {
        let now = self.started.elapsed();
        let Some(message) = self.companions.exited(pid, death, now) else {
            return false;
        };
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
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => {
                    _ = self.companion_exited(pid, Death::Exit(code))
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) => {
                    self.companion_exited(pid, Death::Signal(signal.as_str()));
                }
                Err(Errno::ECHILD) => return,
                _ => std::thread::sleep(Duration::from_millis(2)),
            }
            if Instant::now() >= deadline && !is_killed {
                is_killed = true;
                for &pid in &pids {
                    let _ = kill(pid, Signal::SIGKILL);
                }
            }
        }
    }
}
