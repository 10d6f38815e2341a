//! The isolates of one version of an application, each of which serves one request at a time.
//!
//! A request takes an idle isolate, or waits for one; while requests wait, more isolates boot, up to the maximum. Idle ones
//! end after a while, worn ones when a successor has booted.

use std::{
    cell::{Cell, RefCell},
    ffi::CString,
    future::{poll_fn, Future},
    path::PathBuf,
    pin::{pin, Pin},
    rc::Rc,
    task::Poll,
    time::{Duration, Instant},
};

use http::Response;
use tokio::task::spawn_local;

use crate::{
    body::response_body::ResponseBody,
    engine::{
        isolate::Isolate,
        process::{BootError, Engine},
    },
    exchange::{answers::plain_answer, request::Script, Exchange},
    ffi,
    serve::{
        admission::AdmissionQueue,
        classic::{busy, ClassicConfig, LeaveGuard},
        coroutine::{at_once, version::Version, Answer},
        growth::{watch, Growth},
        task::{Outcome, Task, Turn},
        watch::note_slow_end,
    },
};

/// After a failed boot of a successor.
const TRY_AGAIN: Duration = Duration::from_secs(10);

/// The script of an application in worker mode.
#[derive(Clone, Debug)]
pub struct BootScript {
    /// Its absolute path.
    pub file: PathBuf,
    /// PHP code, without an opening tag, that runs in place of the file: it serves an application whose front controller
    /// answers one request only.
    pub starter: Option<CString>,
    /// Whether each request finds the isolate as the boot has left it.
    pub is_snapshot: bool,
    /// Requests of a snapshot's boot: what they load and make is kept.
    pub warm_up: Vec<http::Uri>,
    /// What they find in `$_SERVER`.
    pub served: Script,
}

/// What to boot, and within which bounds.
pub(crate) struct Plan {
    pub(crate) engine: Engine,
    pub(crate) script: BootScript,
    pub(crate) config: ClassicConfig,
}

/// An isolate in which an application has booted, for one request at a time.
pub(crate) trait OneAtATime: Sized + 'static {
    async fn boot(plan: &Plan) -> Result<Self, BootError>;

    /// The idle task of its requests; `None` at its end.
    fn task(&self) -> Option<&Task>;

    fn version(&self) -> &Version;

    /// Whether it has something to do between two requests: see [`OneAtATime::settle`].
    fn goes_on_by_itself(&self) -> bool;

    /// Does what has to be done between two requests. False: it takes no more of them.
    async fn settle(&mut self) -> bool;

    /// Ends it, which may wait.
    async fn end(self);

    /// Ends it after a fatal error in a request.
    fn fail(self);
}

/// Counts of all versions of an application.
#[derive(Default)]
pub(crate) struct Counters {
    in_flight: Cell<usize>,
    /// Isolates that are between two requests, or end.
    settling: Cell<usize>,
    replaced: Cell<u64>,
}

impl Counters {
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    pub(crate) fn unfinished(&self) -> usize {
        self.in_flight.get() + self.settling.get()
    }

    pub(crate) fn replaced(&self) -> u64 {
        self.replaced.get()
    }
}

fn add(to: &Cell<usize>, count: isize) {
    to.set(to.get().saturating_add_signed(count));
}

pub(crate) struct Isolates<B: OneAtATime> {
    plan: Plan,
    counters: Rc<Counters>,
    /// A stack: those at the bottom have been idle longest.
    idle: RefCell<Vec<Idle<B>>>,
    /// Those that have booted and do not end.
    alive: Cell<usize>,
    booting: Cell<usize>,
    /// Those that will be idle soon, unless they have to wait.
    settling: Cell<usize>,
    queue: AdmissionQueue<Lease<B>>,
    growth: Growth,
    /// Successors that have booted in place of worn isolates, which have yet to end.
    successors: Cell<usize>,
    /// After a boot that has failed: no successor is booted before.
    next_try: Cell<Option<Instant>>,
    retired: Cell<bool>,
    trimming: Cell<bool>,
}

struct Idle<B> {
    booted: B,
    since: Instant,
}

/// An isolate that a request has. Dropped before its work has begun, it goes to the next request.
struct Lease<B: OneAtATime>(Option<(Rc<Isolates<B>>, B)>);

impl<B: OneAtATime> Lease<B> {
    fn version(&self) -> Option<&Version> {
        self.0.as_ref().map(|(_, booted)| booted.version())
    }

    fn take(mut self) -> Option<(Rc<Isolates<B>>, B)> {
        self.0.take()
    }
}

impl<B: OneAtATime> Drop for Lease<B> {
    fn drop(&mut self) {
        if let Some((isolates, booted)) = self.0.take() {
            isolates.hand_over(booted);
        }
    }
}

impl<B: OneAtATime> Isolates<B> {
    /// Boots the first isolates.
    pub(crate) async fn start(plan: Plan, counters: Rc<Counters>) -> Result<Rc<Self>, BootError> {
        let growth = Growth::new(plan.config.memory);
        let isolates = Rc::new(Isolates {
            plan,
            counters,
            idle: RefCell::default(),
            alive: Cell::new(0),
            booting: Cell::new(0),
            settling: Cell::new(0),
            queue: AdmissionQueue::default(),
            growth,
            successors: Cell::new(0),
            next_try: Cell::new(None),
            retired: Cell::new(false),
            trimming: Cell::new(false),
        });
        for _ in 0..isolates.plan.config.min_isolates.max(1) {
            let booted = B::boot(&isolates.plan).await?;
            add(&isolates.alive, 1);
            isolates.hand_over(booted);
        }
        Ok(isolates)
    }

    /// The number of isolates, and how many of them are idle.
    pub(crate) fn count(&self) -> (usize, usize) {
        (self.alive.get(), self.idle.borrow().len())
    }

    /// Bytes of PHP memory that idle isolates use.
    pub(crate) fn memory(&self) -> usize {
        let idle = self.idle.borrow();
        let each = idle.iter().map(|it| it.booted.version().isolate.memory().0);
        each.sum()
    }

    /// The result for an idle isolate; of none, the default.
    pub(crate) fn with_idle<T: Default>(&self, what: impl FnOnce(&Isolate) -> T) -> T {
        let idle = self.idle.borrow();
        idle.last()
            .map(|it| what(&it.booted.version().isolate))
            .unwrap_or_default()
    }

    pub(crate) fn answer(self: Rc<Self>, exchange: Rc<Exchange>) -> Answer {
        let idle = self.idle.borrow_mut().pop();
        if let Some(Idle { booted, .. }) = idle {
            return Lease(Some((self, booted))).answer(exchange);
        }
        Answer::Later(Box::pin(async move {
            match self.wait().await {
                Some(lease) => lease.answer(exchange).wait().await,
                None => busy(),
            }
        }))
    }

    /// Waits for an isolate.
    async fn wait(self: Rc<Self>) -> Option<Lease<B>> {
        let limits = &self.plan.config.limits;
        let bound = limits.max_in_flight.saturating_add(limits.max_queue);
        let room = bound.saturating_sub(self.alive.get());
        let turn = self.queue.wait(room, limits.wait());
        // It has to be in the queue first.
        let mut turn = pin!(turn);
        let mut has_grown = false;
        poll_fn(|cx| {
            let polled = turn.as_mut().poll(cx);
            if polled.is_pending() && !std::mem::replace(&mut has_grown, true) {
                self.grow();
            }
            polled
        })
        .await
    }

    /// Boots isolates for requests that wait.
    fn grow(self: &Rc<Self>) {
        while self.wants_more() && self.growth.admits(self.made()) {
            self.boot_one(false);
        }
        if !self.wants_more() || !self.growth.begin() {
            return;
        }
        let isolates = Rc::downgrade(self);
        spawn_local(watch(move |has_time| {
            let Some(isolates) = isolates.upgrade() else {
                return false;
            };
            if !isolates.wants_more() {
                isolates.growth.rest();
                return false;
            }
            if has_time && isolates.may_try() {
                for _ in 0..Growth::step(isolates.made()) {
                    if !isolates.wants_more() || !isolates.growth.fits(isolates.made()) {
                        break;
                    }
                    isolates.boot_one(false);
                }
            }
            true
        }));
    }

    /// Those that there are, and those that boot.
    fn made(&self) -> usize {
        self.alive.get() + self.booting.get()
    }

    /// Whether more requests wait than isolates will be free soon.
    fn wants_more(&self) -> bool {
        let config = &self.plan.config;
        let max = config.max_isolates.min(config.limits.max_in_flight);
        self.made() < max && self.booting.get() + self.settling.get() < self.queue.len()
    }

    /// False for some time after a boot that has failed.
    fn may_try(&self) -> bool {
        self.next_try.get().is_none_or(|at| at <= Instant::now())
    }

    fn boot_one(self: &Rc<Self>, is_successor: bool) {
        add(&self.booting, 1);
        let this = self.clone();
        spawn_local(async move {
            let booted = B::boot(&this.plan).await;
            add(&this.booting, -1);
            match booted {
                Ok(booted) => {
                    add(&this.alive, 1);
                    if is_successor {
                        add(&this.successors, 1);
                        this.end_worn();
                    }
                    this.hand_over(booted);
                }
                Err(error) => {
                    tracing::error!(%error, "the application did not boot in another isolate");
                    this.next_try.set(Some(Instant::now() + TRY_AGAIN));
                    if !is_successor && this.alive.get() + this.booting.get() == 0 {
                        // The next request tries again.
                        this.queue.clear();
                    }
                }
            }
        });
    }

    /// Takes an isolate back: for the request that has waited longest, or as an idle one.
    fn hand_over(self: &Rc<Self>, booted: B) {
        let Some(booted) = self.keep(booted) else {
            return;
        };
        let lease = Lease(Some((self.clone(), booted)));
        let Err(lease) = self.queue.hand_over(lease) else {
            return;
        };
        let Some((_, booted)) = lease.take() else {
            return;
        };
        if self.retired.get() {
            self.end(booted);
            return;
        }
        self.idle.borrow_mut().push(Idle {
            booted,
            since: Instant::now(),
        });
        self.start_trimming();
    }

    /// The isolate, unless it is worn and has a successor.
    fn keep(self: &Rc<Self>, booted: B) -> Option<B> {
        if self.retired.get() || !self.is_worn(&booted) {
            return Some(booted);
        }
        if self.successors.get() > 0 {
            add(&self.successors, -1);
            self.replace(booted);
            return None;
        }
        if self.booting.get() == 0 && self.may_try() {
            self.boot_one(true);
        }
        Some(booted)
    }

    fn is_worn(&self, booted: &B) -> bool {
        let limits = &self.plan.config.recycle;
        limits.are_passed_by(&booted.version().isolate)
    }

    /// Ends an idle isolate that a successor has booted for.
    fn end_worn(self: &Rc<Self>) {
        let mut idle = self.idle.borrow_mut();
        let Some(at) = idle.iter().position(|it| self.is_worn(&it.booted)) else {
            return;
        };
        let worn = idle.remove(at);
        drop(idle);
        add(&self.successors, -1);
        self.replace(worn.booted);
    }

    fn replace(self: &Rc<Self>, booted: B) {
        let replaced = &self.counters.replaced;
        replaced.set(replaced.get() + 1);
        self.end(booted);
    }

    /// Ends an isolate that nobody uses.
    fn end(self: &Rc<Self>, booted: B) {
        add(&self.alive, -1);
        if !booted.goes_on_by_itself() {
            return;
        }
        add(&self.counters.settling, 1);
        let counters = self.counters.clone();
        spawn_local(async move {
            booted.end().await;
            add(&counters.settling, -1);
        });
    }

    /// It takes no new requests. Those that wait for it are served; isolates end with their requests.
    pub(crate) fn retire(self: &Rc<Self>) {
        self.retired.set(true);
        let idle = std::mem::take(&mut *self.idle.borrow_mut());
        for Idle { booted, .. } in idle {
            self.end(booted);
        }
    }

    /// Takes an isolate back when PHP has finished its request.
    fn done(self: &Rc<Self>, mut booted: B, exchange: &Exchange, outcome: Outcome) {
        if outcome == Outcome::Abandoned {
            tracing::error!(uri = %exchange.request.uri, "the isolate of this request is given up");
            exchange.answer_instead(|| plain_answer(500));
        }
        exchange.finish();
        add(&self.counters.in_flight, -1);
        let isolate = &booted.version().isolate;
        isolate.count_request();
        if matches!(outcome, Outcome::Fatal | Outcome::Abandoned) || !isolate.is_clean() {
            booted.fail();
            self.lose();
            return;
        }
        if !booted.goes_on_by_itself() {
            self.hand_over(booted);
            return;
        }
        add(&self.settling, 1);
        add(&self.counters.settling, 1);
        let this = self.clone();
        // After the response, which a turn of its own sends first.
        spawn_local(async move {
            let goes_on = {
                let mut settle = pin!(booted.settle());
                let first = poll_once(settle.as_mut()).await;
                add(&this.settling, -1);
                match first {
                    Some(goes_on) => goes_on,
                    None => {
                        this.grow();
                        settle.await
                    }
                }
            };
            add(&this.counters.settling, -1);
            if goes_on {
                this.hand_over(booted);
            } else {
                drop(booted);
                this.lose();
            }
        });
    }

    /// An isolate has ended by itself, or was freed.
    fn lose(self: &Rc<Self>) {
        add(&self.alive, -1);
        self.grow();
        let min = self.plan.config.min_isolates;
        if !self.retired.get() && self.alive.get() + self.booting.get() < min {
            self.boot_one(false);
        }
    }

    /// Ends isolates that have been idle for long. Runs only while there are more than the minimum.
    fn start_trimming(self: &Rc<Self>) {
        let config = &self.plan.config;
        let min = config.min_isolates;
        if self.trimming.get() || self.idle.borrow().len() <= min {
            return;
        }
        self.trimming.set(true);
        let this = Rc::downgrade(self);
        let period = config.idle.max(Duration::from_millis(100));
        spawn_local(async move {
            loop {
                tokio::time::sleep(period).await;
                let Some(this) = this.upgrade() else { return };
                this.trim();
                if this.idle.borrow().len() <= min {
                    this.trimming.set(false);
                    return;
                }
            }
        });
    }

    fn trim(self: &Rc<Self>) {
        let config = &self.plan.config;
        let now = Instant::now();
        loop {
            let mut idle = self.idle.borrow_mut();
            let is_old = |it: &Idle<B>| now.duration_since(it.since) >= config.idle;
            if idle.len() <= config.min_isolates || !idle.first().is_some_and(is_old) {
                return;
            }
            let old = idle.remove(0);
            drop(idle);
            self.end(old.booted);
        }
    }
}

impl<B: OneAtATime> Lease<B> {
    /// Routes the request and runs it. Without PHP, or if it is complete at once, the answer is there on return.
    fn answer(self, exchange: Rc<Exchange>) -> Answer {
        let Some(version) = self.version() else {
            return Answer::Now(busy());
        };
        if let Some(answer) = version.route(&exchange) {
            return Answer::Now(answer);
        }
        let inputs = version.inputs.as_ref();
        let Some(inputs) = inputs.filter(|inputs| inputs.has(&exchange)).cloned() else {
            return self.run(exchange);
        };
        match at_once(inputs.read(&exchange)).filter(|_| exchange.has_whole_body()) {
            Some(Some(refusal)) => return Answer::Now(refusal),
            Some(None) => return self.run(exchange),
            None => {}
        }
        Answer::Later(Box::pin(async move {
            if let Some(refusal) = inputs.read(&exchange).await {
                return refusal;
            }
            self.run(exchange).wait().await
        }))
    }

    fn run(self, exchange: Rc<Exchange>) -> Answer {
        let Some((isolates, booted)) = self.take() else {
            return Answer::Now(busy());
        };
        let Some(task) = booted.task() else {
            return Answer::Now(busy());
        };
        task.assign(ffi::RUN_CALL, &exchange);
        add(&isolates.counters.in_flight, 1);
        let turn = task.resume();
        if let Turn::Done(outcome) = turn {
            note_slow_end(&exchange, &isolates.plan.config.limits);
            isolates.done(booted, &exchange, outcome);
            let answer = exchange.take_ready().unwrap_or_else(|| plain_answer(500));
            Exchange::recycle(exchange);
            return Answer::Now(answer);
        }
        let running = exchange.clone();
        spawn_local(async move {
            let limits = &isolates.plan.config.limits;
            let outcome = match booted.task() {
                Some(task) => task.drive(&running, limits, turn).await,
                None => Outcome::Abandoned,
            };
            isolates.done(booted, &running, outcome);
        });
        Answer::Later(Box::pin(async move {
            let guard = LeaveGuard(&exchange);
            let answer: Response<ResponseBody> = exchange.ready().await;
            std::mem::forget(guard);
            answer
        }))
    }
}

/// Polls once: the output, if the future is ready.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
