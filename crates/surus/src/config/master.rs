//! What the master needs to know.

use std::path::PathBuf;
use std::time::Duration;

use surus_master::Recycle;

use super::fill;
use super::tables::Server;
use super::units::{Size, Span};

#[derive(Debug)]
pub(crate) struct Master {
    /// For a new version to boot in a reload.
    pub(crate) boot_timeout: Duration,
    pub(crate) control: Option<PathBuf>,
    pub(crate) watchdog: Option<Duration>,
    pub(crate) recycle: Recycle,
}

pub(super) fn settings(server: &mut Server) -> Master {
    let some = |value: u64| Some(value).filter(|&value| value > 0);
    Master {
        boot_timeout: fill(&mut server.boot_timeout, Span(Duration::from_secs(60))).0,
        control: server.control.clone(),
        watchdog: fill(&mut server.watchdog, Span(Duration::from_secs(60))).limit(),
        recycle: Recycle {
            requests: some(fill(&mut server.max_requests, 0)),
            memory: some(fill(&mut server.max_memory, Size(0)).0),
            age: fill(&mut server.max_age, Span(Duration::ZERO)).limit(),
        },
    }
}
