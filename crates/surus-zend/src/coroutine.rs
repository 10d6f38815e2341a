//! Coroutine applications: booted once, each request in a fiber of one isolate.

mod reload;

use std::{
    cell::{Cell, RefCell},
    fmt,
    future::Future,
    path::{Path, PathBuf},
    pin::Pin,
    rc::Rc,
};

use bytes::Bytes;
use http::{header, HeaderValue, Method, Response, StatusCode};
use tokio::sync::Notify;

use crate::{
    classic::{busy, LeaveGuard},
    exchange::Exchange,
    ffi,
    inputs::RouteInputs,
    isolate::Isolate,
    line::Line,
    refresh::BootLog,
    request::{Limits, Request},
    router::{Match, Router, Target},
    task::{Outcome, Task, Turn},
    watch::note_slow_end,
    BootError, Engine, ResponseBody,
};

pub use reload::Prepared;

/// As the engine's own fibers.
const FIBER_STACK: usize = 2 * 1024 * 1024;
const BOOT_STACK: usize = 8 * 1024 * 1024;
/// Idle fibers that are kept for the next burst.
const MAX_IDLE_FIBERS: usize = 256;
/// For a boot, where requests have no time limit.
const LONGEST_WAIT: std::time::Duration = std::time::Duration::from_secs(60);

/// A route of an application, for people.
#[derive(Debug, Clone)]
pub struct RouteInfo {
    /// Separated by commas; "*" is every method.
    pub methods: String,
    pub pattern: String,
    /// Empty for every host.
    pub host: String,
    /// `name` or `name: value`, which the request must have.
    pub headers: Vec<String>,
    /// Its name and its handler.
    pub about: String,
}

/// A booted application.
pub struct Coroutine {
    app: Rc<App>,
}

struct App {
    engine: Engine,
    script: RefCell<PathBuf>,
    limits: Limits,
    version: RefCell<Rc<Version>>,
    in_flight: Cell<usize>,
    /// Requests above `max_in_flight`.
    line: Line<Place>,
    /// Requests that wait for a boot.
    waiting: Cell<usize>,
    rebooting: Cell<bool>,
    /// How the last boot has ended.
    boot_failed: Cell<bool>,
    rebooted: Notify,
}

/// Counts a request that waits for a boot, until it is dropped.
struct Waiting<'a>(&'a App);

impl<'a> Waiting<'a> {
    fn begin(app: &'a App) -> Option<Self> {
        let waiting = app.waiting.get();
        if app.in_flight.get() + waiting >= app.limits.max_in_flight {
            return None;
        }
        app.waiting.set(waiting + 1);
        Some(Waiting(app))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get() - 1);
    }
}

/// A place among the requests in flight, on its way to one that has waited for it; goes to the next if that is gone.
struct Place(Option<Rc<App>>);

impl Place {
    /// The request is in flight from here on.
    fn take(mut self) {
        self.0 = None;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(app) = self.0.take() {
            app.leave();
        }
    }
}

/// The answer to a request.
pub enum Answer {
    Now(Response<ResponseBody>),
    /// Dropping the future tells PHP that the client has left.
    Later(Pin<Box<dyn Future<Output = Response<ResponseBody>>>>),
}

/// One boot of the script.
struct Version {
    isolate: Rc<Isolate>,
    router: Option<Router>,
    /// What routes take as input, if any does.
    inputs: Option<Rc<RouteInputs>>,
    idle: RefCell<Vec<Task>>,
    /// No new requests: the isolate has seen a fatal error.
    retired: Cell<bool>,
}

impl Coroutine {
    /// Runs the script and takes what it returns as the application.
    pub async fn boot(
        engine: &Engine,
        script: &Path,
        limits: Limits,
    ) -> Result<Coroutine, BootError> {
        let version = Version::boot(engine, script, &limits).await?;
        Ok(Coroutine {
            app: Rc::new(App {
                engine: *engine,
                script: RefCell::new(script.to_path_buf()),
                limits,
                version: RefCell::new(Rc::new(version)),
                in_flight: Cell::new(0),
                line: Line::default(),
                waiting: Cell::new(0),
                rebooting: Cell::new(false),
                boot_failed: Cell::new(false),
                rebooted: Notify::new(),
            }),
        })
    }

    /// Boots the application for its OpenAPI document, as JSON.
    pub async fn openapi(
        engine: &Engine,
        script: &Path,
        limits: &Limits,
    ) -> Result<String, BootError> {
        let exchange = Exchange::for_script(script, engine.dev);
        exchange.want_openapi();
        let _version = Version::boot_with(script, limits, &exchange).await?;
        exchange.openapi().ok_or_else(|| {
            BootError(format!(
                "{} returns no Surus\\App: there are no routes to describe",
                script.display()
            ))
        })
    }

    /// Boots the application for its routes; empty for one handler that takes every request.
    pub async fn routes(
        engine: &Engine,
        script: &Path,
        limits: &Limits,
    ) -> Result<Vec<RouteInfo>, BootError> {
        let exchange = Exchange::for_script(script, engine.dev);
        let _version = Version::boot_with(script, limits, &exchange).await?;
        let declared = exchange.routes.take();
        let shown = declared
            .into_iter()
            .filter(|route| !route.pattern.is_empty());
        Ok(shown
            .map(|route| RouteInfo {
                methods: route.methods,
                pattern: route.pattern,
                host: route.host,
                headers: route.headers.lines().map(str::to_owned).collect(),
                about: route.about,
            })
            .collect())
    }

    /// Answers one request. Dropping the future tells PHP that the client has left.
    pub async fn call(&self, request: Request) -> Response<ResponseBody> {
        self.answer(request).wait().await
    }

    /// Begins to answer a request here and now; is done with it if its PHP code waits for nothing.
    #[must_use]
    pub fn answer(&self, request: Request) -> Answer {
        let app = &self.app;
        let version = app.version.borrow().clone();
        if app.in_flight.get() < app.limits.max_in_flight && !version.retired.get() {
            return app.answer(version, request, None);
        }
        let app = app.clone();
        Answer::Later(Box::pin(async move {
            let mut place = None;
            if app.in_flight.get() >= app.limits.max_in_flight {
                place = app.line.wait(app.limits.max_queue, app.limits.wait()).await;
                if place.is_none() {
                    return busy();
                }
            }
            let Some(version) = app.current().await else {
                return busy();
            };
            app.answer(version, request, place).wait().await
        }))
    }

    /// Requests that are being answered.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.app.in_flight.get()
    }

    /// Bytes of PHP memory that the application uses now, and its peak.
    #[must_use]
    pub fn memory(&self) -> (usize, usize) {
        self.app.version.borrow().isolate.memory()
    }
}

impl fmt::Debug for Coroutine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coroutine")
            .field("script", &self.app.script.borrow())
            .field("in_flight", &self.in_flight())
            .finish()
    }
}

impl Answer {
    async fn wait(self) -> Response<ResponseBody> {
        match self {
            Answer::Now(response) => response,
            Answer::Later(future) => future.await,
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Answer::Now(_) => "Now",
            Answer::Later(_) => "Later",
        })
    }
}

impl App {
    fn answer(
        self: &Rc<Self>,
        version: Rc<Version>,
        request: Request,
        place: Option<Place>,
    ) -> Answer {
        let exchange = match version.route(request, self.engine.dev) {
            Ok(exchange) => exchange,
            Err(answer) => return Answer::Now(*answer),
        };
        if !version.inputs.as_ref().is_some_and(|i| i.has(&exchange)) {
            return self.run(version, exchange, place);
        }
        let app = self.clone();
        Answer::Later(Box::pin(async move {
            if let Some(inputs) = &version.inputs {
                if let Some(refusal) = inputs.read(&exchange).await {
                    return refusal;
                }
            }
            app.run(version, exchange, place).wait().await
        }))
    }

    fn run(
        self: &Rc<Self>,
        version: Rc<Version>,
        exchange: Rc<Exchange>,
        place: Option<Place>,
    ) -> Answer {
        let task = match version.fiber() {
            Ok(task) => task,
            Err(error) => {
                tracing::error!(%error, "no fiber for a request");
                return Answer::Now(busy());
            }
        };
        task.assign(ffi::RUN_CALL, &exchange);
        match place {
            Some(place) => place.take(),
            None => self.in_flight.set(self.in_flight.get() + 1),
        }
        let turn = if task.is_blocked() {
            None
        } else {
            Some(task.resume())
        };
        if let Some(Turn::Done(outcome)) = turn {
            note_slow_end(&exchange, &self.limits);
            let answer = match outcome {
                Outcome::Ok => exchange.conclude(),
                _ => None,
            };
            self.done(&version, task, &exchange, outcome);
            let answer = answer.or_else(|| exchange.take_ready());
            Exchange::recycle(exchange);
            return Answer::Now(answer.unwrap_or_else(|| plain_answer(500)));
        }
        let (owner, running) = (self.clone(), exchange.clone());
        tokio::task::spawn_local(async move {
            let outcome = match turn {
                Some(turn) => task.drive(&running, &owner.limits, turn).await,
                None => task.start(&running, &owner.limits).await,
            };
            owner.done(&version, task, &running, outcome);
        });
        Answer::Later(Box::pin(async move {
            let guard = LeaveGuard(&exchange);
            let answer = exchange.ready().await;
            std::mem::forget(guard);
            answer
        }))
    }

    /// The version that takes requests; waits while it is being booted again. None when it does not boot, and when too
    /// many requests wait already.
    async fn current(self: &Rc<Self>) -> Option<Rc<Version>> {
        let version = self.version.borrow().clone();
        if !version.retired.get() {
            return Some(version);
        }
        let _waiting = Waiting::begin(self)?;
        let limit = self.limits.request_timeout.unwrap_or(LONGEST_WAIT);
        // The first to wake may bring the new version down before the others have a turn: they wait for the next.
        tokio::time::timeout(limit, async {
            loop {
                let version = self.version.borrow().clone();
                if !version.retired.get() {
                    return Some(version);
                }
                let booted = self.rebooted.notified();
                if !self.rebooting.get() {
                    self.reboot();
                }
                booted.await;
                if self.boot_failed.get() {
                    return None;
                }
            }
        })
        .await
        .unwrap_or(None)
    }

    /// Gives up a place among the requests in flight.
    fn leave(self: &Rc<Self>) {
        if !self.line.is_empty() {
            match self.line.hand_over(Place(Some(self.clone()))) {
                Ok(()) => return,
                Err(place) => place.take(),
            }
        }
        self.in_flight.set(self.in_flight.get() - 1);
    }

    fn done(
        self: &Rc<Self>,
        version: &Rc<Version>,
        task: Task,
        exchange: &Exchange,
        outcome: Outcome,
    ) {
        self.leave();
        match outcome {
            Outcome::Fatal | Outcome::Abandoned => {
                if outcome == Outcome::Abandoned {
                    tracing::error!(uri = %exchange.request.uri, "the isolate of this request is given up");
                    exchange.answer_instead(|| plain_answer(500));
                }
                exchange.finish();
                drop(task);
                self.retire(version);
            }
            Outcome::Ok | Outcome::Cancelled | Outcome::Exception => {
                exchange.finish();
                let mut idle = version.idle.borrow_mut();
                if !version.retired.get() && idle.len() < MAX_IDLE_FIBERS {
                    idle.push(task);
                }
            }
        }
    }

    /// Boots the application anew beside the isolate that failed; that one ends with its last request.
    fn retire(self: &Rc<Self>, version: &Rc<Version>) {
        if version.retired.replace(true) {
            return;
        }
        version.idle.borrow_mut().clear();
        if Rc::ptr_eq(version, &self.version.borrow()) {
            self.reboot();
        }
    }

    fn reboot(self: &Rc<Self>) {
        if self.rebooting.replace(true) {
            return;
        }
        let app = self.clone();
        tokio::task::spawn_local(async move {
            let script = app.script.borrow().clone();
            match Version::boot(&app.engine, &script, &app.limits).await {
                Ok(version) => {
                    app.boot_failed.set(false);
                    // A reload may have been quicker.
                    if app.version.borrow().retired.get() {
                        app.version.replace(Rc::new(version));
                    }
                }
                Err(error) => {
                    app.boot_failed.set(true);
                    tracing::error!(%error, "the application did not boot again after a fatal error; the next request tries again");
                }
            }
            app.rebooting.set(false);
            app.rebooted.notify_waiters();
        });
    }
}

impl Version {
    async fn boot(engine: &Engine, script: &Path, limits: &Limits) -> Result<Version, BootError> {
        let exchange = Exchange::for_script(script, engine.dev);
        Version::boot_with(script, limits, &exchange).await
    }

    async fn boot_with(
        script: &Path,
        limits: &Limits,
        exchange: &Rc<Exchange>,
    ) -> Result<Version, BootError> {
        let isolate = Isolate::new(limits.memory_limit.as_deref())?;
        let task = Task::new(&isolate, BOOT_STACK)?;
        task.assign(ffi::RUN_BOOT, exchange);
        let unlimited = Limits {
            request_timeout: None,
            slow_log: None,
            ..limits.clone()
        };
        let log = BootLog::begin(exchange);
        let outcome = task.start(exchange, &unlimited).await;
        let printed = exchange.take_output();
        if !printed.is_empty() {
            tracing::info!(target: "php", "{}", String::from_utf8_lossy(&printed).trim_end());
        }
        if outcome != Outcome::Ok {
            return Err(log.error(script));
        }
        let routes = exchange.routes.borrow();
        let router = if routes.is_empty() {
            None
        } else {
            Some(Router::new(&routes).map_err(BootError)?)
        };
        Ok(Version {
            isolate,
            router,
            inputs: RouteInputs::take(exchange),
            idle: RefCell::default(),
            retired: Cell::new(false),
        })
    }

    fn fiber(&self) -> Result<Task, BootError> {
        match self.idle.borrow_mut().pop() {
            Some(task) => Ok(task),
            None => Task::new(&self.isolate, FIBER_STACK),
        }
    }

    /// The exchange with its route; or the answer that needs no PHP.
    fn route(
        &self,
        request: Request,
        dev: bool,
    ) -> Result<Rc<Exchange>, Box<Response<ResponseBody>>> {
        let Some(router) = &self.router else {
            return Ok(Exchange::new(request, None, dev));
        };
        let host = request.uri.authority().map(|authority| authority.as_str());
        let found = router.find(&Target {
            method: &request.method,
            path: request.uri.path(),
            host: host.or_else(|| request.headers.get(header::HOST)?.to_str().ok()),
            headers: &request.headers,
        });
        let (index, parameters, allow) = match found {
            Match::Found { index, parameters } => (index, parameters, None),
            Match::NotAllowed {
                allow,
                index: Some(index),
            } if request.method != Method::OPTIONS => (index, Vec::new(), Some(allow)),
            other => return Err(Box::new(refuse(&request, other))),
        };
        let exchange = Exchange::new(request, None, dev);
        exchange.route.set(index);
        *exchange.parameters.borrow_mut() = parameters;
        if let Some(allow) = allow {
            exchange.add_header(b"allow", allow.as_bytes());
        }
        Ok(exchange)
    }
}

/// The answer to a request that no route takes.
fn refuse(request: &Request, why: Match) -> Response<ResponseBody> {
    let empty = |status| {
        let mut answer = Response::new(ResponseBody::empty());
        *answer.status_mut() = status;
        answer
    };
    let options = request.method == Method::OPTIONS;
    let (mut answer, name, value) = match why {
        Match::NotAllowed { allow, .. } if options => {
            (empty(StatusCode::NO_CONTENT), header::ALLOW, allow)
        }
        Match::NotAllowed { allow, .. } => (plain_answer(405), header::ALLOW, allow),
        Match::Redirect { mut path } => {
            if let Some(query) = request.uri.query() {
                path.push('?');
                path.push_str(query);
            }
            (
                empty(StatusCode::PERMANENT_REDIRECT),
                header::LOCATION,
                path,
            )
        }
        Match::Malformed if options && request.uri.path() == "*" => {
            return empty(StatusCode::NO_CONTENT)
        }
        Match::Malformed => return plain_answer(400),
        Match::NotFound | Match::Found { .. } => return plain_answer(404),
    };
    if let Ok(value) = HeaderValue::from_str(&value) {
        answer.headers_mut().insert(name, value);
    }
    answer
}

impl Drop for Version {
    fn drop(&mut self) {
        self.idle.borrow_mut().clear();
        if self.isolate.is_clean() {
            unboot(&self.isolate);
        }
    }
}

/// Ends the request that a boot has left open. Nothing of it may wait: there is nobody to resume it.
fn unboot(isolate: &Rc<Isolate>) {
    if Rc::strong_count(isolate) > 1 {
        return;
    }
    if let Ok(task) = Task::new(isolate, BOOT_STACK) {
        let exchange = Exchange::for_script(Path::new(""), false);
        task.assign(ffi::RUN_UNBOOT, &exchange);
        task.finish_now();
    }
}

/// An answer in place of PHP's, as problem+json without any detail.
pub(crate) fn plain_answer(status: u16) -> Response<ResponseBody> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let title = status.canonical_reason().unwrap_or("Error");
    let text = format!("{{\"title\":\"{title}\",\"status\":{}}}", status.as_u16());
    let mut answer = Response::new(ResponseBody::full(Bytes::from(text)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    answer
}

/// The answer for an uncaught exception: HTML for a browser, problem+json otherwise; detail in development only.
pub(crate) fn answer_exception(
    exchange: &Exchange,
    status: i32,
    class: &str,
    message: &str,
    trace: &str,
) {
    let status = u16::try_from(status).unwrap_or(500);
    let accepts = exchange
        .request
        .headers
        .get(header::ACCEPT)
        .and_then(|a| a.to_str().ok())
        .unwrap_or("");
    let title = StatusCode::from_u16(status)
        .ok()
        .and_then(|s| s.canonical_reason())
        .unwrap_or("Error");
    exchange.set_status(i32::from(status));
    if accepts.contains("text/html") {
        let detail = if exchange.dev {
            format!("<pre>{}</pre>", escape_html(trace))
        } else {
            String::new()
        };
        exchange.add_header(b"content-type", b"text/html; charset=UTF-8");
        exchange.write(
            format!("<!doctype html><title>{title}</title><h1>{status} {title}</h1>{detail}")
                .as_bytes(),
        );
        return;
    }
    let mut text = format!("{{\"title\":{},\"status\":{status}", json_string(title));
    if exchange.dev {
        text.push_str(&format!(
            ",\"exception\":{},\"detail\":{},\"trace\":{}",
            json_string(class),
            json_string(message),
            json_string(trace)
        ));
    }
    text.push('}');
    exchange.add_header(b"content-type", b"application/problem+json");
    exchange.write(text.as_bytes());
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn json_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
