//! The Pusher protocol in front of the application, in every mode: PHP is not asked.
//!
//! - [`handshake`]: from a request to a WebSocket; [`origin`]: whose pages may; [`talk`]: the conversation
//! - [`requests`]: the HTTP API; [`webhooks`]: what applications are told

mod handshake;
mod origin;
mod requests;
mod talk;
mod webhooks;

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::time::Duration;

use http::request::Parts;
use http::{Response, StatusCode};
use surus_channels::Rules;
use surus_edge::{Answer, Backend, Connection, Refusal, Reply, RequestBody};
use surus_pusher::{api, Front};

use tokio::task::spawn_local;

use crate::config::{Config, Pusher};

pub(crate) use webhooks::{rest, settle};

/// Which channels have a history: those that are configured, and those whose last event clients of this protocol get later.
pub(crate) fn rules(config: &Config) -> Rules {
    let mut rules = config.app.channels.clone();
    if config.app.shared_memory > 0 {
        let pushers = config.pushers.iter();
        pushers.for_each(|pusher| pusher.app.add_rules(&mut rules));
    }
    rules
}

thread_local! {
    static FRONT: RefCell<Weak<Front>> = const { RefCell::new(Weak::new()) };
}

/// How many clients are connected; `None`: the protocol is not configured.
pub(crate) fn connections() -> Option<usize> {
    FRONT.with_borrow(|front| front.upgrade().map(|front| front.connections()))
}

/// A backend with the Pusher protocol in front of it, if that is configured.
#[derive(Debug)]
pub(crate) struct WithPusher<B> {
    inner: Rc<B>,
    served: Option<Rc<Served>>,
}

/// What is served to clients of the Pusher protocol.
#[derive(Debug)]
struct Served {
    front: Rc<Front>,
    pushers: Vec<Pusher>,
    /// How often clients are asked whether they are there.
    ping: Option<Duration>,
    compression: bool,
}

impl<B: Backend> WithPusher<B> {
    pub(crate) fn new(inner: Rc<B>, config: &Config) -> Self {
        let pushers = config.pushers.clone();
        let hub = surus_zend::channels().filter(|_| !pushers.is_empty());
        let served = hub.map(|hub| {
            let apps = pushers.iter().map(|pusher| pusher.app.clone()).collect();
            let front = Front::new(apps, hub, webhooks::reporter(config), |work| {
                spawn_local(work);
            });
            FRONT.set(Rc::downgrade(&front));
            Rc::new(Served {
                front,
                pushers,
                ping: config.app.websocket_ping,
                compression: config.app.websocket_compression,
            })
        });
        WithPusher { inner, served }
    }
}

impl<B: Backend> Backend for WithPusher<B> {
    type Body = B::Body;

    // Inlined into one function: otherwise requests and responses would be copied between these calls.
    #[inline(always)]
    fn call(
        self: &Rc<Self>,
        head: &mut Parts,
        mut body: Option<RequestBody>,
        connection: &Connection,
    ) -> Answer<B::Body> {
        if let Some(served) = &self.served {
            if head.uri.path().starts_with("/app") {
                match answer(served, head, body) {
                    Ok(answer) => return answer,
                    Err(not_ours) => body = not_ours,
                }
            }
        }
        self.inner.call(head, body, connection)
    }

    fn ended(&self, response: &mut Response<Reply<Self::Body>>) {
        self.inner.ended(response);
    }

    fn refused(&self, why: Refusal) {
        self.inner.refused(why);
    }

    fn answered(&self, status: StatusCode, times: u32, took: Duration) {
        self.inner.answered(status, times, took);
    }

    fn give_back_memory(&self) {
        self.inner.give_back_memory();
    }
}

/// Answers a request of the Pusher protocol. Any other is the application's: its body is given back.
fn answer<B: 'static>(
    served: &Rc<Served>,
    head: &Parts,
    body: Option<RequestBody>,
) -> Result<Answer<B>, Option<RequestBody>> {
    if let Some(response) = handshake::answer(served, head) {
        return Ok(Answer::Now(response));
    }
    let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
    match api::is_own(&served.front, path, query) {
        true => Ok(requests::answer(served, head, body)),
        false => Err(body),
    }
}
