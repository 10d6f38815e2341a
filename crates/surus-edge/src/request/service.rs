//! From a request that an engine has parsed to a response that it can write.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use http::header::{HeaderName, HeaderValue, CACHE_CONTROL, HOST};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use http_body::Body;

use crate::body::request_body::Verdict;
use crate::client::hosts::allows;
use crate::connection::State;
use crate::limits::connections_per_address::CountedConnection;
use crate::request::edge::Edge;
use crate::request::ids::identify;
use crate::request::in_flight::{Busy, Noted, Pending, Responding};
use crate::request::rejection::{judge, refuse};
use crate::request::well_formed::check;
use crate::response::compress::accepts;
use crate::{
    plain, Answer, Backend, Connection, Health, Later, Limits, Refusal, Reply, RequestBody,
    Settings,
};

/// The service of one connection.
pub(crate) struct Service<B: Backend> {
    edge: Rc<Edge<B>>,
    state: Rc<State>,
    /// Responses of one status that are not counted yet: those that are sent together are counted together.
    uncounted: Cell<(StatusCode, u32)>,
}

/// The backend's answer to a request, before the edge adds its part.
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
            uncounted: Cell::new((StatusCode::OK, 0)),
        }
    }

    pub(crate) fn state(&self) -> &Rc<State> {
        &self.state
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.edge.limits
    }

    /// Counts a WebSocket on a stream as a connection of its client's address.
    pub(crate) fn admit(&self) -> Result<Option<CountedConnection>, ()> {
        self.edge.admit_stream(self.state.client().peer)
    }

    /// Whether the worker drains, so that no connection stays open.
    pub(crate) fn is_draining(&self) -> bool {
        self.edge.draining.get()
    }

    /// Whether the kernel may send long files (sendfile).
    pub(crate) fn sends_files(&self) -> bool {
        self.edge.settings.zero_copy
    }

    /// Calls the backend, unless the request can be answered without it. `client`: the other end of the connection,
    /// before `Forwarded` headers of proxies are read.
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
        let mut noted = Noted {
            id: settings.request_ids.then(|| identify(&mut head.headers)),
            log: settings
                .access_log
                .as_ref()
                .map(|log| log.begin(head, client.peer)),
            accepts: (settings.compression && !is_head)
                .then(|| accepts(&head.headers))
                .flatten(),
            is_head,
            may_upgrade: false,
            busy,
        };
        let begun = match malformed.or_else(|| self.refusal(head, body.as_ref())) {
            Some(status) => {
                self.note(status);
                let why = Refusal::of(status);
                if let Some(log) = &mut noted.log {
                    log.refuse(why);
                }
                self.edge.backend.refused(why);
                Begun::Now(refuse(&self.state, status))
            }
            None => self.ask(client, head, body, verdict),
        };
        (noted, begun)
    }

    /// The status with which a well-formed request is refused, if it is not for the backend.
    #[inline(always)]
    fn refusal(&self, head: &Parts, body: Option<&RequestBody>) -> Option<StatusCode> {
        let settings = &self.edge.settings;
        if is_health(&settings.health, head) {
            return None;
        }
        if !settings.allowed_hosts.is_empty() && !names_us(settings, head) {
            return Some(StatusCode::MISDIRECTED_REQUEST);
        }
        let announced = body.map_or(0, |body| body.size_hint().lower());
        (announced > self.edge.limits.body_bytes).then_some(StatusCode::PAYLOAD_TOO_LARGE)
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

    /// Counts the responses to the last input; they are about to be sent.
    pub(crate) fn count(&self) {
        let (status, times) = self.uncounted.replace((StatusCode::OK, 0));
        if times > 0 {
            let took = self.state.client().arrived().elapsed();
            self.edge.backend.answered(status, times, took);
        }
    }

    /// A future of the response, for a caller that may have to wait.
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

fn is_health(health: &Health, head: &Parts) -> bool {
    let path = Some(head.uri.path());
    !health.is_off() && (path == health.live.as_deref() || path == health.ready.as_deref())
}

/// Whether the request names an allowed host in `Host`, and in `X-Forwarded-Host` if proxies are trusted.
fn names_us(settings: &Settings, head: &Parts) -> bool {
    const FORWARDED: HeaderName = HeaderName::from_static("x-forwarded-host");
    let named = |name| head.headers.get(name).map(HeaderValue::as_bytes);
    let allowed = |host| allows(&settings.allowed_hosts, host);
    let forwarded = named(FORWARDED).filter(|_| !settings.proxies.is_empty());
    allowed(named(HOST)) && forwarded.is_none_or(|host| allowed(Some(host)))
}

/// The response to a health check.
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
