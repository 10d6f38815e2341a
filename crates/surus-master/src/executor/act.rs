//! Carries out the actions of the state.

use std::io;
use std::os::fd::AsFd;

use nix::sys::signal::{kill, Signal};
use surus_log::Log;

use super::Master;
use crate::control::{outcome, Request};
use crate::protocol::Order;
use crate::state::{Action, Event, Id};

/// Tells a plain process, which waits for a request, to read its orders.
const LOOK: Signal = Signal::SIGUSR1;

impl Master<'_> {
    /// Carries out one action. Returns an event if it has a result at once.
    pub(super) fn act(&mut self, action: Action) -> io::Result<Option<Event>> {
        match action {
            Action::Spawn { seat, id } => return Ok(self.spawn(seat, id)),
            Action::CloseListeners => {
                let leaving = self.companions.leave();
                Self::terminate(&leaving);
                self.admin = None;
                if self.upgrade.is_none() && self.successor.is_none() {
                    self.listeners.remove_files();
                    self.manager.tell("STOPPING=1\n");
                }
                self.listeners.close();
            }
            Action::Terminate(id) => self.signal(id, Signal::SIGTERM),
            Action::Retire(id) => {
                self.order(id, &Order::Retire);
                self.signal(id, LOOK);
            }
            Action::Kill(id) => self.signal(id, Signal::SIGKILL),
            Action::Prepare {
                id,
                reload,
                refresh,
            } => {
                let refresh = refresh.map(|since| since.min(self.reloads.refresh()));
                self.order(id, &Order::Prepare { reload, refresh });
            }
            Action::Refresh(since) => {
                self.reloads.pending = Some(since.min(self.reloads.refresh()));
            }
            Action::Commit(id, reload) => self.order(id, &Order::Commit { reload }),
            Action::Abort(id, reload, error) => self.order(id, &Order::Abort { reload, error }),
            Action::Reloaded(result) => self.reloaded(result),
            Action::Adopt { id, seat } => self.order(id, &Order::Adopt { seat }),
            Action::Release { id, seat } => self.order(id, &Order::Release { seat }),
            Action::StartUpgrade => return Ok(self.start_upgrade()),
            Action::StopUpgrade => {
                if let Some(upgrade) = self.upgrade.take() {
                    let _ = kill(upgrade.pid, Signal::SIGKILL);
                }
            }
            Action::ReloadSuccessor => {
                if let Some(pid) = self.successor {
                    let _ = kill(pid, Signal::SIGHUP);
                }
            }
            Action::Upgraded(result) => {
                if let Some(control) = &mut self.control {
                    if result.is_ok() {
                        control.leave_behind();
                    }
                    control.answer_all(Request::Upgrade, &outcome(result));
                }
            }
            Action::Log(message) if !self.state.announced => {
                if let Some(predecessor) = &self.config.predecessor {
                    predecessor.tell(&message);
                }
                // Whoever starts a server watches its terminal.
                surus_log::complain(format_args!("{message}"));
            }
            Action::Log(message) => surus_log::say!("{message}"),
            Action::Announce | Action::Finish(_) => {}
        }
        Ok(None)
    }

    fn reloaded(&mut self, result: Result<(), String>) {
        match &result {
            Ok(()) => {
                surus_log::say!("reloaded");
                let leaving = self
                    .companions
                    .reload(self.started.elapsed(), self.config.drain);
                Self::terminate(&leaving);
            }
            Err(error) if self.config.shows_errors => {
                surus_log::say!("not reloaded, requests are answered with the error until the code boots: {error}");
            }
            Err(error) => surus_log::say!("not reloaded, the old version keeps running: {error}"),
        }
        self.reloads.note(&result);
        self.reloads.pending = None;
        if self.state.is_reload_continued() {
            return;
        }
        if let Some(control) = &mut self.control {
            control.answer_all(Request::Reload, &outcome(result));
        }
    }

    /// Reopens the log files, which may have been renamed, and passes them to the workers, which may lack the
    /// permission to open them.
    pub(super) fn reopen_logs(&self) {
        for (log, file) in surus_log::reopen() {
            let order = Order::Reopen {
                access: log == Log::Access,
            };
            for process in self.processes.values() {
                process.hand_over(&order, file.as_fd());
                if process.plain {
                    let _ = kill(process.pid, LOOK);
                }
            }
        }
    }

    fn start_upgrade(&mut self) -> Option<Event> {
        let started = self
            .listeners
            .duplicate()
            .and_then(|sockets| self.config.program.start(sockets));
        match started {
            Ok(upgrade) => {
                self.upgrade = Some(upgrade);
                None
            }
            Err(error) => {
                let path = self.config.program.path.display();
                Some(Event::UpgradeFailed(format!("{path}: {error}")))
            }
        }
    }

    fn signal(&self, id: Id, signal: Signal) {
        if let Some(process) = self.processes.get(&id) {
            // The process is not reaped yet, so the id is still its own: ESRCH is impossible, and there is nothing to
            // do about EPERM.
            let _ = kill(process.pid, signal);
        }
    }

    fn order(&mut self, id: Id, order: &Order) {
        if let Some(process) = self.processes.get(&id) {
            process.order(order);
        }
    }
}
