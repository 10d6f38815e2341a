//! The master's part of the configuration.

use std::path::PathBuf;
use std::time::Duration;

use surus_master::{Address, Desk, Identity, Recycle};

use super::list::Listen;
use super::tables::Server;
use super::units::{Size, Span};
use super::wrong::Wrong;
use super::{fill, positive, ConfigError};

#[derive(Debug)]
pub(crate) struct Master {
    /// How long a new version may take to boot in a reload.
    pub(crate) boot_timeout: Duration,
    pub(crate) control: Option<PathBuf>,
    pub(crate) watchdog: Option<Duration>,
    pub(crate) recycle: Recycle,
    pub(crate) identity: Option<Identity>,
    pub(crate) admin: Option<Desk>,
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
    let admin = admin(server, wrong);
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

/// Minimum number of characters of a token, so that it cannot be guessed.
const LONG_ENOUGH: usize = 16;

fn admin(server: &Server, wrong: &mut Wrong) -> Option<Desk> {
    let token = server.admin_token.clone();
    if let Some(token) = &token {
        let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
        if token.len() < LONG_ENOUGH || !is_plain {
            wrong.note(
                "server.admin_token",
                format!(
                    "admin_token: at least {LONG_ENOUGH} printable ASCII characters without spaces, such as \
                     `openssl rand -hex 16` prints"
                ),
            );
        }
        if server.admin.is_none() {
            wrong.note(
                "server.admin_token",
                "admin_token needs admin, the address that it is for",
            );
        }
    }
    let text = server.admin.as_ref()?;
    let found = super::addresses(&Listen::One(text.clone()));
    let found = wrong.take_of("server.admin", found)?;
    let Some(address) = found.first().and_then(Address::tcp) else {
        wrong.note(
            "server.admin",
            "admin: not ADDRESS:PORT: it is for browsers",
        );
        return None;
    };
    if token.is_none() && !address.ip().to_canonical().is_loopback() {
        wrong.note(
            "server.admin",
            format!(
                "admin: {address} can be reached from elsewhere: set admin_token (SURUS_ADMIN_TOKEN), or listen on \
                 127.0.0.1"
            ),
        );
    }
    Some(Desk { address, token })
}
