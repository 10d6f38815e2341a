//! What the master needs to know.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use surus_master::{Identity, Recycle};

use super::tables::{Listen, Server};
use super::units::{Size, Span};
use super::wrong::Wrong;
use super::{fill, positive, ConfigError};

#[derive(Debug)]
pub(crate) struct Master {
    /// For a new version to boot in a reload.
    pub(crate) boot_timeout: Duration,
    pub(crate) control: Option<PathBuf>,
    pub(crate) watchdog: Option<Duration>,
    pub(crate) recycle: Recycle,
    pub(crate) identity: Option<Identity>,
    pub(crate) admin: Option<SocketAddr>,
}

pub(super) fn settings(server: &mut Server, wrong: &mut Wrong) -> Master {
    let identity = match (&server.user, &server.group) {
        (Some(user), group) => {
            let found = Identity::find(user, group.as_deref()).map_err(ConfigError::new);
            wrong.take_of("server.user", found)
        }
        (None, Some(_)) => {
            wrong.note("server.group", "group needs a user");
            None
        }
        (None, None) => None,
    };
    let admin = server.admin.as_ref().and_then(|text| {
        let found = super::addresses(&Listen::One(text.clone()));
        wrong.take_of("server.admin", found)?.first().copied()
    });
    Master {
        identity,
        admin,
        boot_timeout: fill(&mut server.boot_timeout, Span(Duration::from_secs(60))).0,
        control: server.control.clone(),
        watchdog: fill(&mut server.watchdog, Span(Duration::from_secs(60))).limit(),
        recycle: Recycle {
            requests: positive(fill(&mut server.max_requests, 0)),
            memory: positive(fill(&mut server.max_memory, Size(0)).0),
            age: fill(&mut server.max_age, Span(Duration::ZERO)).limit(),
        },
    }
}
