//! The body of a request, as a backend has it.

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

/// A request's body, bounded in bytes and in time. Where it passes a bound it fails with a [`BodyError`], and the edge
/// then answers 413 or 408 whatever the backend says.
#[derive(Debug)]
pub struct RequestBody(Source);

#[derive(Debug)]
enum Source {
    /// It has come with its head.
    Whole(Bytes),
    Client {
        incoming: Box<dyn Incoming>,
        watch: Box<Progress>,
    },
}

/// Bytes that are taken from one client before others have their turn.
const TURN: u64 = 128 * 1024;

#[derive(Debug)]
struct Progress {
    /// Bytes that may still come.
    left: u64,
    /// Bytes since the last turn of others.
    turn: u64,
    patience: ClientTimeout,
    verdict: Verdict,
    trailers: Trailers,
}

/// Where the edge finds out that a body has failed.
pub(crate) type Verdict = Rc<Cell<Option<BodyError>>>;

/// Where the fields that follow a body are found, once it was read to its end; most have none.
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

    /// What is still in the socket, for a helper thread, where it is read from there. Each time something has come is
    /// waited for by [`RequestBody::arrival`].
    pub(crate) fn rest(&mut self) -> Option<io::Result<Rest>> {
        self.direct()?.rest()
    }

    /// The next thing to do with [`RequestBody::rest`], of which `taken` bytes were read. False: that was all.
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

    /// One that has come with its head.
    pub(crate) fn whole(bytes: Bytes) -> Self {
        RequestBody(Source::Whole(bytes))
    }

    /// All of it, if it is there.
    pub fn at_hand(&self) -> Option<&Bytes> {
        match &self.0 {
            Source::Whole(bytes) => Some(bytes),
            Source::Client { .. } => None,
        }
    }

    /// `None` if there will be none: HTTP/1 has them behind chunks only.
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

/// Why a request body is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// Longer than allowed; only one that has not announced its length comes so far.
    TooLarge,
    /// The client was too slow.
    TimedOut,
    /// There is no room to keep it in.
    NoRoom,
    /// It cannot be understood, or the client has broken it off. What has come must not be taken for the whole.
    Broken,
}

impl BodyError {
    /// What the client is answered.
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

    /// True when others are to have their turn first.
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

    /// Ready when the client has been waited for too long.
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
                    // There is one such frame.
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
