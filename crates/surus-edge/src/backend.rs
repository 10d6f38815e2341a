use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode};

use crate::{BoxError, Refusal, Reply, RequestBody};

/// Sends an interim response (1xx) with these headers before the response proper; false if that cannot be done now.
pub type SendInterim = Rc<dyn Fn(StatusCode, &HeaderMap) -> bool>;

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// This address.
    Tcp(SocketAddr),
    /// Somebody on this machine, over a Unix socket.
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

/// As in a log: without its port, and `unix:` as nginx writes it.
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
    /// Where it has connected to. A Unix socket has neither address nor port: 127.0.0.1 and 80, which URLs are made of.
    pub local: SocketAddr,
    /// Between the client and the first proxy.
    pub https: bool,
    pub(crate) interim: Option<SendInterim>,
    /// When something was last read from it.
    pub(crate) arrived: Cell<Instant>,
}

impl Connection {
    /// One without TLS, from `peer` to `local`.
    pub fn new(peer: impl Into<Peer>, local: SocketAddr) -> Self {
        Connection {
            peer: peer.into(),
            local,
            https: false,
            interim: None,
            arrived: Cell::new(Instant::now()),
        }
    }

    /// When the head of the request had come that is being begun. Read once for all that come together.
    pub fn arrived(&self) -> Instant {
        self.arrived.get()
    }

    /// How to send interim responses to the request that is begun; `None` where its client would not understand them.
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

/// A response that is not there yet.
pub type Later<B> = Pin<Box<dyn Future<Output = http::Response<Reply<B>>>>>;

/// What a backend makes of a request.
pub enum Answer<B> {
    /// Most requests wait for nothing, and then a future would be the largest part of the work.
    Now(http::Response<Reply<B>>),
    /// Cancellation: when the client goes away the edge drops the future, at any await point. Dropping must be cheap
    /// and must not block; work that has to run to its end (PHP's `finally` blocks and destructors) is the backend's to
    /// finish by itself.
    Later(Later<B>),
}

impl<B: 'static> Answer<B> {
    /// Another response in place of this one.
    pub fn map<C: 'static>(
        self,
        f: impl FnOnce(http::Response<Reply<B>>) -> http::Response<Reply<C>> + 'static,
    ) -> Answer<C> {
        match self {
            Answer::Now(response) => Answer::Now(f(response)),
            Answer::Later(future) => Answer::Later(Box::pin(async { f(future.await) })),
        }
    }
}

impl<B> fmt::Debug for Answer<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Answer::Now(_) => "Now",
            Answer::Later(_) => "Later",
        })
    }
}

/// All of a request's head, for what goes on after [`Backend::call`].
pub fn take_head(head: &mut Parts) -> Parts {
    let (nothing, ()) = http::Request::new(()).into_parts();
    std::mem::replace(head, nothing)
}

/// Turns a request into a response.
pub trait Backend: 'static {
    /// The backend's own response stream. Bytes at hand and files need none: see [`Reply`].
    type Body: http_body::Body<Data = Bytes, Error = BoxError> + Unpin + 'static;

    /// `head` is the backend's to take apart: see [`take_head`]. `body` is none for a request without one.
    fn call(
        self: &Rc<Self>,
        head: &mut Parts,
        body: Option<RequestBody>,
        connection: &Connection,
    ) -> Answer<Self::Body>;

    /// Sees each of its responses before the edge adds its own.
    fn ended(&self, _response: &mut http::Response<Reply<Self::Body>>) {}

    /// Counts what was refused without it.
    fn refused(&self, _why: Refusal) {}

    /// Counts so many of its responses, which leave so long after their requests had come.
    fn answered(&self, _status: StatusCode, _times: u32, _took: Duration) {}

    /// Most of many connections have gone: the allocator may keep what they took.
    fn give_back_memory(&self) {}
}
