//! The connection of a request, as backends see it.

use std::cell::Cell;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Instant;

use http::{HeaderMap, StatusCode};

/// Sends an interim response (1xx) with these headers before the final response; false if that is not possible now.
pub type SendInterim = Rc<dyn Fn(StatusCode, &HeaderMap) -> bool>;

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// This address.
    Tcp(SocketAddr),
    /// A process on this machine, over a Unix socket.
    Unix,
}

impl Peer {
    /// Its address, if it has one.
    pub fn tcp(self) -> Option<SocketAddr> {
        match self {
            Peer::Tcp(address) => Some(address),
            Peer::Unix => None,
        }
    }

    pub(crate) fn ip(self) -> Option<IpAddr> {
        self.tcp().map(|address| address.ip())
    }
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        Peer::Tcp(address)
    }
}

/// For logs: without the port, and `unix:` as nginx writes it.
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Tcp(address) => address.ip().fmt(f),
            Peer::Unix => f.write_str("unix:"),
        }
    }
}

/// A client connection: as it is, or as trusted proxies describe it.
#[derive(Clone)]
pub struct Connection {
    /// The client, or the proxy in front of it.
    pub peer: Peer,
    /// The address it has connected to. A Unix socket has neither address nor port: here 127.0.0.1 and 80, for URLs.
    pub local: SocketAddr,
    /// Whether TLS is used between the client and the first proxy.
    pub https: bool,
    pub(crate) interim: Option<SendInterim>,
    /// When something was last read from it.
    pub(crate) arrived: Cell<Instant>,
}

impl Connection {
    /// A connection without TLS, from `peer` to `local`.
    pub fn new(peer: impl Into<Peer>, local: SocketAddr) -> Self {
        Connection {
            peer: peer.into(),
            local,
            https: false,
            interim: None,
            arrived: Cell::new(Instant::now()),
        }
    }

    /// When the head of the current request was received. The clock is read once for all requests received together.
    pub fn arrived(&self) -> Instant {
        self.arrived.get()
    }

    /// Sends interim responses to the current request; `None` if its client would not understand them.
    pub fn interim(&self) -> Option<&SendInterim> {
        self.interim.as_ref()
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("peer", &self.peer)
            .field("local", &self.local)
            .field("https", &self.https)
            .finish_non_exhaustive()
    }
}
