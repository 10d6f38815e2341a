//! What is configured for one Pusher application.

use std::fmt;
use std::time::Duration;

use surus_channels::{Keep, Rules};

use crate::names::CACHES;
use crate::signature;

/// Bytes of the longest prefix.
pub const LONGEST_PREFIX: usize = 32;

/// What is kept of a channel whose last event is for those who come later. What else PHP publishes there takes room, too.
const KEPT: Keep = Keep {
    messages: 8,
    ttl: Duration::from_secs(30 * 60),
};

/// Credentials and bounds of an application. Its channels are its own: two applications share none.
#[derive(Clone, PartialEq, Eq)]
pub struct App {
    /// In the paths of the HTTP API.
    pub id: String,
    /// Public: clients connect with it.
    pub key: String,
    /// Signs what clients and servers may do.
    pub secret: String,
    /// Before the names of its channels, where all channels of the server are: "", or a text with a slash at its end, which no
    /// channel of clients has in its name. No other application has it.
    pub prefix: String,
    /// Whether clients may send `client-` events.
    pub client_events: bool,
    /// Connections of one worker.
    pub max_connections: usize,
    /// Channels of one connection.
    pub max_channels: usize,
    /// Bytes of the data of one event.
    pub max_event: usize,
}

impl fmt::Debug for App {
    // Without the secret: this may be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("id", &self.id)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl App {
    /// Adds which of its channels have a history: those whose last event is for newcomers.
    pub fn add_rules(&self, rules: &mut Rules) {
        for prefix in CACHES {
            rules.add(&format!("{}{prefix}*", self.prefix), Some(KEPT));
        }
    }

    /// The signature of a text with the secret, in hexadecimal digits.
    #[must_use]
    pub fn sign(&self, text: &[u8]) -> String {
        signature::sign(&self.secret, text)
    }

    /// The name of a channel among all of the server.
    pub(crate) fn place(&self, channel: &str) -> String {
        [&self.prefix, channel].concat()
    }
}
