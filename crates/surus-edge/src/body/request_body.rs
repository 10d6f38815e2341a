//! The body of a request, as a backend gets it.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame, SizeHint};

use crate::body::incoming::{Direct, Incoming};
use crate::body::offload::Rest;
use crate::limits::allowance::ClientTimeout;
use crate::{BoxError, Limits};

/// A request's body, limited in bytes and in time. Beyond a limit it fails with a [`BodyError`], and the edge then
/// answers 413 or 408 whatever the backend answers.
#[derive(Debug)]
pub struct RequestBody(Source);

#[derive(Debug)]
enum Source {
    /// Received together with its head.
    Whole(Bytes),
    Client {
        incoming: Box<dyn Incoming>,
        watch: Box<Progress>,
    },
}

/// Bytes that are read from one client before others have their turn.
const TURN: u64 = 128 * 1024;

#[derive(Debug)]
struct Progress {
    /// Bytes that may still be received.
    left: u64,
    /// Bytes read in this turn.
    turn: u64,
    patience: ClientTimeout,
    verdict: Verdict,
    trailers: Trailers,
}

/// Tells the edge that a body has failed.
pub(crate) type Verdict = Rc<Cell<Option<BodyError>>>;

/// The trailers of a body, once it was read to its end; most have none.
pub type Trailers = Rc<OnceCell<HeaderMap>>;

impl RequestBody {
    pub(crate) fn watched(incoming: impl Incoming + 'static, limits: &Limits) -> (Self, Verdict) {
        let (watch, verdict) = Progress::new(limits);
        let incoming = Box::new(incoming);
        (RequestBody(Source::Client { incoming, watch }), verdict)
    }

    /// Whether a helper thread may read it from its socket.
    pub(crate) fn is_direct(&mut self) -> bool {
        self.direct().is_some()
    }

    fn direct(&mut self) -> Option<&mut dyn Direct> {
        match &mut self.0 {
            Source::Client { incoming, .. } => incoming.direct(),
            Source::Whole(_) => None,
        }
    }

    /// The rest of the body in the socket, if a helper thread may read it there. Wait with [`RequestBody::arrival`]
    /// before each read.
    pub(crate) fn rest(&mut self) -> Option<io::Result<Rest>> {
        self.direct()?.rest()
    }

    /// Counts `taken` bytes that were read from [`RequestBody::rest`], and waits until there is more. False: that was
    /// all.
    pub(crate) async fn arrival(&mut self, taken: u64) -> Result<bool, BoxError> {
        let Source::Client { incoming, watch } = &mut self.0 else {
            return Ok(false);
        };
        let Some(incoming) = incoming.direct() else {
            return Ok(false);
        };
        incoming.took(taken);
        if taken > 0 {
            watch.came(taken)?;
        }
        if incoming.has_ended() {
            return Ok(false);
        }
        poll_fn(|cx| match incoming.poll_arrival(cx) {
            Poll::Ready(arrived) => Poll::Ready(arrived.map_err(|error| watch.broken(error))),
            Poll::Pending => watch.poll_patience(cx).map(Err),
        })
        .await?;
        Ok(true)
    }

    /// A body that was received together with its head.
    pub(crate) fn whole(bytes: Bytes) -> Self {
        RequestBody(Source::Whole(bytes))
    }

    /// All of the body, if it is in memory.
    pub fn at_hand(&self) -> Option<&Bytes> {
        match &self.0 {
            Source::Whole(bytes) => Some(bytes),
            Source::Client { .. } => None,
        }
    }

    /// The trailers; `None` if there can be none: in HTTP/1 only chunked bodies have them.
    pub fn trailers(&self) -> Option<Trailers> {
        let Source::Client { incoming, watch } = &self.0 else {
            return None;
        };
        incoming
            .may_have_trailers()
            .then(|| Rc::clone(&watch.trailers))
    }

    /// The announced length of what is still to be read.
    pub fn announced(&self) -> Option<u64> {
        self.size_hint().exact()
    }
}

/// Why a request body is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// Longer than allowed. Only for bodies without an announced length; others are refused before.
    TooLarge,
    /// The client was too slow.
    TimedOut,
    /// There is no space to store it.
    NoRoom,
    /// It is malformed, or the client has disconnected. What was received must not be taken for the whole body.
    Broken,
}

impl BodyError {
    /// The status of the response.
    pub fn status(self) -> StatusCode {
        match self {
            BodyError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::TimedOut => StatusCode::REQUEST_TIMEOUT,
            BodyError::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
            BodyError::Broken => StatusCode::BAD_REQUEST,
        }
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BodyError::TooLarge => "the request body is larger than allowed",
            BodyError::TimedOut => "the request body took too long",
            BodyError::Broken => "the request body is broken",
            BodyError::NoRoom => "there is no room to keep the request body in",
        })
    }
}

impl std::error::Error for BodyError {}

impl Progress {
    fn new(limits: &Limits) -> (Box<Self>, Verdict) {
        let verdict = Verdict::default();
        let watch = Box::new(Progress {
            left: limits.body_bytes,
            turn: 0,
            patience: ClientTimeout::new(limits.to_send()),
            verdict: Rc::clone(&verdict),
            trailers: Trailers::default(),
        });
        (watch, verdict)
    }

    fn broken(&self, error: BoxError) -> BoxError {
        self.verdict.set(Some(BodyError::Broken));
        error
    }

    /// True if other tasks must have their turn first.
    fn ends_turn(&mut self, cx: &Context<'_>) -> bool {
        let ends = self.turn >= TURN;
        if ends {
            self.turn = 0;
            cx.waker().wake_by_ref();
        }
        ends
    }

    fn fail(&mut self, error: BodyError) -> BoxError {
        self.left = 0;
        self.verdict.set(Some(error));
        error.into()
    }

    fn came(&mut self, bytes: u64) -> Result<(), BoxError> {
        self.patience.moved(bytes);
        self.turn += bytes;
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(self.fail(BodyError::TooLarge)),
        }
    }

    /// Ready when the wait for the client has taken too long.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<BoxError> {
        self.patience
            .poll_end(cx)
            .map(|()| self.fail(BodyError::TimedOut))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let (incoming, watch) = match &mut self.0 {
            Source::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                return Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))));
            }
            Source::Client { incoming, watch } => (incoming, watch),
        };
        if watch.ends_turn(cx) {
            return Poll::Pending;
        }
        match Pin::new(&mut **incoming).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(trailers) = frame.trailers_ref() {
                    // There is only one such frame.
                    let _ = watch.trailers.set(trailers.clone());
                }
                let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                Poll::Ready(Some(watch.came(bytes).map(|()| frame)))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(watch.broken(error)))),
            Poll::Pending => watch.poll_patience(cx).map(|error| Some(Err(error))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Whole(bytes) => bytes.is_empty(),
            Source::Client { incoming, .. } => incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Source::Client { incoming, .. } => incoming.size_hint(),
        }
    }
}
