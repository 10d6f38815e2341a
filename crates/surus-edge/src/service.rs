//! From a request that hyper has parsed to a response it can write.

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{HeaderValue, CACHE_CONTROL, CONNECTION, HOST};
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::access_log::Entry;
use crate::compress::{compress, wanted};
use crate::connection::State;
use crate::ids::{identify, REQUEST_ID};
use crate::server::Edge;
use crate::{plain, Backend, BoxError, Connection, Reply, RequestBody};

/// A request that is being answered, until this is dropped.
#[derive(Debug)]
struct Busy(Rc<State>);

impl Busy {
    fn begin(state: Rc<State>) -> Self {
        state.begin_request();
        Busy(state)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.end_request();
    }
}

/// A response body on its way out. Its end is the end of the request, as far as the edge can see it.
#[derive(Debug)]
pub(crate) struct Outgoing<B> {
    reply: Reply<B>,
    log: Option<Box<Entry>>,
    /// HTTP/2: it has given bytes and was not asked for more since.
    held: bool,
    busy: Busy,
}

impl<B> Drop for Outgoing<B> {
    fn drop(&mut self) {
        self.busy.0.stall.released(self.held);
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
        let polled = Pin::new(&mut this.reply).poll_frame(cx);
        if this.busy.0.is_http2() {
            this.busy.0.stall.asked(this.held);
            this.held = matches!(polled, Poll::Ready(Some(Ok(_))));
            if this.held {
                this.busy.0.stall.gave();
            }
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

/// Cancel-safe as far as the backend's `call` is: nothing is held across its await but what dropping releases.
pub(crate) async fn respond<B: Backend>(
    edge: Rc<Edge<B>>,
    state: Rc<State>,
    mut request: Request<Incoming>,
) -> Result<Response<Outgoing<B::Body>>, Infallible> {
    let busy = Busy::begin(Rc::clone(&state));
    let settings = &edge.settings;
    if state.is_http2() {
        name_host(&mut request);
    }
    let forwarded = settings
        .proxies
        .client(state.client(), request.headers_mut());
    let client = forwarded.as_ref().unwrap_or_else(|| state.client());
    let id = settings
        .request_ids
        .then(|| identify(request.headers_mut()));
    let mut log = settings
        .access_log
        .as_ref()
        .map(|log| log.begin(&request, client.peer.ip()));
    let is_head = request.method() == Method::HEAD;
    let encoding = if settings.compression && !is_head {
        wanted(request.headers())
    } else {
        None
    };
    let mut response = match answer_health(&edge, &request) {
        Some(answer) => answer,
        None if request.body().is_end_stream() => {
            let request = request.map(RequestBody::empty);
            edge.backend.call(request, client).await
        }
        None => respond_to_body(&edge, &state, client, request).await,
    };
    if let Some(encoding) = encoding {
        response = compress(response, encoding);
    }
    if let Some(log) = &mut log {
        log.respond(response.status(), id.as_ref());
        if is_head || response.body().is_end_stream() {
            log.complete();
        }
    }
    if let Some(id) = id {
        response.headers_mut().entry(REQUEST_ID).or_insert(id);
    }
    Ok(response.map(|reply| Outgoing {
        reply,
        log,
        held: false,
        busy,
    }))
}

/// HTTP/2 has the host in the target; applications look for it among the headers.
fn name_host(request: &mut Request<Incoming>) {
    if request.headers().contains_key(HOST) {
        return;
    }
    let host = request
        .uri()
        .authority()
        .and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    if let Some(host) = host {
        request.headers_mut().insert(HOST, host);
    }
}

/// The answer to who asks how the worker is.
fn answer_health<B: Backend>(
    edge: &Edge<B>,
    request: &Request<Incoming>,
) -> Option<Response<Reply<B::Body>>> {
    let health = &edge.settings.health;
    if health.is_off() {
        return None;
    }
    let path = Some(request.uri().path());
    let status = if path == health.live.as_deref() {
        StatusCode::OK
    } else if path != health.ready.as_deref() {
        return None;
    } else if edge.draining.get() {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::OK
    };
    let mut answer = plain(status);
    answer
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Some(answer)
}

async fn respond_to_body<B: Backend>(
    edge: &Edge<B>,
    state: &Rc<State>,
    client: &Connection,
    request: Request<Incoming>,
) -> Response<Reply<B::Body>> {
    if request.body().size_hint().lower() > edge.limits.body_bytes {
        return refuse(state, StatusCode::PAYLOAD_TOO_LARGE);
    }
    let (head, incoming) = request.into_parts();
    let (body, verdict) = RequestBody::watched(incoming, &edge.limits, state);
    let request = Request::from_parts(head, body);
    let response = edge.backend.call(request, client).await;
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
