//! Classic sites: each request is a real PHP request in an isolate of its own while it runs.

use std::{
    cell::{Cell, RefCell},
    fmt,
    rc::Rc,
    time::{Duration, Instant},
};

use http::{header, HeaderValue, Response};

use crate::{
    body::response_body::ResponseBody,
    engine::{
        isolate::{Isolate, IsolateLimits},
        process::{BootError, Engine},
    },
    exchange::{
        answers::plain_answer,
        request::{AppLimits, Request, Script},
        Exchange,
    },
    ffi,
    serve::{
        admission::AdmissionQueue,
        growth::{watch, Growth},
        task::{Outcome, Task, Turn},
        watch::note_slow_end,
    },
};

/// The usual size of a process's main stack: code that runs under php-fpm must not overflow it here.
const STACK_SIZE: usize = 8 * 1024 * 1024;

/// Bounds of a classic site in one worker.
#[derive(Debug, Clone)]
pub struct ClassicConfig {
    /// Limits of a request.
    pub limits: AppLimits,
    /// The number of isolates that are kept when idle.
    pub min_isolates: usize,
    /// Requests that run at a time; more wait in the admission queue.
    pub max_isolates: usize,
    /// Bytes that this process may take before no more isolates are made.
    pub memory: u64,
    /// How long an isolate above the minimum stays idle before it is freed.
    pub idle: Duration,
    /// When an isolate is replaced.
    pub recycle: IsolateLimits,
}

/// Runs PHP files as php-fpm does.
pub struct Classic {
    pool: Rc<Pool>,
    dev: bool,
}

struct Pool {
    config: ClassicConfig,
    idle: RefCell<Vec<(Task, Instant)>>,
    alive: Cell<usize>,
    /// The number of isolates that were replaced because they reached a limit of `recycle`.
    replaced: Cell<u64>,
    /// Requests that wait for an isolate.
    queue: AdmissionQueue<Handed>,
    growth: Growth,
    trimming: Cell<bool>,
}

impl Classic {
    /// Makes the first `min_isolates` isolates.
    pub fn new(engine: &Engine, config: ClassicConfig) -> Result<Classic, BootError> {
        let pool = Rc::new(Pool {
            idle: RefCell::default(),
            alive: Cell::new(0),
            replaced: Cell::new(0),
            queue: AdmissionQueue::default(),
            growth: Growth::new(config.memory),
            trimming: Cell::new(false),
            config,
        });
        for _ in 0..pool.config.min_isolates {
            let task = pool.make()?;
            pool.idle.borrow_mut().push((task, Instant::now()));
        }
        Ok(Classic {
            pool,
            dev: engine.dev,
        })
    }

    /// Runs `script` for the request. Dropping the future tells PHP that the client has disconnected.
    pub async fn call(&self, request: Request, script: Script) -> Response<ResponseBody> {
        self.run(request, Some(script)).await
    }

    /// Runs a [job](Request::job), in place of a script. Dropping the future tells PHP that nobody waits for it.
    pub async fn call_job(&self, job: Request) -> Response<ResponseBody> {
        self.run(job, None).await
    }

    async fn run(&self, request: Request, script: Option<Script>) -> Response<ResponseBody> {
        let exchange = Exchange::new(request, script, self.dev);
        let task = match self.pool.clone().acquire().await {
            Ok(task) => task,
            Err(answer) => return answer,
        };
        task.assign(ffi::RUN_CLASSIC, &exchange);
        let turn = task.resume();
        if let Turn::Done(outcome) = turn {
            note_slow_end(&exchange, &self.pool.config.limits);
            self.pool.done(task, &exchange, outcome);
            return exchange.take_ready().unwrap_or_else(|| plain_answer(500));
        }
        let (pool, running) = (self.pool.clone(), exchange.clone());
        tokio::task::spawn_local(async move {
            let outcome = task.drive(&running, &pool.config.limits, turn).await;
            pool.done(task, &running, outcome);
        });
        let guard = LeaveGuard(&exchange);
        let answer = exchange.ready().await;
        std::mem::forget(guard);
        answer
    }

    /// The number of isolates, and how many of them are idle.
    #[must_use]
    pub fn isolates(&self) -> (usize, usize) {
        (self.pool.alive.get(), self.pool.idle.borrow().len())
    }

    /// The number of isolates that were replaced because they reached a limit of [`ClassicConfig::recycle`].
    #[must_use]
    pub fn replaced(&self) -> u64 {
        self.pool.replaced.get()
    }
}

impl fmt::Debug for Classic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Classic")
            .field("isolates", &self.isolates())
            .finish()
    }
}

/// Tells PHP when the future that waits for its answer is dropped.
pub(crate) struct LeaveGuard<'a>(pub(crate) &'a Exchange);

impl Drop for LeaveGuard<'_> {
    fn drop(&mut self) {
        self.0.client_has_left();
        // Nobody takes it any more: the WebSocket in it is told, or the stream.
        drop(self.0.take_ready());
    }
}

/// A task that is handed over to a queued request. Passes to the next one if that request is gone.
struct Handed(Option<(Rc<Pool>, Task)>);

impl Handed {
    fn take(mut self) -> Option<Task> {
        self.0.take().map(|(_, task)| task)
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        if let Some((pool, task)) = self.0.take() {
            pool.hand_over(task);
        }
    }
}

impl Pool {
    fn make(&self) -> Result<Task, BootError> {
        let isolate = Isolate::new(self.config.limits.memory_limit.as_deref())?;
        let task = Task::new(&isolate, STACK_SIZE)?;
        self.alive.set(self.alive.get() + 1);
        Ok(task)
    }

    async fn acquire(self: Rc<Self>) -> Result<Task, Response<ResponseBody>> {
        loop {
            let idle = self.idle.borrow_mut().pop();
            match idle {
                Some((task, _)) if self.config.recycle.are_passed_by(task.isolate()) => {
                    self.replace(task);
                }
                Some((task, _)) => return Ok(task),
                None => break,
            }
        }
        let limits = &self.config.limits;
        if self.alive.get() < self.max() && self.growth.admits(self.alive.get()) {
            return self.make().map_err(|error| {
                tracing::error!(%error, "no isolate for a request");
                busy()
            });
        }
        self.start_growing();
        let bound = limits.max_in_flight.saturating_add(limits.max_queue);
        let handed = self
            .queue
            .wait(bound.saturating_sub(self.alive.get()), limits.wait())
            .await;
        handed.and_then(Handed::take).ok_or_else(busy)
    }

    /// Frees an isolate that has reached a limit of `recycle`.
    fn replace(&self, task: Task) {
        drop(task);
        self.alive.set(self.alive.get() - 1);
        self.replaced.set(self.replaced.get() + 1);
    }

    /// Takes the task back. After a failure, or when its isolate has reached a limit of `recycle`, frees the isolate.
    fn done(self: &Rc<Self>, task: Task, exchange: &Exchange, outcome: Outcome) {
        if outcome == Outcome::Abandoned {
            tracing::error!(uri = %exchange.request.uri, "the isolate of this request is given up");
            exchange.answer_instead(|| plain_answer(500));
        }
        exchange.finish();
        let isolate = task.isolate();
        isolate.count_request();
        if matches!(outcome, Outcome::Fatal | Outcome::Abandoned) || !isolate.is_clean() {
            drop(task);
            self.alive.set(self.alive.get() - 1);
        } else if self.config.recycle.are_passed_by(isolate) {
            self.replace(task);
        } else {
            self.hand_over(task);
            return;
        }
        if !self.queue.is_empty() && self.growth.fits(self.alive.get()) {
            self.grow_by_one();
        }
    }

    /// The largest number of isolates.
    fn max(&self) -> usize {
        let limits = &self.config.limits;
        self.config.max_isolates.min(limits.max_in_flight)
    }

    /// Makes one for the request that has waited longest.
    fn grow_by_one(self: &Rc<Self>) -> bool {
        match self.make() {
            Ok(task) => self.hand_over(task),
            Err(error) => {
                tracing::error!(%error, "no isolate for a request");
                return false;
            }
        }
        true
    }

    /// Makes isolates while requests wait and there is room and time for more.
    fn start_growing(self: &Rc<Self>) {
        if self.alive.get() >= self.max() || !self.growth.begin() {
            return;
        }
        let pool = Rc::downgrade(self);
        tokio::task::spawn_local(watch(move |has_time| {
            let Some(pool) = pool.upgrade() else {
                return false;
            };
            if pool.queue.is_empty() || pool.alive.get() >= pool.max() {
                pool.growth.rest();
                return false;
            }
            for _ in 0..Growth::step(pool.alive.get()) {
                let alive = pool.alive.get();
                let may = alive < pool.max()
                    && (pool.growth.admits(alive) || (has_time && pool.growth.fits(alive)));
                if pool.queue.is_empty() || !may || !pool.grow_by_one() {
                    break;
                }
            }
            true
        }));
    }

    /// Gives the task to the request that has waited longest.
    fn hand_over(self: &Rc<Self>, task: Task) {
        let handed = Handed(Some((self.clone(), task)));
        if let Err(Some(task)) = self.queue.hand_over(handed).map_err(Handed::take) {
            self.idle.borrow_mut().push((task, Instant::now()));
            self.start_trimming();
        }
    }

    /// Frees isolates that have been idle for long. Runs only while there are more than `min_isolates`.
    fn start_trimming(self: &Rc<Self>) {
        if self.trimming.get() || self.idle.borrow().len() <= self.config.min_isolates {
            return;
        }
        self.trimming.set(true);
        let pool = Rc::downgrade(self);
        let period = self.config.idle.max(Duration::from_millis(100));
        tokio::task::spawn_local(async move {
            loop {
                tokio::time::sleep(period).await;
                let Some(pool) = pool.upgrade() else { return };
                pool.trim();
                if pool.idle.borrow().len() <= pool.config.min_isolates {
                    pool.trimming.set(false);
                    return;
                }
            }
        });
    }

    fn trim(&self) {
        let mut idle = self.idle.borrow_mut();
        let now = Instant::now();
        let mut freed = 0;
        // The pool is a stack: those at the bottom have been idle longest.
        while idle.len() > self.config.min_isolates
            && now.duration_since(idle[0].1) >= self.config.idle
        {
            idle.remove(0);
            self.alive.set(self.alive.get() - 1);
            freed += 1;
        }
        if freed >= MANY {
            // SAFETY: gives free pages of this process's heap back to the system; nothing that is in use is touched.
            unsafe { libc::malloc_trim(0) };
        }
    }
}

/// From this number of freed isolates on, `malloc_trim` is worth its time: malloc keeps free memory below used memory.
const MANY: usize = 8;

pub(crate) fn busy() -> Response<ResponseBody> {
    let mut answer = plain_answer(503);
    answer
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}
