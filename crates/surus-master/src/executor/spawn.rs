//! Starts workers.

use std::io;
use std::os::unix::net::UnixStream;
use std::panic::{catch_unwind, AssertUnwindSafe};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{getpid, getppid, ForkResult, Pid};
use surus_log::{Writer, LAST_LINES};

use super::Master;
use crate::fork::fork;
use crate::identity::Identity;
use crate::process::Process;
use crate::protocol::Report;
use crate::seat::Channel;
use crate::state::{Death, Event, Id};
use crate::Seat;

/// Exit code of a worker that panicked outside of a request, the same as that of Rust's runtime.
pub(super) const PANICKED: i32 = 101;

impl Master<'_> {
    /// Returns the end of a process that the system could not start.
    pub(super) fn spawn(&mut self, seat: usize, id: Id) -> Option<Event> {
        let error = self.try_spawn(seat, id).err()?;
        let why = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
        Some(Event::Exited(id, Death::NotStarted(why)))
    }

    fn try_spawn(&mut self, seat: usize, id: Id) -> io::Result<()> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let master = getpid();
        match fork()? {
            ForkResult::Parent { child } => {
                self.processes
                    .insert(id, Process::new(child, ours, self.state.seats[seat].plain));
                Ok(())
            }
            ForkResult::Child => {
                drop(ours);
                std::process::exit(self.live(seat, theirs, master))
            }
        }
    }

    /// Runs in the child.
    fn live(&mut self, index: usize, channel: UnixStream, master: Pid) -> i32 {
        if let Err(error) = self.become_child(master) {
            let error = error.to_string();
            Channel::new(channel).send(&Report::BootFailed { error });
            return PANICKED;
        }
        let (listeners, held) = self.listeners.take();
        let refresh = self.reloads.pending;
        let seat = Seat {
            index,
            listeners,
            held,
            refresh,
            tally: self.config.board.tally(index),
            master: Channel::new(channel),
        };
        guarded(|| (self.worker)(seat))
    }

    /// In the child: leaves all that is the master's.
    pub(super) fn become_child(&mut self, master: Pid) -> io::Result<()> {
        let identity = self.config.identity.as_ref();
        identity.map_or(Ok(()), Identity::assume).map_err(|error| {
            io::Error::other(format!(
                "cannot become the user that workers run as: {error}"
            ))
        })?;
        surus_log::set_writer(Writer::Thread);
        // It must not outlive its master, however the master dies. If it died before this call, there is no signal.
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        if getppid() != master {
            return Err(io::Error::other("the master has exited"));
        }
        // Close the other workers' channels: if they stayed open here, they would never end.
        self.processes.clear();
        self.printed.clear();
        if let Some(control) = self.control.take() {
            control.forget();
        }
        self.admin = None;
        self.mask.thread_set_mask()?;
        Ok(())
    }
}

/// Runs what a child does; returns its exit code.
pub(super) fn guarded(run: impl FnOnce() -> i32) -> i32 {
    let code = catch_unwind(AssertUnwindSafe(run)).unwrap_or(PANICKED);
    surus_log::finish(LAST_LINES);
    code
}
