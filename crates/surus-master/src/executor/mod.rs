//! The running master: it carries out what the state decides, and reports events to it.
//!
//! ```text
//!   state ──actions──► act.rs, spawn.rs ──► processes, sockets
//!     ▲                                          │
//!     └────────────events── wait.rs ◄────────────┘
//! ```

mod act;
mod companions;
mod spawn;
mod wait;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use crate::admin::Admin;
use crate::companions::{Companion, Companions, Outputs};
use crate::config::Config;
use crate::control::{Control, Door};
use crate::listen::BindError;
use crate::notify::Manager;
use crate::process::{unix_time, Process};
use crate::protocol::Stamp;
use crate::state::{Action, Id, Now, Outcome, State};
use crate::status::{Question, Reloads};
use crate::upgrade::{Predecessor, Upgrade};
use crate::{Listeners, Seat};

/// Forks one worker per seat and keeps them running until a signal ends the server.
///
/// `worker` is everything that a worker does: it runs in the child, which exits with the code it returns. `announce` is
/// called once, when every worker is ready; `companions` run beside the workers. This function returns only in the master.
pub fn run(
    config: &Config,
    listeners: Listeners,
    worker: &dyn Fn(Seat) -> i32,
    companions: Vec<Companion<'_>>,
    announce: &mut dyn FnMut(),
) -> Result<Outcome, Failure> {
    let mut master = Master::new(config, listeners, worker)?;
    master.companions = Companions::new(companions);
    let outcome = master.run(announce);
    master.end_companions();
    master.mask.thread_set_mask().map_err(io::Error::from)?;
    Ok(outcome?)
}

/// Why the master could not start or run.
#[derive(Debug)]
pub enum Failure {
    /// Another server has the control socket, or it cannot be created.
    Control(PathBuf, io::Error),
    /// The admin listener cannot be bound.
    Admin(BindError),
    /// An error of the operating system.
    System(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::System(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Control(path, error) => {
                let path = path.display();
                write!(
                    f,
                    "no control socket at {path}: {error} (`control` takes another path)"
                )
            }
            Failure::Admin(error) => write!(f, "admin: {error}"),
            Failure::System(error) => write!(f, "the master failed: {error}"),
        }
    }
}

impl std::error::Error for Failure {}

/// Opens the control socket; `None` if that is not possible and the socket is not required.
fn open(door: &Door, predecessor: Option<&Predecessor>) -> Result<Option<Control>, Failure> {
    let opened =
        Control::bind(door, predecessor.and_then(Predecessor::pid)).and_then(|mut control| {
            // The predecessor may have the name, and it continues if this server does not start.
            if predecessor.is_none() {
                control.publish()?;
            }
            Ok(control)
        });
    match opened {
        Ok(control) => Ok(Some(control)),
        Err(error) if door.required => Err(Failure::Control(door.path.clone(), error)),
        Err(error) => {
            surus_log::say!(
                "no control socket at {}: {error}; `surus status`, `reload` and `stop` will not find this \
                 server (`control` takes another path)",
                door.path.display()
            );
            Ok(None)
        }
    }
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
    /// Files whose changes have caused a reload, with their state at that time (development).
    changes: HashMap<String, Stamp>,
    control: Option<Control>,
    pub(crate) admin: Option<Admin>,
    pub(crate) manager: Manager,
    /// The new master, until it serves.
    upgrade: Option<Upgrade>,
    /// The same from then on.
    successor: Option<Pid>,
    pub(crate) questions: VecDeque<Question>,
    pub(crate) last_question: u64,
    /// When the workers are checked next.
    pub(crate) next_look: Option<Now>,
    pub(crate) reloads: Reloads,
    pub(crate) companions: Companions<'a>,
    /// What they print.
    pub(crate) printed: Outputs,
}

impl<'a> Master<'a> {
    fn new(
        config: &'a Config,
        listeners: Listeners,
        worker: &'a dyn Fn(Seat) -> i32,
    ) -> Result<Self, Failure> {
        let signals = [
            Signal::SIGTERM,
            Signal::SIGINT,
            Signal::SIGCHLD,
            Signal::SIGHUP,
            Signal::SIGUSR1,
            Signal::SIGUSR2,
            Signal::SIGQUIT,
        ];
        let watched = SigSet::from_iter(signals);
        // Blocked from here on: they are read from the descriptor, at a defined point. A master that was started by
        // another one has inherited the blocked signals; its workers must not.
        let mut mask = watched
            .thread_swap_mask(SigmaskHow::SIG_BLOCK)
            .map_err(io::Error::from)?;
        for signal in signals {
            mask.remove(signal);
        }
        let signals =
            SignalFd::with_flags(&watched, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
                .map_err(io::Error::from)?;
        let control = match &config.control {
            Some(door) => open(door, config.predecessor.as_ref())?,
            None => None,
        };
        let admin = match &config.admin {
            Some(desk) => {
                let bound = Admin::bind(desk, config.predecessor.is_some());
                let wrong = |error| Failure::Admin(BindError::of_admin(desk.address, error));
                Some(bound.map_err(wrong)?)
            }
            None => None,
        };
        Ok(Master {
            config,
            state: State::new(
                listeners.accepting(),
                listeners.workers() - listeners.accepting(),
                config.drain,
                config.boot,
            )
            .with_plain_on_demand(config.on_demand),
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
            companions: Companions::new(Vec::new()),
            printed: Outputs::default(),
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
                        self.companions.begin(self.started.elapsed());
                        let pid = std::process::id();
                        self.manager.tell(&format!("READY=1\nMAINPID={pid}\n"));
                        if let Some(control) = &mut self.control {
                            if let Err(error) = control.publish() {
                                surus_log::say!("no control socket: {error}");
                                self.control = None;
                            }
                        }
                        if let Some(predecessor) = &self.config.predecessor {
                            predecessor.retire();
                        }
                    }
                    Action::Finish(outcome) => return Ok(outcome),
                    action => events.extend(self.act(action)?),
                }
            }
            if events.is_empty() {
                self.start_companions();
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
