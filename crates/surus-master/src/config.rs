//! The configuration of a master.

use std::time::Duration;

use serde_json::Value;

use crate::admin::Desk;
use crate::board::Board;
use crate::control::Door;
use crate::identity::Identity;
use crate::jobs::JobCounts;
use crate::look::Recycle;
use crate::upgrade::{Predecessor, Program};

/// How workers are run and replaced, and where the master can be reached.
#[derive(Clone, Debug)]
pub struct Config {
    /// Time from SIGTERM to SIGKILL. Longer than the time that workers give their own requests.
    pub drain: Duration,
    /// How long a new version may take to boot in a reload.
    pub boot: Duration,
    /// The control socket, where `surus status` and other commands find this master.
    pub control: Option<Door>,
    /// A worker whose event loop is blocked for longer is killed.
    pub watchdog: Option<Duration>,
    /// When workers are replaced.
    pub recycle: Recycle,
    /// The user of workers; if none, that of the master.
    pub identity: Option<Identity>,
    /// Where metrics and the dashboard are served.
    pub admin: Option<Desk>,
    /// The counters of workers.
    pub board: Board,
    /// The counters of queues.
    pub jobs: JobCounts,
    /// Processes that do not listen start when a worker asks for them ([`Report::Wake`](crate::Report::Wake)), and the
    /// server does not end because of them, however they die.
    pub on_demand: bool,
    /// The program that SIGUSR2 starts.
    pub program: Program,
    /// The master that this one replaces.
    pub predecessor: Option<Predecessor>,
    /// If a new version does not boot, clients see the error (development); otherwise the old version keeps serving.
    pub shows_errors: bool,
    /// Facts about this server for `status`, in addition to what the master knows.
    pub about: Value,
    /// The present state of memory that all workers share, as `status` has it under `shared_memory`.
    pub shared_memory: fn() -> Value,
}
