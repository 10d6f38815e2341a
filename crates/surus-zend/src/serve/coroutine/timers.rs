//! Runs the timers of an application: in the worker that leads, each as a request that nobody has sent, never at the same time
//! as itself.

use std::{
    rc::{Rc, Weak},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{version::log_output, App, Coroutine, Version};
use crate::{
    body::websocket::topics,
    exchange::{
        owed::Owed,
        request::AppLimits,
        timers::{Run, Timer, When},
        Exchange,
    },
    ffi,
    serve::task::Outcome,
    shared::{lead, post},
};

/// The clock may be set, and the worker that leads may end: each timer looks again after this time.
const LOOK: f64 = 1.0;
/// A timer of the calendar that is later than this, because the machine slept, is left out.
const TOO_LATE: f64 = 90.0;
/// How long one that runs once waits for a worker that leads, when it is another one, and may end.
const HANDED_OVER: f64 = 5.0;

/// A timer, for `surus status`.
#[derive(Debug, Clone)]
pub struct TimerInfo {
    /// What it is, and where it was declared.
    pub about: String,
    /// Until it runs next; `None` if it does not.
    pub next: Option<Duration>,
    /// It runs now.
    pub is_running: bool,
    /// How often it has begun in this version of the application.
    pub runs: u64,
}

fn now() -> f64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    time.unwrap_or_default().as_secs_f64()
}

/// The first multiple of a period after this time.
fn multiple(period: f64, after: f64) -> f64 {
    let next = ((after / period).floor() + 1.0) * period;
    if next > after {
        next
    } else {
        after + period
    }
}

impl Timer {
    fn schedule(&self, after: f64) {
        match self.when {
            When::After(_) => self.is_over.set(true),
            When::Every(period) => self.next.set(multiple(period, after)),
            When::Cron => {}
        }
    }

    /// It is another worker's.
    fn pass(&self, now: f64) {
        match self.when {
            When::After(_) => self.is_over.set(now - self.next.get() > HANDED_OVER),
            When::Every(period) => self.next.set(multiple(period, now)),
            When::Cron => self.is_stale.set(true),
        }
    }
}

impl Coroutine {
    /// From now on, the application's timers run, if this worker is the one that runs them. Without this they rest: commands boot
    /// applications, too.
    pub fn start_timers(&self) {
        post::enter(topics::receive);
        self.app.runs_timers.set(true);
        let version = self.app.version.borrow().clone();
        self.app.follow_timers(&version);
    }

    /// No timer begins any more; one that runs counts as a request in flight. What runs in the background is cancelled.
    pub fn stop_timers(&self) {
        post::leave();
        self.app.ends.set(true);
        self.app.version.borrow().end_background();
        self.app.runs_timers.set(false);
        self.app.leave_lead();
    }

    /// Whether it has declared timers.
    #[must_use]
    pub fn has_timers(&self) -> bool {
        !self.app.version.borrow().timers.is_empty()
    }

    /// The timers, in the worker that runs them.
    #[must_use]
    pub fn timers(&self) -> Vec<TimerInfo> {
        let version = self.app.version.borrow();
        let timers = version.timers.iter().filter(|_| lead::is_taken());
        let info = |timer: &Timer| TimerInfo {
            about: timer.about.clone(),
            next: (!timer.is_over.get())
                .then(|| Duration::try_from_secs_f64(timer.next.get() - now()).unwrap_or_default()),
            is_running: timer.is_running.get(),
            runs: timer.runs.get(),
        };
        timers.map(info).collect()
    }
}

impl App {
    /// A version begins to serve.
    pub(super) fn follow_timers(self: &Rc<Self>, version: &Rc<Version>) {
        if !self.runs_timers.get() || version.timers.is_empty() {
            return;
        }
        lead::take();
        let now = now();
        for (index, timer) in version.timers.iter().enumerate() {
            match timer.when {
                When::After(seconds) => timer.next.set(now + seconds),
                When::Every(period) => timer.next.set(multiple(period, now)),
                When::Cron => {}
            }
            let (app, version) = (Rc::downgrade(self), Rc::downgrade(version));
            tokio::task::spawn_local(async move {
                while let Some(pause) = turn(&app, &version, index).await {
                    tokio::time::sleep(Duration::from_secs_f64(pause.clamp(0.001, LOOK))).await;
                }
            });
        }
    }

    /// What ran once in the isolate that failed does not run again in the next one: it may be what has failed.
    pub(super) fn keep_over(old: &Version, new: &Version) {
        for (old, new) in old.timers.iter().zip(&new.timers) {
            new.is_over.set(old.when == new.when && old.is_over.get());
        }
    }

    fn leave_lead(&self) {
        if !self.runs_timers.get() && self.timer_runs.get() == 0 {
            lead::leave();
        }
    }

    async fn run_timer(self: &Rc<Self>, version: &Rc<Version>, index: usize, due: bool) {
        let timer = &version.timers[index];
        let exchange = Exchange::for_nobody(self.engine.dev);
        self.timer_runs.set(self.timer_runs.get() + 1);
        version.timer_runs.set(version.timer_runs.get() + 1);
        let run = if due { Run::Due } else { Run::Asked };
        self.run_clientless(version, &exchange, index, run, None)
            .await;
        version.timer_runs.set(version.timer_runs.get() - 1);
        self.timer_runs.set(self.timer_runs.get() - 1);
        self.leave_lead();
        if timer.when == When::Cron {
            let next = exchange.timers.next.get();
            timer.next.set(next.unwrap_or(now() + 60.0));
        }
    }

    /// Runs what C has under this number, to its end; `None` if it was not begun.
    pub(super) async fn run_clientless(
        self: &Rc<Self>,
        version: &Rc<Version>,
        exchange: &Rc<Exchange>,
        number: usize,
        run: Run,
        request_timeout: Option<Duration>,
    ) -> Option<Outcome> {
        let task = match version.fiber() {
            Ok(task) => task,
            Err(error) => {
                tracing::error!(%error, "no fiber for what has no client");
                tokio::time::sleep(Duration::from_secs_f64(LOOK)).await;
                return None;
            }
        };
        exchange.timers.running.set(Some((number, run)));
        task.assign(ffi::RUN_CALL, exchange);
        self.in_flight.set(self.in_flight.get() + 1);
        let owed = Owed::begin();
        let limits = AppLimits {
            request_timeout,
            slow_log: None,
            cancel_on_disconnect: true,
            ..self.limits.clone()
        };
        let outcome = task.start(exchange, &limits).await;
        log_output(exchange);
        self.done(version, task, exchange, outcome);
        exchange.finish();
        drop(owed);
        Some(outcome)
    }
}

/// Runs a timer if it is due. Returns the seconds until it is looked at again; `None`: never.
async fn turn(app: &Weak<App>, version: &Weak<Version>, index: usize) -> Option<f64> {
    let (app, version) = (app.upgrade()?, version.upgrade()?);
    let timer = &version.timers[index];
    if !app.runs_timers.get() || version.retired.get() || timer.is_over.get() {
        return None;
    }
    let late = now() - timer.next.get();
    if late < 0.0 {
        return Some(-late);
    }
    if !lead::take() {
        timer.pass(now());
        return Some(LOOK);
    }
    // One of the version before that runs still may be this one.
    if app.timer_runs.get() > version.timer_runs.get() {
        return Some(0.1);
    }
    let is_cron = timer.when == When::Cron;
    if timer.is_stale.replace(false) || (is_cron && late > TOO_LATE) {
        app.run_timer(&version, index, false).await;
        return Some(0.0);
    }
    timer.is_running.set(true);
    timer.runs.set(timer.runs.get() + 1);
    if matches!(timer.when, When::After(_)) {
        timer.is_over.set(true);
    }
    app.run_timer(&version, index, true).await;
    timer.is_running.set(false);
    timer.schedule(now());
    Some(0.0)
}

#[cfg(test)]
mod tests {
    use super::multiple;

    #[test]
    fn multiples_of_a_period_are_after_the_time() {
        assert_eq!(multiple(60.0, 120.0), 180.0);
        assert_eq!(multiple(60.0, 179.9), 180.0);
        assert!(multiple(0.1, 1_700_000_000.05) > 1_700_000_000.05);
        assert!(multiple(0.1, 1_700_000_000.05) < 1_700_000_000.16);
    }
}
