//! Request bodies as they come from who reads the client's socket.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::http1::Incoming;
use crate::http2::Received;
use crate::BoxError;

#[derive(Debug)]
pub(crate) enum Input {
    /// HTTP/1.
    Http1(Incoming),
    /// HTTP/2.
    H2(Received),
}

impl Body for Input {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Input::Http1(incoming) => incoming.poll_frame(cx),
            Input::H2(received) => Pin::new(received)
                .poll_frame(cx)
                .map_err(|error| error.into()),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Input::Http1(incoming) => incoming.is_end_stream(),
            Input::H2(received) => received.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Input::Http1(incoming) => incoming.size_hint(),
            Input::H2(received) => received.size_hint(),
        }
    }
}
