use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::connection::State;
use crate::BoxError;

/// A request's body, bounded. One that announces its length was checked before the backend saw it; one that does not
/// (chunked) fails with [`BodyTooLarge`] where it passes the bound, and the edge then answers 413 whatever the backend
/// says.
#[derive(Debug)]
pub struct RequestBody {
    incoming: Incoming,
    /// Bytes that may still come.
    left: u64,
    /// `None` where the length was announced: nothing to watch then.
    connection: Option<Rc<State>>,
}

impl RequestBody {
    pub(crate) fn announced(incoming: Incoming) -> Self {
        RequestBody {
            incoming,
            left: u64::MAX,
            connection: None,
        }
    }

    pub(crate) fn unannounced(incoming: Incoming, limit: u64, connection: Rc<State>) -> Self {
        RequestBody {
            incoming,
            left: limit,
            connection: Some(connection),
        }
    }

    /// True for requests without a body.
    pub fn is_empty(&self) -> bool {
        self.incoming.is_end_stream()
    }

    /// The announced length of what is still to be read.
    pub fn len(&self) -> Option<u64> {
        self.incoming.size_hint().exact()
    }
}

/// A chunked request body is longer than the edge takes.
#[derive(Clone, Copy, Debug)]
pub struct BodyTooLarge;

impl fmt::Display for BodyTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request body is larger than allowed")
    }
}

impl std::error::Error for BodyTooLarge {}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => return Poll::Pending,
        };
        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Poll::Ready(Some(Ok(frame)))
            }
            None => {
                self.left = 0;
                if let Some(connection) = &self.connection {
                    connection.body_too_large.set(true);
                }
                Poll::Ready(Some(Err(BodyTooLarge.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
