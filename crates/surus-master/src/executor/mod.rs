//! The master at work: it does what the state decides and tells it what has happened.
//!
//! ```text
//!   state ──actions──► act.rs, spawn.rs ──► processes, sockets
//!     ▲                                          │
//!     └────────────events── wait.rs ◄────────────┘
//! ```

mod act;
mod spawn;
mod wait;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use crate::admin::Admin;
use crate::config::Config;
use crate::control::Control;
use crate::notify::Manager;
use crate::process::{unix_time, Process};
use crate::protocol::Stamp;
use crate::state::{Action, Id, Now, Outcome, State};
use crate::status::{Question, Reloads};
use crate::{Listeners, Seat};

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

pub(crate) struct Master<'a> {
    pub(crate) config: &'a Config,
    pub(crate) state: State,
    listeners: Listeners,
    pub(crate) processes: BTreeMap<Id, Process>,
    worker: &'a dyn Fn(Seat) -> i32,
    signals: SignalFd,
    /// The signal mask of workers.
    mask: SigSet,
    pub(crate) started: Instant,
    /// Files for which there was a reload, as they were then (development).
    changes: HashMap<String, Stamp>,
    control: Option<Control>,
    pub(crate) admin: Option<Admin>,
    pub(crate) manager: Manager,
    /// The new master, until it serves.
    upgrade: Option<Pid>,
    /// The same from then on.
    successor: Option<Pid>,
    pub(crate) questions: VecDeque<Question>,
    pub(crate) last_question: u64,
    /// When the workers are looked after next.
    pub(crate) next_look: Option<Now>,
    pub(crate) reloads: Reloads,
}

impl<'a> Master<'a> {
    fn new(
        config: &'a Config,
        listeners: Listeners,
        worker: &'a dyn Fn(Seat) -> i32,
    ) -> io::Result<Self> {
        let signals = [
            Signal::SIGTERM,
            Signal::SIGINT,
            Signal::SIGCHLD,
            Signal::SIGHUP,
            Signal::SIGUSR2,
        ];
        let watched = SigSet::from_iter(signals);
        // Blocked from here on: they arrive through the descriptor, at a place of our choosing. A master that was
        // started by another one has inherited them blocked; its workers must not.
        let mut mask = watched.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        for signal in signals {
            mask.remove(signal);
        }
        let signals =
            SignalFd::with_flags(&watched, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let mut control = config.control.as_ref().and_then(|path| {
            Control::bind(path)
                .inspect_err(|error| {
                    eprintln!("surus: no control socket at {}: {error}", path.display());
                })
                .ok()
        });
        // The name may be the predecessor's, which goes on if this one does not come up.
        if let (Some(control), None) = (&mut control, config.predecessor) {
            control.publish();
        }
        let admin = match config.admin {
            Some(address) => Some(Admin::bind(address, config.predecessor.is_some())?),
            None => None,
        };
        Ok(Master {
            config,
            state: State::new(
                listeners.accepting(),
                listeners.workers() - listeners.accepting(),
                config.drain,
                config.boot,
            ),
            processes: BTreeMap::new(),
            listeners,
            worker,
            signals,
            mask,
            started: Instant::now(),
            changes: HashMap::new(),
            control,
            admin,
            manager: Manager::from_env(),
            upgrade: None,
            successor: None,
            questions: VecDeque::new(),
            last_question: 0,
            next_look: Some(Duration::ZERO),
            reloads: Reloads::new(unix_time()),
        })
    }

    fn run(&mut self, announce: &mut dyn FnMut()) -> io::Result<Outcome> {
        let mut actions = self.state.start(self.started.elapsed());
        loop {
            let mut events = Vec::new();
            for action in actions {
                match action {
                    Action::Announce => {
                        announce();
                        let pid = std::process::id();
                        self.manager.tell(&format!("READY=1\nMAINPID={pid}\n"));
                        if let Some(control) = &mut self.control {
                            control.publish();
                        }
                        if let Some(predecessor) = self.config.predecessor {
                            predecessor.retire();
                        }
                    }
                    Action::Finish(outcome) => return Ok(outcome),
                    action => events.extend(self.act(action)?),
                }
            }
            if events.is_empty() {
                events = self.wait()?;
            }
            actions = Vec::new();
            for event in events {
                let now = self.started.elapsed();
                actions.extend(self.state.on(event, now));
            }
        }
    }
}
