//! The response body that a server sends.

use std::{
    fmt,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::body::{
    event_stream::{EventStream, Opening},
    pipe::Pipe,
    websocket::{are_possible, SocketClose, WebSocket},
};

/// The error of request bodies and response bodies.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Empty, complete, streamed while PHP still runs, or a WebSocket.
pub struct ResponseBody(Kind);

enum Kind {
    Full(Option<Bytes>),
    Stream {
        pipe: Rc<Pipe>,
        /// The number of bytes to come, if known.
        left: Option<u64>,
    },
    /// None: the connection is for this from now on.
    WebSocket(Rc<WebSocket>),
    /// What is published on channels.
    Events(Rc<EventStream>),
    /// The same, for the process that has the connection.
    Opening(Box<Opening>),
}

/// Bytes that the response of a slow client may keep in memory without being counted.
pub(crate) const UNCOUNTED: usize = 64 * 1024;

impl ResponseBody {
    /// An empty body.
    #[must_use]
    pub fn empty() -> Self {
        ResponseBody(Kind::Full(None))
    }

    /// A complete body.
    #[must_use]
    pub fn full(bytes: Bytes) -> Self {
        if bytes.len() > UNCOUNTED {
            let left = Some(bytes.len() as u64);
            return ResponseBody::stream(Pipe::whole(bytes), left);
        }
        ResponseBody(Kind::Full((!bytes.is_empty()).then_some(bytes)))
    }

    /// The whole body, unless it is long or a stream.
    ///
    /// # Errors
    /// The body itself, if it is a stream.
    pub fn into_whole(mut self) -> Result<Bytes, Self> {
        match &mut self.0 {
            Kind::Full(bytes) => Ok(bytes.take().unwrap_or_default()),
            _ => Err(self),
        }
    }

    /// The WebSocket in place of a body.
    ///
    /// # Errors
    /// The body itself, if it is one.
    pub fn into_websocket(mut self) -> Result<Rc<WebSocket>, Self> {
        match std::mem::replace(&mut self.0, Kind::Full(None)) {
            Kind::WebSocket(socket) => Ok(socket),
            other => {
                self.0 = other;
                Err(self)
            }
        }
    }

    /// Its client gets what is published on channels.
    #[must_use]
    pub fn events(opening: Opening) -> Self {
        ResponseBody(if are_possible() {
            Kind::Events(EventStream::open(opening))
        } else {
            Kind::Opening(Box::new(opening))
        })
    }

    /// What the process that has the connection opens in place of a body.
    #[must_use]
    pub fn opening(&self) -> Option<&Opening> {
        match &self.0 {
            Kind::Opening(opening) => Some(opening),
            _ => None,
        }
    }

    /// Its client gets the messages of this WebSocket.
    pub(crate) fn websocket(socket: Rc<WebSocket>) -> Self {
        ResponseBody(Kind::WebSocket(socket))
    }

    /// The bytes of a pipe; `left` is their number, if known.
    #[must_use]
    pub fn stream(pipe: Rc<Pipe>, left: Option<u64>) -> Self {
        ResponseBody(Kind::Stream { pipe, left })
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Kind::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Stream { pipe, left } => pipe.poll_read(cx).map(|bytes| match bytes {
                Some(Ok(bytes)) => {
                    *left = left.map(|left| left.saturating_sub(bytes.len() as u64));
                    Some(Ok(Frame::data(bytes)))
                }
                Some(Err(error)) => Some(Err(error.into())),
                None => pipe.take_trailers().map(|all| Ok(Frame::trailers(all))),
            }),
            Kind::Events(stream) => stream
                .poll_next(cx)
                .map(|bytes| bytes.map(|bytes| bytes.map(Frame::data).map_err(Into::into))),
            Kind::WebSocket(_) | Kind::Opening(_) => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Full(bytes) => bytes.is_none(),
            Kind::Stream { pipe, .. } => pipe.is_finished(),
            Kind::Events(_) => false,
            Kind::WebSocket(_) | Kind::Opening(_) => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Kind::Stream { left, .. } => left.map_or_else(SizeHint::default, SizeHint::with_exact),
            Kind::Events(_) => SizeHint::default(),
            Kind::WebSocket(_) | Kind::Opening(_) => SizeHint::with_exact(0),
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        match &self.0 {
            Kind::Stream { pipe, .. } => pipe.reader_left(),
            Kind::WebSocket(socket) => socket.ended(SocketClose::gone()),
            Kind::Events(stream) => stream.end(),
            Kind::Full(_) | Kind::Opening(_) => {}
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Full(bytes) => write!(f, "Full({} bytes)", bytes.as_ref().map_or(0, Bytes::len)),
            Kind::Stream { .. } => f.write_str("Stream"),
            Kind::WebSocket(socket) => socket.fmt(f),
            Kind::Events(_) => f.write_str("Events"),
            Kind::Opening(opening) => opening.fmt(f),
        }
    }
}
