//! What the engines give of a request's body.

use std::fmt::Debug;
use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Body;

use super::offload::Rest;
use crate::BoxError;

/// A body as it comes. Dropped before its end it says itself what becomes of the rest.
pub(crate) trait Incoming: Body<Data = Bytes, Error = BoxError> + Debug + Unpin {
    /// Whether fields may follow it.
    fn may_have_trailers(&self) -> bool;

    /// The same, where its bytes are what is in the socket: then a helper thread may read them.
    fn direct(&mut self) -> Option<&mut dyn Direct>;
}

/// A body of known length whose bytes are what is in the socket.
pub(crate) trait Direct {
    /// What is still in the socket. `None` where some of it has been read.
    fn rest(&self) -> Option<io::Result<Rest>>;

    /// So many bytes were read.
    fn took(&mut self, count: u64);

    /// Ready when something can be read.
    ///
    /// # Errors
    /// The client has left.
    fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>>;

    /// Nothing is left to be read.
    fn has_ended(&self) -> bool;
}
