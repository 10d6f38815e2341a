//! Worker mode: an application boots once in each of several isolates, and each of them serves one request at a time.
//!
//! The script returns a handler, as in coroutine mode, or it goes on and serves requests in a loop with
//! `Surus\handle_request()` (`csrc/app/loop.c`).

mod booted;
mod isolates;
mod warm_up;

use std::{cell::RefCell, fmt, path::PathBuf, rc::Rc};

use http::Response;

use crate::{
    body::response_body::ResponseBody,
    engine::process::{BootError, Engine},
    exchange::{
        request::{Request, Script},
        Exchange,
    },
    serve::{classic::ClassicConfig, coroutine::Answer, inspect},
};

use booted::Booted;
pub use isolates::BootScript;
use isolates::{Counters, Isolates, Plan};

/// An application in worker mode.
pub struct WorkerMode {
    engine: Engine,
    config: ClassicConfig,
    counters: Rc<Counters>,
    isolates: RefCell<Rc<Isolates<Booted>>>,
}

/// A version that has booted and does not serve yet.
pub struct PreparedIsolates(Rc<Isolates<Booted>>);

impl WorkerMode {
    /// Boots the script in the first isolates.
    pub async fn boot(
        engine: &Engine,
        script: &BootScript,
        config: ClassicConfig,
    ) -> Result<WorkerMode, BootError> {
        let counters = Rc::default();
        let isolates = Self::start(engine, script, &config, &counters).await?;
        Ok(WorkerMode {
            engine: *engine,
            config,
            counters,
            isolates: RefCell::new(isolates),
        })
    }

    async fn start(
        engine: &Engine,
        script: &BootScript,
        config: &ClassicConfig,
        counters: &Rc<Counters>,
    ) -> Result<Rc<Isolates<Booted>>, BootError> {
        let plan = Plan {
            engine: *engine,
            script: script.clone(),
            config: config.clone(),
        };
        Isolates::start(plan, counters.clone()).await
    }

    /// Starts to answer a request immediately, if an isolate is free. `script` is what the request finds in `$_SERVER`.
    pub fn answer(&self, request: Request, script: Script) -> Answer {
        let exchange = Exchange::new(request, Some(script), self.engine.dev);
        self.isolates.borrow().clone().answer(exchange)
    }

    /// Answers one request. Dropping the future tells PHP that the client has disconnected.
    pub async fn call(&self, request: Request, script: Script) -> Response<ResponseBody> {
        self.answer(request, script).wait().await
    }

    /// Boots `script` while the current version serves. The future must be run to its end.
    pub async fn prepare(&self, script: &BootScript) -> Result<PreparedIsolates, BootError> {
        let isolates = Self::start(&self.engine, script, &self.config, &self.counters).await?;
        Ok(PreparedIsolates(isolates))
    }

    /// From now on this version takes requests; the previous one finishes its own.
    pub fn commit(&self, prepared: PreparedIsolates) {
        let old = self.isolates.replace(prepared.0);
        old.retire();
    }

    /// Requests, and what isolates do between them and at their end, that PHP has not finished.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.counters.unfinished()
    }

    /// Requests that are being answered.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.counters.in_flight()
    }

    /// The number of isolates, and how many of them are idle.
    #[must_use]
    pub fn isolates(&self) -> (usize, usize) {
        self.isolates.borrow().count()
    }

    /// The number of isolates that were replaced because they reached a limit of [`ClassicConfig::recycle`].
    #[must_use]
    pub fn replaced(&self) -> u64 {
        self.counters.replaced()
    }

    /// Bytes of PHP memory that the idle isolates use.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.isolates.borrow().memory()
    }

    /// The files that the current version has included so far.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let isolates = self.isolates.borrow().clone();
        isolates.with_idle(|isolate| inspect::files(isolate.raw()))
    }
}

impl fmt::Debug for WorkerMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerMode")
            .field("isolates", &self.isolates())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PreparedIsolates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedIsolates").finish_non_exhaustive()
    }
}
