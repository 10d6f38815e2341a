//! Coroutine applications: booted once, each request in a fiber of one isolate.

mod background;
mod conversations;
mod queue;
mod reboot;
mod reload;
mod timers;
pub(crate) mod version;
mod websockets;

use std::{
    cell::{Cell, RefCell},
    fmt,
    future::Future,
    path::{Path, PathBuf},
    pin::{pin, Pin},
    rc::Rc,
    task::{Context, Poll, Waker},
};

use http::Response;
use tokio::sync::Notify;

use crate::{
    body::response_body::ResponseBody,
    engine::process::{BootError, Engine},
    exchange::{
        answers::plain_answer,
        request::{AppLimits, Request},
        Exchange,
    },
    ffi,
    serve::{
        admission::AdmissionQueue,
        classic::{busy, LeaveGuard},
        task::{Outcome, Task, Turn},
        watch::note_slow_end,
    },
};

use conversations::Events;
pub use queue::JobEnd;
pub use reload::Prepared;
pub use timers::TimerInfo;
use version::Version;
pub(crate) use version::FIBER_STACK;

/// Idle fibers that are kept for the next burst.
const MAX_IDLE_FIBERS: usize = 256;
/// A route of an application, for people.
#[derive(Debug, Clone)]
pub struct RouteInfo {
    /// Separated by commas; "*" is every method.
    pub methods: String,
    /// As the application has declared it.
    pub pattern: String,
    /// Empty for every host.
    pub host: String,
    /// `name` or `name: value`, which the request must have.
    pub headers: Vec<String>,
    /// Its name, its handler and its middleware.
    pub about: String,
}

/// A booted application.
#[derive(Clone)]
pub struct Coroutine {
    app: Rc<App>,
}

struct App {
    engine: Engine,
    script: RefCell<PathBuf>,
    limits: AppLimits,
    version: RefCell<Rc<Version>>,
    in_flight: Cell<usize>,
    /// Requests that have a WebSocket, in all versions. They are not in flight.
    websockets: Cell<usize>,
    /// WebSockets that have no fiber, and in which something has happened.
    events: Rc<Events>,
    /// Requests above `max_in_flight`.
    queue: AdmissionQueue<Admission>,
    /// Requests that wait for a boot.
    waiting: Cell<usize>,
    rebooting: Cell<bool>,
    /// Whether the last boot failed.
    boot_failed: Cell<bool>,
    rebooted: Notify,
    /// Whether timers may begin.
    runs_timers: Cell<bool>,
    /// The worker ends: nothing begins in the background.
    ends: Cell<bool>,
    /// Runs of timers, in all versions.
    timer_runs: Cell<usize>,
}

/// A place among the requests in flight, handed over to a queued request. Passes to the next one if that request is
/// gone.
struct Admission(Option<Rc<App>>);

impl Admission {
    /// The request is in flight from here on.
    fn take(mut self) {
        self.0 = None;
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(app) = self.0.take() {
            app.leave();
        }
    }
}

/// The answer to a request.
pub enum Answer {
    /// PHP did not park, or was not needed.
    Now(Response<ResponseBody>),
    /// Dropping the future tells PHP that the client has disconnected.
    Later(Pin<Box<dyn Future<Output = Response<ResponseBody>>>>),
}

impl Coroutine {
    /// Runs the script and takes what it returns as the application.
    pub async fn boot(
        engine: &Engine,
        script: &Path,
        limits: AppLimits,
    ) -> Result<Coroutine, BootError> {
        let version = Version::boot(engine, script, &limits).await?;
        let app = Coroutine {
            app: Rc::new(App {
                engine: *engine,
                script: RefCell::new(script.to_path_buf()),
                limits,
                version: RefCell::new(Rc::new(version)),
                in_flight: Cell::new(0),
                websockets: Cell::new(0),
                events: Rc::default(),
                queue: AdmissionQueue::default(),
                waiting: Cell::new(0),
                rebooting: Cell::new(false),
                boot_failed: Cell::new(false),
                rebooted: Notify::new(),
                runs_timers: Cell::new(false),
                ends: Cell::new(false),
                timer_runs: Cell::new(0),
            }),
        };
        let version = app.app.version.borrow().clone();
        app.app.allow_background(&version);
        Ok(app)
    }

    /// Boots the application for its OpenAPI document, as JSON.
    pub async fn openapi(
        engine: &Engine,
        script: &Path,
        limits: &AppLimits,
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
        limits: &AppLimits,
    ) -> Result<Vec<RouteInfo>, BootError> {
        let exchange = Exchange::for_script(script, engine.dev);
        let _version = Version::boot_with(script, limits, &exchange).await?;
        let declared = exchange.routes.take();
        let shown = declared
            .into_iter()
            // Routes that are added for other routes (OPTIONS for CORS) have no description.
            .filter(|route| !route.pattern.is_empty() && !route.about.is_empty());
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

    /// Answers one request. Dropping the future tells PHP that the client has disconnected.
    pub async fn call(&self, request: Request) -> Response<ResponseBody> {
        self.answer(request).wait().await
    }

    /// Starts to answer a request immediately. The answer is complete on return if its PHP code does not park.
    #[must_use]
    #[inline]
    pub fn answer(&self, request: Request) -> Answer {
        let app = &self.app;
        let exchange = Exchange::new(request, None, app.engine.dev);
        let version = app.version.borrow().clone();
        if app.in_flight.get() < app.limits.max_in_flight && !version.retired.get() {
            return app.answer(version, exchange, None);
        }
        let app = app.clone();
        Answer::Later(Box::pin(async move {
            let mut admission = None;
            if app.in_flight.get() >= app.limits.max_in_flight {
                admission = app
                    .queue
                    .wait(app.limits.max_queue, app.limits.wait())
                    .await;
                if admission.is_none() {
                    return busy();
                }
            }
            let Some(version) = app.current().await else {
                return busy();
            };
            app.answer(version, exchange, admission).wait().await
        }))
    }

    /// Requests that are being answered.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.app.in_flight.get()
    }

    /// Requests that have a WebSocket, and are not done.
    #[must_use]
    pub fn websockets(&self) -> usize {
        self.app.websockets.get()
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
    pub(crate) async fn wait(self) -> Response<ResponseBody> {
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

/// The output of a future if it is ready at the first poll.
pub(crate) fn at_once<F: Future>(future: F) -> Option<F::Output> {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

impl App {
    #[inline]
    fn answer(
        self: &Rc<Self>,
        version: Rc<Version>,
        exchange: Rc<Exchange>,
        admission: Option<Admission>,
    ) -> Answer {
        if let Some(answer) = version.route(&exchange) {
            Exchange::recycle(exchange);
            return Answer::Now(answer);
        }
        let inputs = version.inputs.as_ref();
        let Some(inputs) = inputs.filter(|inputs| inputs.has(&exchange)).cloned() else {
            return self.run(version, exchange, admission);
        };
        if exchange.has_whole_body() {
            match at_once(inputs.read(&exchange)) {
                Some(Some(refusal)) => return Answer::Now(refusal),
                Some(None) => return self.run(version, exchange, admission),
                None => {}
            }
        }
        let app = self.clone();
        Answer::Later(Box::pin(async move {
            if let Some(refusal) = inputs.read(&exchange).await {
                return refusal;
            }
            app.run(version, exchange, admission).wait().await
        }))
    }

    #[inline]
    fn run(
        self: &Rc<Self>,
        version: Rc<Version>,
        exchange: Rc<Exchange>,
        admission: Option<Admission>,
    ) -> Answer {
        let task = match version.fiber() {
            Ok(task) => task,
            Err(error) => {
                tracing::error!(%error, "no fiber for a request");
                return Answer::Now(busy());
            }
        };
        task.assign(ffi::RUN_CALL, &exchange);
        match admission {
            Some(admission) => admission.take(),
            None => self.in_flight.set(self.in_flight.get() + 1),
        }
        let turn = if task.is_blocked() {
            None
        } else {
            Some(task.resume())
        };
        if let Some(Turn::Done(outcome)) = turn {
            note_slow_end(&exchange, &self.limits);
            let task = match self.converse(&version, &exchange, task, outcome) {
                Ok(()) => return Answer::Now(exchange.conclude_head()),
                Err(task) => task,
            };
            self.done(&version, task, &exchange, outcome);
            let answer = exchange.conclude(|| plain_answer(500));
            Exchange::recycle(exchange);
            return Answer::Now(answer);
        }
        let (owner, running) = (self.clone(), exchange.clone());
        let (app, its_version) = (self.clone(), version.clone());
        tokio::task::spawn_local(async move {
            let outcome = match turn {
                Some(turn) => task.drive(&running, &owner.limits, turn).await,
                None => task.start(&running, &owner.limits).await,
            };
            let Err(task) = owner.converse(&version, &running, task, outcome) else {
                return;
            };
            version.forget_websocket(&running);
            owner.done(&version, task, &running, outcome);
            running.finish();
        });
        Answer::Later(Box::pin(async move {
            let guard = LeaveGuard(&exchange);
            let answer = exchange.ready().await;
            std::mem::forget(guard);
            app.begin_websocket(&its_version, &exchange);
            answer
        }))
    }

    /// Gives up a place among the requests in flight.
    fn leave(self: &Rc<Self>) {
        if !self.queue.is_empty() {
            match self.queue.hand_over(Admission(Some(self.clone()))) {
                Ok(()) => return,
                Err(admission) => admission.take(),
            }
        }
        self.in_flight.set(self.in_flight.get() - 1);
    }

    /// Cleans up after PHP's work has ended. The caller sends the answer.
    fn done(
        self: &Rc<Self>,
        version: &Rc<Version>,
        task: Task,
        exchange: &Exchange,
        outcome: Outcome,
    ) {
        match exchange.gave_up_place.get() {
            true => self.websockets.set(self.websockets.get() - 1),
            false => self.leave(),
        }
        if outcome == Outcome::Abandoned {
            tracing::error!(uri = %exchange.request.uri, "the isolate of this request is given up");
            exchange.answer_instead(|| plain_answer(500));
        }
        if matches!(outcome, Outcome::Fatal | Outcome::Abandoned) {
            exchange.finish();
        }
        self.put_back(version, task, outcome);
    }

    /// Its fiber is for others, unless it has ended the version.
    fn put_back(self: &Rc<Self>, version: &Rc<Version>, task: Task, outcome: Outcome) {
        match outcome {
            Outcome::Fatal | Outcome::Abandoned => {
                drop(task);
                self.retire(version);
            }
            Outcome::Ok | Outcome::Cancelled | Outcome::Exception => {
                let mut idle = version.idle.borrow_mut();
                if !version.retired.get() && idle.len() < MAX_IDLE_FIBERS {
                    idle.push(task);
                }
            }
        }
    }
}
