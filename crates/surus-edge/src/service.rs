//! From a request that hyper has parsed to a response it can write.

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{HeaderValue, CONNECTION};
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::compress::{compress, wanted};
use crate::connection::{Phase, State};
use crate::server::Edge;
use crate::{plain, Backend, BoxError, Reply, RequestBody};

/// A response body on its way out. Its end is the end of the request, as far as the edge can see it.
#[derive(Debug)]
pub(crate) struct Outgoing<B> {
    reply: Reply<B>,
    state: Rc<State>,
}

impl<B> Drop for Outgoing<B> {
    fn drop(&mut self) {
        self.state.enter(Phase::Idle);
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
        Pin::new(&mut self.reply).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.reply.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.reply.size_hint()
    }
}

/// Cancel-safe as far as the backend's `call` is: nothing is held across its await but what dropping releases.
pub(crate) async fn respond<B: Backend>(
    edge: Rc<Edge<B>>,
    state: Rc<State>,
    request: Request<Incoming>,
) -> Result<Response<Outgoing<B::Body>>, Infallible> {
    state.enter(Phase::Busy);
    let mut log = edge.access_log.as_ref().map(|log| log.begin(&request));
    let encoding = if edge.compression && request.method() != Method::HEAD {
        wanted(request.headers())
    } else {
        None
    };
    let mut response = if request.body().is_end_stream() {
        let request = request.map(RequestBody::empty);
        edge.backend.call(request, &state.addresses).await
    } else {
        respond_to_body(&edge, &state, request).await
    };
    if let Some(encoding) = encoding {
        response = compress(response, encoding);
    }
    if let (Some(log), Some(entry)) = (&edge.access_log, log.take()) {
        log.end(entry, &state.addresses, response.status());
    }
    Ok(response.map(|reply| Outgoing { reply, state }))
}

async fn respond_to_body<B: Backend>(
    edge: &Edge<B>,
    state: &Rc<State>,
    request: Request<Incoming>,
) -> Response<Reply<B::Body>> {
    if request.body().size_hint().lower() > edge.limits.body_bytes {
        return refuse(state, StatusCode::PAYLOAD_TOO_LARGE);
    }
    let (head, incoming) = request.into_parts();
    let (body, verdict) = RequestBody::watched(incoming, &edge.limits, state);
    let request = Request::from_parts(head, body);
    let response = edge.backend.call(request, &state.addresses).await;
    match verdict.get() {
        Some(error) => refuse(state, error.status()),
        None => response,
    }
}

/// An answer to a request whose body stays unread.
fn refuse<B>(state: &State, status: StatusCode) -> Response<Reply<B>> {
    state.linger.set(true);
    let mut response = plain(status);
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
