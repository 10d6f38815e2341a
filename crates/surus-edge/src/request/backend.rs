//! What answers requests.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::StatusCode;

use crate::{BoxError, Connection, Refusal, Reply, RequestBody};

/// A response that is not there yet.
pub type Later<B> = Pin<Box<dyn Future<Output = http::Response<Reply<B>>>>>;

/// What a backend makes of a request.
pub enum Answer<B> {
    /// Most requests wait for nothing, and then a future would be the largest part of the work.
    Now(http::Response<Reply<B>>),
    /// Cancellation: when the client goes away the edge drops the future, at any await point. Dropping must be cheap
    /// and must not block; work that has to run to its end (PHP's `finally` blocks and destructors) is the backend's to
    /// finish by itself.
    Later(Later<B>),
}

impl<B: 'static> Answer<B> {
    /// Another response in place of this one.
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

/// All of a request's head, for what goes on after [`Backend::call`].
pub fn take_head(head: &mut Parts) -> Parts {
    let (nothing, ()) = http::Request::new(()).into_parts();
    std::mem::replace(head, nothing)
}

/// Turns a request into a response.
pub trait Backend: 'static {
    /// The backend's own response stream. Bytes at hand and files need none: see [`Reply`].
    type Body: http_body::Body<Data = Bytes, Error = BoxError> + Unpin + 'static;

    /// `head` is the backend's to take apart: see [`take_head`]. `body` is none for a request without one.
    fn call(
        self: &Rc<Self>,
        head: &mut Parts,
        body: Option<RequestBody>,
        connection: &Connection,
    ) -> Answer<Self::Body>;

    /// Sees each of its responses before the edge adds its own.
    fn ended(&self, _response: &mut http::Response<Reply<Self::Body>>) {}

    /// Counts what was refused without it.
    fn refused(&self, _why: Refusal) {}

    /// Counts so many of its responses, which leave so long after their requests had come.
    fn answered(&self, _status: StatusCode, _times: u32, _took: Duration) {}

    /// Most of many connections have gone: the allocator may keep what they took.
    fn give_back_memory(&self) {}
}
