use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use crate::{BoxError, Reply, RequestBody};

/// Sends an interim response (1xx) with these headers before the response proper; false if that cannot be done now.
pub type SendInterim = Rc<dyn Fn(StatusCode, &HeaderMap) -> bool>;

/// A client connection: as it is, or as trusted proxies describe it.
#[derive(Clone)]
pub struct Connection {
    pub peer: SocketAddr,
    pub local: SocketAddr,
    /// Between the client and the first proxy.
    pub https: bool,
    pub(crate) interim: Option<SendInterim>,
}

impl Connection {
    pub fn new(peer: SocketAddr, local: SocketAddr) -> Self {
        Connection {
            peer,
            local,
            https: false,
            interim: None,
        }
    }

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

/// Turns a request into a response.
///
/// Cancellation: when the client goes away the edge drops the future that `call` returned, at any await point. Dropping
/// must be cheap and must not block; work that has to run to its end (PHP's `finally` blocks and destructors) is the
/// backend's to finish by itself.
pub trait Backend: 'static {
    /// The backend's own response stream. Bytes at hand and files need none: see [`Reply`].
    type Body: http_body::Body<Data = Bytes, Error = BoxError> + Unpin + 'static;

    fn call(
        &self,
        request: http::Request<RequestBody>,
        connection: &Connection,
    ) -> impl Future<Output = http::Response<Reply<Self::Body>>>;
}
