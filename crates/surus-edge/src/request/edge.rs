//! What the connections of one worker share.

use std::cell::Cell;
use std::rc::Rc;

use crate::connection::flusher::Flusher;
use crate::connection::timeouts::Table;
use crate::limits::connections_per_address::{ConnectionsPerAddress, CountedConnection};
use crate::log::refusal::{Refusal, Refused};
use crate::log::throttled::Throttled;
use crate::{Backend, Limits, Peer, Settings};

/// What the connections of one worker share.
#[derive(Debug)]
pub struct Edge<B> {
    /// Answers requests.
    pub backend: Rc<B>,
    /// The limits of clients.
    pub limits: Limits,
    /// What the edge does in addition.
    pub settings: Settings,
    /// The worker drains: it accepts no new connections.
    pub(crate) draining: Cell<bool>,
    pub(crate) table: Table,
    per_address: Rc<ConnectionsPerAddress>,
    /// Throttles the message about clients that should be proxies and are not.
    told: Throttled,
    pub(crate) flusher: Flusher,
    /// Clients that are getting a 503 response because there is no room.
    pub(crate) refusals: Cell<usize>,
}

impl<B: Backend> Edge<B> {
    /// An edge without connections.
    pub fn new(backend: Rc<B>, limits: Limits, settings: Settings) -> Self {
        Edge {
            backend,
            limits,
            settings,
            draining: Cell::new(false),
            table: Table::default(),
            per_address: Rc::default(),
            told: Throttled::default(),
            flusher: Flusher::default(),
            refusals: Cell::new(0),
        }
    }
}

impl<B: Backend> Edge<B> {
    /// Admits a connection of this client, unless it has too many.
    pub(crate) fn admit(&self, client: Peer) -> Result<Option<CountedConnection>, ()> {
        let gives_way = |network| self.table.shed_idle_of(network);
        let proxies = &self.settings.proxies;
        self.per_address
            .admit(client, &self.limits, proxies, gives_way)
    }

    /// The same for a stream that stays. No connection gives way: it might be the one that has the stream.
    pub(crate) fn admit_stream(&self, client: Peer) -> Result<Option<CountedConnection>, ()> {
        let proxies = &self.settings.proxies;
        self.per_address
            .admit(client, &self.limits, proxies, |_| false)
    }

    /// Counts and logs a connection or input that was refused before it became a request.
    pub(crate) fn refused(&self, refused: &Refused<'_>) {
        self.backend.refused(refused.why);
        if refused.why == Refusal::ProxyProtocol {
            self.told.say(format_args!(
                "a connection from {} does not begin with a header of the PROXY protocol, or is no trusted proxy's \
                 (proxy_protocol): have the proxy send it (send-proxy of haproxy), and name it in trusted_proxies",
                refused.client
            ));
        }
        if let Some(log) = &self.settings.access_log {
            log.refuse(refused);
        }
    }
}
