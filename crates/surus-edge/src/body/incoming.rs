//! Request bodies, as the protocol engines provide them.

use std::fmt::Debug;
use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Body;

use super::offload::Rest;
use crate::BoxError;

/// A body that is being received. Dropped before its end, it handles the unread rest itself.
pub(crate) trait Incoming: Body<Data = Bytes, Error = BoxError> + Debug + Unpin {
    /// Whether trailers may follow it.
    fn may_have_trailers(&self) -> bool;

    /// The same body, if its bytes are those in the socket: then a helper thread may read them.
    fn direct(&mut self) -> Option<&mut dyn Direct>;
}

/// A body of known length whose bytes are those in the socket.
pub(crate) trait Direct {
    /// The rest of the body, in the socket. `None` if some of it is in a buffer.
    fn rest(&self) -> Option<io::Result<Rest>>;

    /// This number of bytes was read.
    fn took(&mut self, count: u64);

    /// Ready when something can be read.
    ///
    /// # Errors
    /// The client has disconnected.
    fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>>;

    /// Nothing is left to be read.
    fn has_ended(&self) -> bool;
}
