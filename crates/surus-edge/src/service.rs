//! From a request that hyper has parsed to a response it can write.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{ready, Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::header::{HeaderValue, CACHE_CONTROL, CONNECTION};
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::access_log::Entry;
use crate::compress::{compress, wanted};
use crate::connection::State;
use crate::encoding::Encoding;
use crate::ids::{identify, REQUEST_ID};
use crate::length::correct;
use crate::request_body::Verdict;
use crate::server::Edge;
use crate::wellformed::check;
use crate::{plain, Answer, Backend, BoxError, Connection, Later, Reply, RequestBody};

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

/// The service of one connection.
#[derive(Debug)]
pub(crate) struct Service<B> {
    edge: Rc<Edge<B>>,
    state: Rc<State>,
}

impl<B: Backend> Service<B> {
    pub(crate) fn new(edge: Rc<Edge<B>>, state: Rc<State>) -> Self {
        Service { edge, state }
    }

    #[inline(always)]
    fn answer(
        &self,
        client: &Connection,
        request: Request<Incoming>,
        verdict: &mut Option<Verdict>,
    ) -> Answer<B::Body> {
        if let Some(answer) = answer_health(&self.edge, &request) {
            return Answer::Now(answer);
        }
        let (mut head, incoming) = request.into_parts();
        let mut body = None;
        if !incoming.is_end_stream() {
            if incoming.size_hint().lower() > self.edge.limits.body_bytes {
                return Answer::Now(refuse(&self.state, StatusCode::PAYLOAD_TOO_LARGE));
            }
            let (watched, fate) = RequestBody::watched(incoming, &self.edge.limits, &self.state);
            body = Some(watched);
            *verdict = Some(fate);
        }
        let backend = &self.edge.backend;
        let mut answer = backend.call(&mut head, body, client);
        if let Answer::Now(response) = &mut answer {
            judge(response, verdict.as_ref(), &self.state);
            backend.ended(client.arrived(), response);
        }
        answer
    }
}

impl<B: Backend> hyper::service::Service<Request<Incoming>> for Service<B> {
    type Response = Response<Outgoing<B::Body>>;
    type Error = Infallible;
    type Future = Responding<B>;

    fn call(&self, mut request: Request<Incoming>) -> Responding<B> {
        let busy = Busy::begin(Rc::clone(&self.state));
        let settings = &self.edge.settings;
        let malformed = check(&mut request).err();
        let forwarded = settings
            .proxies
            .client(self.state.client(), request.headers_mut());
        let client = forwarded.as_ref().unwrap_or_else(|| self.state.client());
        let is_head = request.method() == Method::HEAD;
        let noted = Noted {
            id: settings
                .request_ids
                .then(|| identify(request.headers_mut())),
            log: settings
                .access_log
                .as_ref()
                .map(|log| log.begin(&request, client.peer.ip())),
            encoding: (settings.compression && !is_head)
                .then(|| wanted(request.headers()))
                .flatten(),
            is_head,
            busy,
        };
        let mut verdict = None;
        let answer = match malformed {
            Some(status) => Answer::Now(refuse(&self.state, status)),
            None => self.answer(client, request, &mut verdict),
        };
        match answer {
            Answer::Now(response) => Responding::Now(Some(noted.complete(response))),
            Answer::Later(future) => Responding::Later {
                future,
                pending: Some(Box::new(Pending {
                    noted,
                    verdict,
                    begun: client.arrived(),
                    edge: Rc::clone(&self.edge),
                })),
            },
        }
    }
}

/// What is noted of a request before the backend takes it apart.
#[derive(Debug)]
pub(crate) struct Noted {
    id: Option<HeaderValue>,
    log: Option<Box<Entry>>,
    /// For the response, as the client would have it.
    encoding: Option<Encoding>,
    is_head: bool,
    busy: Busy,
}

impl Noted {
    /// What the edge adds to a backend's response.
    #[inline(always)]
    fn complete<B>(self, mut response: Response<Reply<B>>) -> Response<Outgoing<B>>
    where
        B: Body<Data = Bytes, Error = BoxError> + Unpin,
    {
        let Noted {
            id,
            mut log,
            encoding,
            is_head,
            busy,
        } = self;
        correct(&mut response, is_head);
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
        response.map(|reply| Outgoing {
            reply,
            log,
            held: false,
            busy,
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

/// What is kept of a request for as long as its response is waited for.
pub(crate) struct Pending<B> {
    noted: Noted,
    verdict: Option<Verdict>,
    begun: Instant,
    edge: Rc<Edge<B>>,
}

impl<B: Backend> Pending<B> {
    fn complete(self, mut response: Response<Reply<B::Body>>) -> Response<Outgoing<B::Body>> {
        judge(&mut response, self.verdict.as_ref(), &self.noted.busy.0);
        self.edge.backend.ended(self.begun, &mut response);
        self.noted.complete(response)
    }
}

/// A request whose body has failed is refused, whatever the backend has made of it.
fn judge<B>(response: &mut Response<Reply<B>>, verdict: Option<&Verdict>, state: &State) {
    if let Some(error) = verdict.and_then(|verdict| verdict.get()) {
        *response = refuse(state, error.status());
    }
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

/// An answer to a request whose body stays unread.
fn refuse<B>(state: &State, status: StatusCode) -> Response<Reply<B>> {
    state.linger.set(true);
    let mut response = plain(status);
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
