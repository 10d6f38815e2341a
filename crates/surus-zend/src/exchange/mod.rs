//! One HTTP request and its response, as PHP sees them.
//!
//! An exchange is shared by the future that waits for the response, the driver that resumes PHP, and PHP's callbacks.
//! All on one thread, never at the same time: callbacks run only while the driver is inside a resume.
//!
//! This module has its life cycle: one exchange is reused for many requests. `body.rs` has the request body that PHP
//! reads, `response.rs` the response.

pub(crate) mod answers;
mod body;
mod collected;
pub(crate) mod conversation;
pub(crate) mod fields;
mod headers;
mod held;
pub(crate) mod inputs;
pub(crate) mod jobs;
pub(crate) mod owed;
pub(crate) mod request;
mod response;
pub(crate) mod routing;
pub(crate) mod server_variables;
pub(crate) mod timers;
mod times;

use std::{
    cell::{Cell, OnceCell, RefCell},
    path::Path,
    rc::Rc,
    task::Waker,
    time::Instant,
};

use bytes::Bytes;
use http::header;
use tokio::sync::Notify;

use crate::{
    body::websocket::events::Event,
    exchange::{
        conversation::Conversation,
        inputs::Inputs,
        jobs::Jobs,
        owed::Owed,
        request::{Request, RequestBody, Script},
        server_variables::{CStrings, ServerVariables},
    },
    ffi::{self, Str},
    router::Declared,
    shared::locks::Lock,
};

pub(crate) use body::BodyError;
use headers::Headers;
use held::Held;
use response::Response;
use timers::Timers;
pub(crate) use times::Stream;
use times::Times;

/// The most exchanges that are kept for reuse: about as many as there are usually concurrent requests.
const MAX_IDLE: usize = 64;

pub(crate) use collected::collect;

thread_local! {
    static IDLE: RefCell<Vec<Rc<Exchange>>> = const { RefCell::new(Vec::new()) };
}

/// A `COPY` of `Surus\Postgres`, and the pieces that it has received last: PHP reads them.
pub(crate) struct Copying {
    pub(crate) copy: surus_postgres::Copy,
    pub(crate) last: RefCell<std::collections::VecDeque<bytes::Bytes>>,
}

/// A listener of `Surus\Postgres`, and what it has received last: PHP reads it.
pub(crate) struct Listening {
    pub(crate) listener: surus_postgres::Listener,
    pub(crate) last: RefCell<Option<surus_postgres::Notification>>,
}

pub(crate) struct Exchange {
    /// Without its headers.
    pub(crate) request: Request,
    pub(crate) headers: Headers,
    pub(crate) script: Option<Script>,
    pub(crate) route: Cell<i64>,
    pub(crate) parameters: RefCell<Vec<(Rc<str>, Vec<u8>)>>,
    /// Routes that the application declares while it boots.
    pub(crate) routes: RefCell<Vec<Declared>>,
    /// The inputs of its route; empty for most.
    pub(crate) inputs: OnceCell<Box<Inputs>>,
    pub(crate) times: Times,
    pub(crate) timers: Timers,
    pub(crate) locks: Held<Lock>,
    /// While what it has deferred runs.
    pub(crate) owed: Cell<Option<Owed>>,
    pub(crate) dev: bool,
    /// It has no client: what is printed is kept for the log.
    is_scripts: bool,
    strings: RefCell<Option<Box<CStrings>>>,
    variables: RefCell<Option<Box<ServerVariables>>>,
    body: RefCell<RequestBody>,
    unread: RefCell<Bytes>,
    pub(crate) body_failed: Cell<bool>,
    response: RefCell<Response>,
    client_left: Cell<bool>,
    /// The future that waits for the response.
    waiter: RefCell<Option<Waker>>,
    /// The driver, while PHP is parked.
    pub(crate) driver: RefCell<Option<Waker>>,
    /// The transactions of `Surus\Postgres` that it is in the middle of, by number: they end with it.
    pub(crate) transactions: Held<Rc<surus_postgres::Bound>>,
    /// What it copies, likewise.
    pub(crate) copies: Held<Rc<Copying>>,
    /// Its listeners, likewise.
    pub(crate) listeners: Held<Rc<Listening>>,
    /// Of requests that have had one.
    pub(crate) jobs: OnceCell<Rc<Jobs>>,
    /// A job reads the body; and another one may.
    pub(crate) is_being_read: Cell<bool>,
    pub(crate) was_read: Notify,
    /// Whether others may run where one of its jobs was pre-empted.
    pub(crate) preempts: Cell<bool>,
    /// Its place among the requests in flight is another one's: it has a WebSocket.
    pub(crate) gave_up_place: Cell<bool>,
    /// If its handler has no fiber between two events.
    pub(crate) conversation: Conversation,
    /// The driver must resume PHP, whatever it waits for.
    interrupted: Cell<bool>,
}

impl Exchange {
    pub(crate) fn new(mut request: Request, script: Option<Script>, dev: bool) -> Rc<Exchange> {
        let mut exchange = IDLE.with_borrow_mut(Vec::pop).unwrap_or_default();
        let fresh = Rc::get_mut(&mut exchange).expect("what is recycled has no other owner");
        *fresh.body.get_mut() = std::mem::replace(&mut request.body, RequestBody::Empty);
        if request.headers.contains_key(header::UPGRADE) {
            request.keep_apart();
        }
        fresh.headers = Headers::new(std::mem::take(&mut request.headers));
        fresh.request = request;
        fresh.script = script;
        fresh.dev = dev;
        fresh.is_scripts = false;
        fresh.times.begin();
        exchange
    }

    /// Reuses an answered exchange. Does nothing if it has another owner.
    pub(crate) fn recycle(mut exchange: Rc<Exchange>) {
        let Some(used) = Rc::get_mut(&mut exchange) else {
            return;
        };
        used.clear();
        IDLE.with_borrow_mut(|idle| {
            if idle.len() < MAX_IDLE {
                idle.push(exchange);
            }
        });
    }

    /// Clears the request. Not only before reuse, since its headers and target are slices of the connection's buffer.
    fn clear(&mut self) {
        // The pattern names every field, so that none is forgotten.
        let Exchange {
            request,
            headers,
            script,
            route,
            parameters,
            routes,
            inputs,
            times: _,
            timers,
            locks,
            owed,
            dev: _,
            is_scripts: _,
            strings,
            variables,
            body,
            unread,
            body_failed,
            response,
            client_left,
            waiter,
            driver,
            transactions,
            copies,
            listeners,
            jobs,
            is_being_read,
            was_read: _,
            preempts,
            gave_up_place,
            conversation,
            interrupted,
        } = self;
        request.uri = http::Uri::default();
        request.interim = None;
        request.trailers = None;
        response.get_mut().clear(headers.clear());
        *script = None;
        route.set(-1);
        parameters.get_mut().clear();
        routes.get_mut().clear();
        inputs.take();
        owed.take();
        *timers = Timers::default();
        locks.release();
        *strings.get_mut() = None;
        *variables.get_mut() = None;
        *body.get_mut() = RequestBody::Empty;
        *unread.get_mut() = Bytes::new();
        body_failed.set(false);
        client_left.set(false);
        *waiter.get_mut() = None;
        *driver.get_mut() = None;
        copies.release();
        transactions.release();
        listeners.release();
        jobs.take();
        is_being_read.set(false);
        preempts.set(false);
        gave_up_place.set(false);
        *conversation = Conversation::default();
        interrupted.set(false);
    }

    /// The exchange of a script that runs without a request: at boot and from the command line.
    pub(crate) fn for_script(script: &Path, dev: bool) -> Rc<Exchange> {
        let script = Script {
            filename: script.to_path_buf(),
            script_name: script.to_string_lossy().into_owned(),
            path_info: None,
            document_root: script.parent().map(Path::to_path_buf).unwrap_or_default(),
        };
        let request = Request::nobodys(http::Uri::default());
        let mut exchange = Exchange::new(request, Some(script), dev);
        Rc::get_mut(&mut exchange)
            .expect("a new exchange has no other owner")
            .is_scripts = true;
        exchange
    }

    /// The exchange of code of an application that runs for no client.
    pub(crate) fn for_nobody(dev: bool) -> Rc<Exchange> {
        Exchange::for_script(Path::new("timer"), dev)
    }

    /// Another owner of this exchange.
    pub(crate) fn shared(&self) -> Rc<Exchange> {
        // SAFETY: an exchange is made in an `Rc` only, by `new`; the caller's reference keeps it alive meanwhile.
        unsafe {
            Rc::increment_strong_count(self);
            Rc::from_raw(self)
        }
    }

    pub(crate) fn raw(&self) -> *mut std::ffi::c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    /// Its time begins anew: a script does what it does between two requests.
    pub(crate) fn begin_again(&self) {
        self.times.begin();
        self.client_left.set(false);
    }

    /// Something has happened to its WebSocket: another fiber deals with it, in a time of its own.
    pub(crate) fn begin_event(&self, event: Event) {
        self.times.begin_event();
        self.client_left.set(false);
        self.interrupted.set(false);
        self.conversation.expect(event);
    }

    /// As [`Times::started`].
    pub(crate) fn started(&self) -> Instant {
        self.times.started()
    }

    /// A variable of `$_SERVER`. It stays until the exchange rests, or is cleared.
    pub(crate) fn variable(&self, i: usize) -> Option<(Str, Str)> {
        let mut variables = self.variables.borrow_mut();
        let variables = variables.get_or_insert_with(|| {
            let headers = self.headers.get();
            let new = ServerVariables::new(&self.request, &headers, self.script.as_ref());
            Box::new(new)
        });
        variables.get(i)
    }

    /// No fiber deals with it for a while: it keeps nothing that can be made again. What C was given of it is not valid any more.
    pub(crate) fn rest(&self) {
        self.headers.pack();
        self.strings.take();
        self.variables.take();
    }

    pub(crate) fn client_has_left(&self) {
        if !self.is_answered() {
            self.client_left.set(true);
            wake(&self.driver);
        }
    }

    pub(crate) fn has_client_left(&self) -> bool {
        self.client_left.get()
    }

    /// Lets the driver resume PHP at once: one of its jobs has ended the request.
    pub(crate) fn interrupt(&self) {
        self.interrupted.set(true);
        self.wake_driver();
    }

    /// Lets the driver look again whether it may go on.
    pub(crate) fn wake_driver(&self) {
        wake(&self.driver);
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.get()
    }

    /// Whether it was interrupted since it was asked last.
    pub(crate) fn take_interruption(&self) -> bool {
        self.interrupted.replace(false)
    }

    /// The exchange behind a pointer that C hands back.
    ///
    /// # Safety
    /// `raw` is from [`Exchange::raw`] of an exchange that the running driver holds.
    pub(crate) unsafe fn from_raw<'a>(raw: *mut std::ffi::c_void) -> &'a Exchange {
        // SAFETY: the driver keeps the exchange alive while PHP can see the pointer.
        unsafe { &*raw.cast::<Exchange>() }
    }

    pub(crate) fn info(&self) -> ffi::RequestInfo {
        let mut strings = self.strings.borrow_mut();
        let strings = strings.get_or_insert_with(|| {
            let headers = self.headers.get();
            Box::new(CStrings::new(&self.request, &headers, self.script.as_ref()))
        });
        strings.info(&self.request)
    }
}

impl Default for Exchange {
    /// An exchange without a client's request.
    fn default() -> Self {
        Exchange {
            request: Request::nobodys(http::Uri::default()),
            headers: Headers::default(),
            script: None,
            route: Cell::new(-1),
            parameters: RefCell::default(),
            routes: RefCell::default(),
            inputs: OnceCell::new(),
            times: Times::default(),
            timers: Timers::default(),
            locks: Held::default(),
            owed: Cell::default(),
            dev: false,
            is_scripts: false,
            strings: RefCell::default(),
            variables: RefCell::default(),
            body: RefCell::new(RequestBody::Empty),
            unread: RefCell::default(),
            body_failed: Cell::new(false),
            response: RefCell::default(),
            client_left: Cell::new(false),
            waiter: RefCell::default(),
            driver: RefCell::default(),
            transactions: Held::default(),
            copies: Held::default(),
            listeners: Held::default(),
            jobs: OnceCell::new(),
            is_being_read: Cell::new(false),
            was_read: Notify::new(),
            preempts: Cell::new(false),
            gave_up_place: Cell::new(false),
            conversation: Conversation::default(),
            interrupted: Cell::new(false),
        }
    }
}

fn wake(slot: &RefCell<Option<Waker>>) {
    let waker = slot.borrow_mut().take();
    if let Some(waker) = waker {
        waker.wake();
    }
}
