//! Events that the master handles, and the actions that it takes.

use std::fmt;
use std::time::Duration;

use nix::errno::Errno;

use super::Id;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The worker is ready.
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
    /// Plain processes are needed that start on demand.
    Wake,
    /// SIGHUP, or a command; files may have changed since this Unix time.
    Reload(u64),
    /// The worker is to be replaced, for this reason.
    Recycle(Id, String),
    /// Its event loop was blocked for too long.
    Stuck(Id, Duration),
    /// SIGUSR2, or a command.
    Upgrade,
    /// The new master did not start.
    UpgradeFailed(String),
    /// The new master serves.
    TakenOver,
    /// SIGTERM or SIGINT.
    Stop,
    /// A deadline may have passed.
    Tick,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    Exit(i32),
    Signal(&'static str),
    /// The system could not start it.
    NotStarted(Errno),
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Death::Exit(code) => write!(f, "exited with {code}"),
            Death::Signal(name) => write!(f, "was killed by {name}"),
            Death::NotStarted(why) => write!(f, "could not be started: {}", why.desc()),
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
    /// Close the master's copies, so that the kernel assigns no more connections to them.
    CloseListeners,
    Terminate(Id),
    /// As [`Action::Terminate`], for a plain process whose successor is ready: it takes no more requests from the
    /// queue.
    Retire(Id),
    Kill(Id),
    Prepare {
        id: Id,
        reload: u64,
        refresh: Option<u64>,
    },
    /// Files may have changed since this Unix time: processes spawned during the reload invalidate them in OPcache.
    Refresh(u64),
    Commit(Id, u64),
    Abort(Id, u64, String),
    /// Reports the result of a reload to those who requested it.
    Reloaded(Result<(), String>),
    /// Accept connections for this seat: the worker's own, once every worker is ready, or that of another worker.
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
    /// A reload was requested while the new master, which serves now, was booting.
    ReloadSuccessor,
    /// Reports the result of an upgrade to those who requested it.
    Upgraded(Result<(), String>),
    Log(String),
    Finish(Outcome),
}

/// Why the master ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// On request.
    Stopped,
    /// The application did not boot.
    BootFailed,
    /// A worker died again and again as soon as it was started.
    GaveUp,
}
