//! What happens to the master, and what it does about it.

use std::fmt;
use std::time::Duration;

use super::Id;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The worker serves.
    Ready(Id),
    /// The application did not boot; the worker is about to exit.
    BootFailed(Id, String),
    Exited(Id, Death),
    Prepared(Id, u64),
    PrepareFailed(Id, u64, String),
    /// The worker serves the new version.
    Committed(Id, u64),
    /// The plain process takes no more requests.
    Retired(Id),
    /// SIGHUP, or a command; files may have changed since the Unix time it carries.
    Reload(u64),
    /// The worker is to be replaced, for this reason.
    Recycle(Id, String),
    /// Its event loop has stood still for too long.
    Stuck(Id, Duration),
    /// SIGUSR2, or a command.
    Upgrade,
    /// The new master did not come up.
    UpgradeFailed(String),
    /// The new master serves.
    TakenOver,
    /// SIGTERM or SIGINT.
    Stop,
    /// A deadline has passed, perhaps.
    Tick,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    Exit(i32),
    Signal(&'static str),
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Death::Exit(code) => write!(f, "exited with {code}"),
            Death::Signal(name) => write!(f, "was killed by {name}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Spawn {
        seat: usize,
        id: Id,
    },
    /// Every worker is ready, for the first time.
    Announce,
    /// The master's copies, so that the kernel sends no more connections their way.
    CloseListeners,
    Terminate(Id),
    /// As [`Action::Terminate`], for a plain process whose successor is there: it takes nothing more from the line.
    Retire(Id),
    Kill(Id),
    Prepare {
        id: Id,
        reload: u64,
        refresh: Option<u64>,
    },
    /// Files may have changed since this Unix time: what is spawned from now on sees to that.
    Refresh(u64),
    Commit(Id, u64),
    Abort(Id, u64, String),
    /// Whoever asked for a reload is told how it went.
    Reloaded(Result<(), String>),
    /// Accept connections for this seat: its own, once every worker is ready, or another worker's.
    Adopt {
        id: Id,
        seat: usize,
    },
    Release {
        id: Id,
        seat: usize,
    },
    StartUpgrade,
    StopUpgrade,
    /// A reload was asked for while the new master, which serves now, booted.
    ReloadSuccessor,
    /// Whoever asked for an upgrade is told how it went.
    Upgraded(Result<(), String>),
    Log(String),
    Finish(Outcome),
}

/// Why the master ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was asked to.
    Stopped,
    /// The application did not boot.
    BootFailed,
    /// A worker died again and again as soon as it was started.
    GaveUp,
}
