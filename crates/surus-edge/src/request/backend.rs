//! The interface of backends, which answer requests.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::StatusCode;

use crate::{BoxError, Connection, Refusal, Reply, RequestBody};

/// A response that is not ready yet.
pub type Later<B> = Pin<Box<dyn Future<Output = http::Response<Reply<B>>>>>;

/// A backend's answer to a request.
pub enum Answer<B> {
    /// Ready. Most requests do not wait, and for these a future would be the largest part of the work.
    Now(http::Response<Reply<B>>),
    /// Cancellation: when the client disconnects, the edge drops the future, at any await point. Dropping must be cheap
    /// and must not block. The backend itself must finish work that has to run to its end (PHP's `finally` blocks and
    /// destructors).
    Later(Later<B>),
}

impl<B: 'static> Answer<B> {
    /// Replaces the response by what `f` makes of it.
    pub fn map<C: 'static>(
        self,
        f: impl FnOnce(http::Response<Reply<B>>) -> http::Response<Reply<C>> + 'static,
    ) -> Answer<C> {
        match self {
            Answer::Now(response) => Answer::Now(f(response)),
            Answer::Later(future) => Answer::Later(Box::pin(async { f(future.await) })),
        }
    }
}

impl<B> fmt::Debug for Answer<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Answer::Now(_) => "Now",
            Answer::Later(_) => "Later",
        })
    }
}

/// Takes the whole head of a request, for a response that outlives [`Backend::call`].
pub fn take_head(head: &mut Parts) -> Parts {
    let (nothing, ()) = http::Request::new(()).into_parts();
    std::mem::replace(head, nothing)
}

/// Turns a request into a response.
pub trait Backend: 'static {
    /// The backend's own response stream. Bytes in memory and files need none: see [`Reply`].
    type Body: http_body::Body<Data = Bytes, Error = BoxError> + Unpin + 'static;

    /// The backend may take parts of `head`, or all of it: see [`take_head`]. `body` is `None` for a request without
    /// one.
    fn call(
        self: &Rc<Self>,
        head: &mut Parts,
        body: Option<RequestBody>,
        connection: &Connection,
    ) -> Answer<Self::Body>;

    /// Called with each of its responses, before the edge adds its headers.
    fn ended(&self, _response: &mut http::Response<Reply<Self::Body>>) {}

    /// Counts a request that was refused without the backend.
    fn refused(&self, _why: Refusal) {}

    /// Counts `times` responses, sent `took` after their requests were received.
    fn answered(&self, _status: StatusCode, _times: u32, _took: Duration) {}

    /// Gives unused memory back to the system: most of many connections have closed, and the allocator may keep their
    /// memory.
    fn give_back_memory(&self) {}
}
