//! A request that is being answered: its data until the last byte of its response is written.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{ready, Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::header::HeaderValue;
use http::Response;
use http_body::{Body, Frame, SizeHint};

use crate::body::request_body::Verdict;
use crate::connection::State;
use crate::log::access::Entry;
use crate::request::edge::Edge;
use crate::request::ids::REQUEST_ID;
use crate::request::rejection::judge;
use crate::response::compress::compress;
use crate::response::length::correct;
use crate::{Backend, BoxError, Later, Reply};

/// A request that is being answered, until this is dropped.
#[derive(Debug)]
pub(crate) struct Busy(Rc<State>);

impl Busy {
    pub(crate) fn begin(state: Rc<State>) -> Self {
        state.begin_request();
        Busy(state)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.end_request();
    }
}

/// Data of a request, noted before the backend takes parts of it.
#[derive(Debug)]
pub(crate) struct Noted {
    pub(crate) id: Option<HeaderValue>,
    pub(crate) log: Option<Box<Entry>>,
    /// The accepted encodings, if the response may be compressed.
    pub(crate) accepts: Option<HeaderValue>,
    pub(crate) is_head: bool,
    /// The client has asked for another protocol.
    pub(crate) may_upgrade: bool,
    pub(crate) busy: Busy,
}

impl Noted {
    /// Adds the edge's part to a backend's response.
    #[inline(always)]
    pub(crate) fn complete<B>(&mut self, mut response: Response<Reply<B>>) -> Response<Reply<B>>
    where
        B: Body<Data = Bytes, Error = BoxError> + Unpin,
    {
        correct(&mut response, self.is_head, self.may_upgrade);
        if let Some(accepts) = &self.accepts {
            response = compress(response, accepts);
        }
        if let Some(log) = &mut self.log {
            log.respond(response.status(), self.id.as_ref());
            if self.is_head || response.body().is_end_stream() {
                log.complete();
            }
        }
        if let Some(id) = self.id.take() {
            response.headers_mut().entry(REQUEST_ID).or_insert(id);
        }
        response
    }

    /// A response that is ready.
    pub(crate) fn responding<B: Backend>(
        self,
        response: Response<Reply<B::Body>>,
    ) -> Responding<B> {
        Responding::Now(Some(self.outgoing(response)))
    }

    /// Attaches the data of the request to its response's body.
    #[inline(always)]
    pub(crate) fn outgoing<B>(self, response: Response<Reply<B>>) -> Response<Outgoing<B>> {
        response.map(|reply| Outgoing {
            reply,
            error: None,
            log: self.log,
            _busy: self.busy,
        })
    }
}

/// The future of a response.
pub(crate) enum Responding<B: Backend> {
    /// `None` once it was taken.
    Now(Option<Response<Outgoing<B::Body>>>),
    Later {
        future: Later<B::Body>,
        pending: Option<Box<Pending<B>>>,
    },
}

impl<B: Backend> Future for Responding<B> {
    type Output = Result<Response<Outgoing<B::Body>>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Nobody polls a future that has ended.
        match &mut *self {
            Responding::Now(response) => match response.take() {
                Some(response) => Poll::Ready(Ok(response)),
                None => Poll::Pending,
            },
            Responding::Later { future, pending } => {
                let response = ready!(future.as_mut().poll(cx));
                match pending.take() {
                    Some(pending) => Poll::Ready(Ok(pending.complete(response))),
                    None => Poll::Pending,
                }
            }
        }
    }
}

/// Data of a request while its response is not ready.
pub(crate) struct Pending<B> {
    pub(crate) noted: Noted,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) begun: Instant,
    pub(crate) edge: Rc<Edge<B>>,
}

impl<B: Backend> Pending<B> {
    fn complete(mut self, mut response: Response<Reply<B::Body>>) -> Response<Outgoing<B::Body>> {
        judge(&mut response, self.verdict.as_ref(), &self.noted.busy.0);
        let backend = &self.edge.backend;
        backend.ended(&mut response);
        backend.answered(response.status(), 1, self.begun.elapsed());
        let response = self.noted.complete(response);
        self.noted.outgoing(response)
    }
}

/// A response body that is being sent. Its end is the end of the request, as far as the edge can see it.
#[derive(Debug)]
pub(crate) struct Outgoing<B> {
    pub(crate) reply: Reply<B>,
    /// Returned one turn late: otherwise the output before the error would be discarded, and now it is sent first.
    error: Option<BoxError>,
    log: Option<Box<Entry>>,
    _busy: Busy,
}

impl<B> Outgoing<B> {
    /// This number of bytes of the body was written.
    pub(crate) fn sending(&mut self, bytes: usize) {
        if let Some(log) = &mut self.log {
            log.add(bytes);
        }
    }

    /// All of the body was written.
    pub(crate) fn complete(&mut self) {
        if let Some(log) = &mut self.log {
            log.complete();
        }
    }

    /// All of the body was written, with this number of bytes.
    #[inline(always)]
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.sending(bytes);
        self.complete();
    }
}

impl<B> Outgoing<B>
where
    B: Body<Data = Bytes, Error = BoxError> + Unpin,
{
    /// Bytes of the body, if known.
    #[inline(always)]
    pub(crate) fn length(&self) -> Option<u64> {
        match &self.reply {
            Reply::Empty | Reply::Upgrade(_) => Some(0),
            Reply::Bytes(bytes) => Some(bytes.len() as u64),
            other if other.is_end_stream() => Some(0),
            other => other.size_hint().exact(),
        }
    }
}

impl<B> Body for Outgoing<B>
where
    B: Body<Data = Bytes, Error = BoxError> + Unpin,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Some(error) = this.error.take() {
            return Poll::Ready(Some(Err(error)));
        }
        let polled = Pin::new(&mut this.reply).poll_frame(cx);
        if let Poll::Ready(Some(Err(error))) = polled {
            this.error = Some(error);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(log) = &mut this.log {
            if let Poll::Ready(Some(Ok(frame))) = &polled {
                log.add(frame.data_ref().map_or(0, Bytes::len));
            }
            if matches!(polled, Poll::Ready(None)) || this.reply.is_end_stream() {
                log.complete();
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.reply.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.reply.size_hint()
    }
}
