use std::future::Future;
use std::net::SocketAddr;

use bytes::Bytes;

use crate::{BoxError, Reply, RequestBody};

/// The two ends of a client connection.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    pub peer: SocketAddr,
    pub local: SocketAddr,
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
