//! The body of a request. The client's window opens as the backend reads, so the rest stays with the client.

use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{ready, Context, Poll};

use bytes::Bytes;
use h2::RecvStream;
use http::header::{HeaderMap, HeaderValue, EXPECT};
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};

use super::head::announced;
use super::respond::Respond;
use crate::body::incoming::{Direct, Incoming};
use crate::connection::State;
use crate::BoxError;

#[derive(Debug)]
pub(crate) struct Received {
    stream: RecvStream,
    /// Announced bytes that are still to be read; `h2` ensures that there are not more or fewer.
    left: Option<u64>,
    /// Only trailers can follow.
    has_ended: bool,
    state: Rc<State>,
    /// Sends `100 Continue` to a client that waits for it (RFC 9110, 10.1.1).
    expects: Option<Weak<Respond>>,
}

impl Received {
    /// `head`: headers of the request; `respond`: sends its responses.
    pub(crate) fn new(
        stream: RecvStream,
        head: &HeaderMap,
        respond: &Rc<Respond>,
        state: &Rc<State>,
    ) -> Self {
        let expected = head.get(EXPECT).map(HeaderValue::as_bytes);
        let expects = expected.is_some_and(|what| what.eq_ignore_ascii_case(b"100-continue"));
        Received {
            stream,
            left: announced(head),
            has_ended: false,
            state: Rc::clone(state),
            expects: expects.then(|| Rc::downgrade(respond)),
        }
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        let polled = self.stream.poll_data(cx);
        // Not needed if the client has sent its body without waiting.
        let expects = self.expects.take();
        if let Some(respond) = expects.filter(|_| polled.is_pending()) {
            if let Some(respond) = respond.upgrade() {
                respond.send_interim(StatusCode::CONTINUE, &HeaderMap::new());
            }
        }
        polled
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if !this.has_ended {
            match ready!(this.poll_data(cx)) {
                Some(Ok(bytes)) => {
                    // Fails for a stream that has been closed meanwhile, whose window does not matter.
                    let _ = this.stream.flow_control().release_capacity(bytes.len());
                    let length = bytes.len() as u64;
                    this.left = this.left.map(|left| left.saturating_sub(length));
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                // For whatever reason: a body without its end is not complete.
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => this.has_ended = true,
            }
        }
        let trailers = ready!(this.stream.poll_trailers(cx));
        let trailers = trailers.map_err(BoxError::from)?;
        Poll::Ready(trailers.map(|found| Ok(Frame::trailers(found))))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Incoming for Received {
    fn may_have_trailers(&self) -> bool {
        true
    }

    fn direct(&mut self) -> Option<&mut dyn Direct> {
        None
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        if !self.is_end_stream() {
            self.state.discard_input();
        }
    }
}
