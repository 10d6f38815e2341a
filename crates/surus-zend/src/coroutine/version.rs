//! One boot of an application.

use std::{
    cell::{Cell, RefCell},
    path::Path,
    rc::Rc,
};

use http::{header, HeaderValue, Method, Response, StatusCode};

use crate::{
    answers::plain_answer,
    exchange::Exchange,
    ffi,
    inputs::RouteInputs,
    isolate::Isolate,
    refresh::BootLog,
    request::{Limits, Request},
    router::{Match, Router, Target},
    task::{Outcome, Task},
    BootError, Engine, ResponseBody,
};

/// As the engine's own fibers.
const FIBER_STACK: usize = 2 * 1024 * 1024;
const BOOT_STACK: usize = 8 * 1024 * 1024;

/// One boot of the script.
pub(super) struct Version {
    pub(super) isolate: Rc<Isolate>,
    pub(super) router: Option<Router>,
    /// What routes take as input, if any does.
    pub(super) inputs: Option<Rc<RouteInputs>>,
    pub(super) idle: RefCell<Vec<Task>>,
    /// No new requests: the isolate has seen a fatal error.
    pub(super) retired: Cell<bool>,
}

impl Version {
    pub(super) async fn boot(
        engine: &Engine,
        script: &Path,
        limits: &Limits,
    ) -> Result<Version, BootError> {
        let exchange = Exchange::for_script(script, engine.dev);
        Version::boot_with(script, limits, &exchange).await
    }

    pub(super) async fn boot_with(
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

    pub(super) fn fiber(&self) -> Result<Task, BootError> {
        match self.idle.borrow_mut().pop() {
            Some(task) => Ok(task),
            None => Task::new(&self.isolate, FIBER_STACK),
        }
    }

    /// The exchange with its route; or the answer that needs no PHP.
    pub(super) fn route(
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
