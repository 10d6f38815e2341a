//! What a master is told when it starts.

use std::time::Duration;

use serde_json::Value;

use crate::admin::Desk;
use crate::board::Board;
use crate::control::Door;
use crate::identity::Identity;
use crate::look::Recycle;
use crate::upgrade::{Predecessor, Program};

/// How workers are run and replaced, and who may ask what of their master.
#[derive(Clone, Debug)]
pub struct Config {
    /// From SIGTERM to SIGKILL. Longer than the time that workers give their own requests.
    pub drain: Duration,
    /// How long a new version may take to boot in a reload.
    pub boot: Duration,
    /// Where `surus status` and its like find this master.
    pub control: Option<Door>,
    /// A worker whose event loop stands still for longer is killed.
    pub watchdog: Option<Duration>,
    /// When workers are replaced.
    pub recycle: Recycle,
    /// Who workers are; else who the master is.
    pub identity: Option<Identity>,
    /// Where metrics and the dashboard are served.
    pub admin: Option<Desk>,
    /// What workers count.
    pub board: Board,
    /// What SIGUSR2 starts.
    pub program: Program,
    /// The master that this one replaces.
    pub predecessor: Option<Predecessor>,
    /// A version that does not boot is shown to clients (development); else the old one goes on.
    pub shows_errors: bool,
    /// What `status` says of this server in addition to what the master knows.
    pub about: Value,
}
