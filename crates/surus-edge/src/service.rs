//! From a request that the lane or hyper has parsed to a response that it can write.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{ready, Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::header::{HeaderValue, CACHE_CONTROL, CONNECTION};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::access_log::Entry;
use crate::compress::{accepts, compress};
use crate::connection::{Reader, State};
use crate::ids::{identify, REQUEST_ID};
use crate::input::Input;
use crate::length::correct;
use crate::request_body::Verdict;
use crate::server::Edge;
use crate::wellformed::check;
use crate::{plain, Answer, Backend, BoxError, Connection, Later, Limits, Reply, RequestBody};

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
    /// It is told one turn late: what came before it is on its way then, where it would be thrown away.
    error: Option<BoxError>,
    log: Option<Box<Entry>>,
    _busy: Busy,
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

/// The service of one connection.
pub(crate) struct Service<B: Backend> {
    edge: Rc<Edge<B>>,
    state: Rc<State>,
    /// The answer to the first request that hyper will come with: the lane has begun it.
    begun: RefCell<Option<Responding<B>>>,
    /// Responses of one status that are not counted yet: those that leave together are counted together.
    uncounted: Cell<(StatusCode, u32)>,
}

/// What has become of a request, before the edge adds its own.
pub(crate) enum Begun<B: Backend> {
    Now(Response<Reply<B::Body>>),
    Later {
        future: Later<B::Body>,
        verdict: Option<Verdict>,
        begun: Instant,
    },
}

impl<B: Backend> Service<B> {
    pub(crate) fn new(edge: Rc<Edge<B>>, state: Rc<State>) -> Self {
        Service {
            edge,
            state,
            begun: RefCell::new(None),
            uncounted: Cell::new((StatusCode::OK, 0)),
        }
    }

    pub(crate) fn state(&self) -> &Rc<State> {
        &self.state
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.edge.limits
    }

    /// Whether the kernel may send long files by itself.
    pub(crate) fn sends_files(&self) -> bool {
        self.edge.settings.zero_copy
    }

    /// Passes on a request that has been begun: hyper is about to read the same one.
    pub(crate) fn leave_to_hyper(&self, responding: Responding<B>) {
        *self.begun.borrow_mut() = Some(responding);
    }

    /// Asks the backend, unless the answer is known without it. `client`: who is at the other end, proxies aside.
    #[inline(always)]
    pub(crate) fn begin(
        &self,
        client: &Connection,
        head: &mut Parts,
        body: Option<RequestBody>,
        verdict: Option<Verdict>,
    ) -> (Noted, Begun<B>) {
        let busy = Busy::begin(Rc::clone(&self.state));
        self.state.turn.count();
        let settings = &self.edge.settings;
        let malformed = check(head, &self.edge.limits).err();
        let forwarded = settings.proxies.client(client, &mut head.headers);
        let client = forwarded.as_ref().unwrap_or(client);
        let is_head = head.method == Method::HEAD;
        let noted = Noted {
            id: settings.request_ids.then(|| identify(&mut head.headers)),
            log: settings
                .access_log
                .as_ref()
                .map(|log| log.begin(head, client.peer.ip())),
            accepts: (settings.compression && !is_head)
                .then(|| accepts(&head.headers))
                .flatten(),
            is_head,
            busy,
        };
        let begun = match malformed {
            Some(status) => Begun::Now(refuse(&self.state, status)),
            None => self.ask(client, head, body, verdict),
        };
        (noted, begun)
    }

    #[inline(always)]
    fn ask(
        &self,
        client: &Connection,
        head: &mut Parts,
        body: Option<RequestBody>,
        verdict: Option<Verdict>,
    ) -> Begun<B> {
        if let Some(answer) = answer_health(&self.edge, head) {
            return Begun::Now(answer);
        }
        let announced = body.as_ref().map_or(0, |body| body.size_hint().lower());
        if announced > self.edge.limits.body_bytes {
            return Begun::Now(refuse(&self.state, StatusCode::PAYLOAD_TOO_LARGE));
        }
        let backend = &self.edge.backend;
        match backend.call(head, body, client) {
            Answer::Now(mut response) => {
                judge(&mut response, verdict.as_ref(), &self.state);
                backend.ended(&mut response);
                self.note(response.status());
                Begun::Now(response)
            }
            Answer::Later(future) => Begun::Later {
                future,
                verdict,
                begun: client.arrived(),
            },
        }
    }

    fn note(&self, status: StatusCode) {
        if self.uncounted.get().0 != status {
            self.count();
        }
        let (_, times) = self.uncounted.get();
        self.uncounted.set((status, times + 1));
    }

    /// Counts the responses to what was read last; they are about to leave.
    pub(crate) fn count(&self) {
        let (status, times) = self.uncounted.replace((StatusCode::OK, 0));
        if times > 0 {
            let took = self.state.client().arrived().elapsed();
            self.edge.backend.answered(status, times, took);
        }
    }

    /// As hyper takes it, and HTTP/2.
    #[inline(always)]
    pub(crate) fn respond(&self, mut noted: Noted, begun: Begun<B>) -> Responding<B> {
        match begun {
            Begun::Now(response) => {
                let response = noted.complete(response);
                noted.responding(response)
            }
            Begun::Later {
                future,
                verdict,
                begun,
            } => Responding::Later {
                future,
                pending: Some(Box::new(Pending {
                    noted,
                    verdict,
                    begun,
                    edge: Rc::clone(&self.edge),
                })),
            },
        }
    }
}

impl<B: Backend> hyper::service::Service<Request<Incoming>> for Service<B> {
    type Response = Response<Outgoing<B::Body>>;
    type Error = Infallible;
    type Future = Responding<B>;

    fn call(&self, request: Request<Incoming>) -> Responding<B> {
        let (mut head, incoming) = request.into_parts();
        if let Some(responding) = self.begun.borrow_mut().take() {
            if incoming.is_end_stream() {
                return responding;
            }
            let then = Box::new(responding);
            return Responding::After { incoming, then };
        }
        let (mut body, mut verdict) = (None, None);
        if !incoming.is_end_stream() {
            let (watched, fate) =
                RequestBody::watched(Input::Hyper(incoming), &self.edge.limits, &self.state);
            (body, verdict) = (Some(watched), Some(fate));
        }
        let (noted, begun) = self.begin(self.state.client(), &mut head, body, verdict);
        self.count();
        let responding = self.respond(noted, begun);
        if !self.state.turn.is_over() {
            return responding;
        }
        let state = Rc::clone(&self.state);
        Responding::Passing {
            pass: Box::pin(async move { state.turn.pass().await }),
            then: Box::new(responding),
        }
    }
}

/// What is noted of a request before the backend takes it apart.
#[derive(Debug)]
pub(crate) struct Noted {
    id: Option<HeaderValue>,
    log: Option<Box<Entry>>,
    /// Encodings, if the response may be compressed.
    accepts: Option<HeaderValue>,
    is_head: bool,
    busy: Busy,
}

impl Noted {
    /// What the edge adds to a backend's response.
    #[inline(always)]
    pub(crate) fn complete<B>(&mut self, mut response: Response<Reply<B>>) -> Response<Reply<B>>
    where
        B: Body<Data = Bytes, Error = BoxError> + Unpin,
    {
        correct(&mut response, self.is_head);
        if let Some(accepts) = &self.accepts {
            response = compress(response, accepts);
        }
        if let Some(log) = &mut self.log {
            log.respond(response.status(), self.id.as_ref());
            if self.is_head || response.body().is_end_stream() {
                log.complete();
            }
        }
        if self.busy.0.reader() == Reader::Nobody {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        if let Some(id) = self.id.take() {
            response.headers_mut().entry(REQUEST_ID).or_insert(id);
        }
        response
    }

    /// A response as hyper takes it.
    pub(crate) fn responding<B: Backend>(
        self,
        response: Response<Reply<B::Body>>,
    ) -> Responding<B> {
        Responding::Now(Some(self.outgoing(response)))
    }

    /// What is known of the request goes out with its response's body.
    #[inline(always)]
    fn outgoing<B>(self, response: Response<Reply<B>>) -> Response<Outgoing<B>> {
        response.map(|reply| Outgoing {
            reply,
            error: None,
            log: self.log,
            _busy: self.busy,
        })
    }

    /// So many bytes of the body are on their way.
    pub(crate) fn sending(&mut self, bytes: usize) {
        if let Some(log) = &mut self.log {
            log.add(bytes);
        }
    }

    /// All of the body is.
    pub(crate) fn sent(mut self) {
        if let Some(log) = &mut self.log {
            log.complete();
        }
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
    /// Its connection's turn is over: hyper would go on with the next request.
    Passing {
        pass: Pin<Box<dyn Future<Output = ()>>>,
        then: Box<Responding<B>>,
    },
    /// What has been begun with the whole body: hyper is to find it read, too.
    After {
        incoming: Incoming,
        then: Box<Responding<B>>,
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
    fn complete(mut self, mut response: Response<Reply<B::Body>>) -> Response<Outgoing<B::Body>> {
        judge(&mut response, self.verdict.as_ref(), &self.noted.busy.0);
        let backend = &self.edge.backend;
        backend.ended(&mut response);
        backend.answered(response.status(), 1, self.begun.elapsed());
        let response = self.noted.complete(response);
        self.noted.outgoing(response)
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
            Responding::Passing { pass, then } => {
                ready!(pass.as_mut().poll(cx));
                let then = std::mem::replace(&mut **then, Responding::Now(None));
                *self = then;
                self.poll(cx)
            }
            Responding::After { incoming, then } => {
                while ready!(Pin::new(&mut *incoming).poll_frame(cx))
                    .is_some_and(|read| read.is_ok())
                {}
                Pin::new(&mut **then).poll(cx)
            }
        }
    }
}

/// The answer to who asks how the worker is.
fn answer_health<B: Backend>(edge: &Edge<B>, head: &Parts) -> Option<Response<Reply<B::Body>>> {
    let health = &edge.settings.health;
    if health.is_off() {
        return None;
    }
    let path = Some(head.uri.path());
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
