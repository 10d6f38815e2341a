//! One boot of an application.
//!
//! In worker mode, too: there each isolate has one fiber.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    path::Path,
    rc::Rc,
    time::Duration,
};

use http::Response;

use crate::{
    body::response_body::ResponseBody,
    engine::{
        isolate::Isolate,
        process::{BootError, Engine},
    },
    exchange::{
        inputs::RouteInputs, request::AppLimits, routing::find_route, timers::Timer, Exchange,
    },
    ffi,
    router::Router,
    serve::{
        refresh::BootLog,
        task::{Outcome, Task},
    },
};

/// As large as the stack of PHP's own fibers.
pub(crate) const FIBER_STACK: usize = 2 * 1024 * 1024;
const BOOT_STACK: usize = 8 * 1024 * 1024;

/// One boot of the script.
pub(crate) struct Version {
    pub(crate) isolate: Rc<Isolate>,
    pub(super) router: Option<Router>,
    /// The inputs of routes, if any route has one.
    pub(crate) inputs: Option<Rc<RouteInputs>>,
    pub(super) idle: RefCell<Vec<Task>>,
    /// No new requests: the isolate has seen a fatal error.
    pub(super) retired: Cell<bool>,
    pub(super) timers: Vec<Timer>,
    /// The queues whose jobs it runs, as JSON.
    pub(super) queues: Option<String>,
    /// What runs in the background.
    pub(super) background: RefCell<Vec<Rc<Exchange>>>,
    /// Requests that have a WebSocket.
    pub(super) websockets: RefCell<HashMap<*const Exchange, Rc<Exchange>>>,
    /// Those of them that run.
    pub(super) timer_runs: Cell<usize>,
}

/// A boot that takes longer than this, or half of its time limit, logs a backtrace.
const SLOW_BOOT: Duration = Duration::from_secs(10);

/// Tolerance for the coarse clock that records the start of an exchange.
const CLOCK: Duration = Duration::from_millis(20);

impl Version {
    /// A version that will serve. Its boot has a time limit: an endless boot would not be noticed.
    pub(super) async fn boot(
        engine: &Engine,
        script: &Path,
        limits: &AppLimits,
    ) -> Result<Version, BootError> {
        let exchange = Exchange::for_script(script, engine.dev);
        Version::boot_within(limits.boot_timeout, script, limits, &exchange).await
    }

    /// A version for a command at a terminal, without a time limit.
    pub(super) async fn boot_with(
        script: &Path,
        limits: &AppLimits,
        exchange: &Rc<Exchange>,
    ) -> Result<Version, BootError> {
        Version::boot_within(None, script, limits, exchange).await
    }

    async fn boot_within(
        request_timeout: Option<Duration>,
        script: &Path,
        limits: &AppLimits,
        exchange: &Rc<Exchange>,
    ) -> Result<Version, BootError> {
        let isolate = Isolate::new(limits.memory_limit.as_deref())?;
        let (version, _) =
            Version::boot_in(isolate, request_timeout, script, limits, exchange).await?;
        Ok(version)
    }

    /// Returns the task of the boot, too. While that exists, the isolate cannot be ended.
    pub(crate) async fn boot_in(
        isolate: Rc<Isolate>,
        request_timeout: Option<Duration>,
        script: &Path,
        limits: &AppLimits,
        exchange: &Rc<Exchange>,
    ) -> Result<(Version, Task), BootError> {
        let task = Task::new(&isolate, BOOT_STACK)?;
        task.assign(ffi::RUN_BOOT, exchange);
        let limits = AppLimits {
            request_timeout,
            slow_log: request_timeout.map(|limit| SLOW_BOOT.min(limit / 2)),
            ..limits.clone()
        };
        let log = BootLog::begin(exchange);
        let outcome = task.start(exchange, &limits).await;
        log_output(exchange);
        if outcome != Outcome::Ok {
            let took = exchange.started().elapsed() + CLOCK;
            let late = request_timeout.filter(|limit| took >= *limit);
            return Err(log.error(script, late));
        }
        let routes = exchange.routes.borrow();
        let router = if routes.is_empty() {
            None
        } else {
            let wrong = |error| BootError(format!("{} did not boot: {error}", script.display()));
            Some(Router::new(&routes).map_err(wrong)?)
        };
        let version = Version {
            isolate,
            router,
            inputs: RouteInputs::take(exchange),
            idle: RefCell::default(),
            retired: Cell::new(false),
            timers: exchange.timers.declared.take(),
            queues: exchange.timers.queues.take(),
            background: RefCell::default(),
            websockets: RefCell::default(),
            timer_runs: Cell::new(0),
        };
        Ok((version, task))
    }

    pub(super) fn fiber(&self) -> Result<Task, BootError> {
        match self.idle.borrow_mut().pop() {
            Some(task) => Ok(task),
            None => Task::new(&self.isolate, FIBER_STACK),
        }
    }

    /// Finds the exchange's route, or returns an answer that needs no PHP.
    pub(crate) fn route(&self, exchange: &Exchange) -> Option<Response<ResponseBody>> {
        find_route(self.router.as_ref(), exchange)
    }
}

impl Drop for Version {
    fn drop(&mut self) {
        self.idle.borrow_mut().clear();
        if self.isolate.is_clean() {
            unboot(&self.isolate);
        }
    }
}

/// Logs what a script without a client has printed.
pub(crate) fn log_output(exchange: &Exchange) {
    let printed = exchange.take_output();
    if !printed.is_empty() {
        tracing::info!(target: "php", "{}", String::from_utf8_lossy(&printed).trim_end());
    }
}

/// Ends the request that a boot has left open. It cannot park: nothing would resume it.
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
