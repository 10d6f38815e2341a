//! Runs the timers of an application: in the worker that leads, each as a request that nobody has sent, never at the same time
//! as itself.

use std::{
    rc::{Rc, Weak},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{version::log_output, App, Coroutine, Version};
use crate::{
    exchange::{
        owed::Owed,
        request::AppLimits,
        timers::{Run, Timer, When},
        Exchange,
    },
    ffi,
    serve::task::Outcome,
    shared::lead::{self, Begun},
};

/// The clock may be set, and the worker that leads may end: each timer looks again after this time.
const LOOK: f64 = 1.0;
/// A timer of the calendar that is later than this, because the machine slept, is left out.
const TOO_LATE: f64 = 90.0;

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
    fn runs_once(&self) -> bool {
        matches!(self.when, When::After(_) | When::Once(_))
    }

    /// When it is due for the first time.
    fn begin(&self, index: usize, begun: &Begun, now: f64) {
        match self.when {
            When::After(seconds) => self.next.set(begun.version + seconds),
            When::Once(seconds) => {
                self.next.set(begun.server + seconds);
                self.is_over.set(self.next.get() <= begun.passed);
            }
            When::Every(period) => self.next.set(multiple(period, now)),
            When::Cron => {}
        }
        if self.runs_once() && begun.has(index) {
            self.is_over.set(true);
        }
    }

    /// It begins, in the worker that leads. Returns whether it may: another worker may have begun it.
    fn note_begin(&self, index: usize) -> bool {
        if !self.runs_once() {
            return true;
        }
        let mut begun = lead::begun();
        let may = !begun.has(index);
        begun.add(index);
        lead::set_begun(begun);
        may
    }

    fn schedule(&self, after: f64) {
        match self.when {
            When::After(_) | When::Once(_) => self.is_over.set(true),
            When::Every(period) => self.next.set(multiple(period, after)),
            When::Cron => {}
        }
    }

    /// It is looked at, which happens each second while it waits. If the clock was set back meanwhile, it would wait for as long as that.
    fn look(&self, now: f64) {
        let back = self.seen.replace(now) - now;
        match self.when {
            When::After(seconds) | When::Once(seconds) if back > LOOK => {
                let next = self.next.get() - back;
                self.next.set(next);
                if lead::is_taken() {
                    // For workers that begin from now on.
                    let mut begun = lead::begun();
                    if matches!(self.when, When::After(_)) {
                        begun.version = next - seconds;
                    } else {
                        begun.passed += next - seconds - begun.server;
                        begun.server = next - seconds;
                    }
                    lead::set_begun(begun);
                }
            }
            // The next multiple is never further away than that.
            When::Every(period) if self.next.get() - now > period + LOOK => {
                self.next.set(multiple(period, now));
            }
            // PHP is asked for its time. Not if the clock was corrected a little, which would let it run twice.
            When::Cron if back > TOO_LATE => {
                self.next.set(now);
                self.is_stale.set(true);
            }
            _ => {}
        }
    }

    /// It is another worker's.
    fn pass(&self, index: usize, now: f64) {
        match self.when {
            When::After(_) | When::Once(_) => self.is_over.set(lead::begun().has(index)),
            When::Every(period) => self.next.set(multiple(period, now)),
            When::Cron => self.is_stale.set(true),
        }
    }
}

impl Coroutine {
    /// From now on, the application's timers run, if this worker is the one that runs them. Without this they rest: commands boot
    /// applications, too.
    pub fn start_timers(&self) {
        self.app.runs_timers.set(true);
        let version = self.app.version.borrow().clone();
        self.app.follow_timers(&version, false);
    }

    /// No timer begins any more; one that runs counts as a request in flight. What runs in the background is cancelled.
    pub fn stop_timers(&self) {
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
    /// A version begins to serve. `is_new`: in place of another one, in a reload. Otherwise it may be the one that another worker has
    /// served, or this one before a fatal error.
    pub(super) fn follow_timers(self: &Rc<Self>, version: &Rc<Version>, is_new: bool) {
        if !self.runs_timers.get() || (version.timers.is_empty() && !is_new) {
            return;
        }
        let now = now();
        let mut begun = lead::begun();
        if begun.server == 0.0 {
            begun.server = now;
        }
        if is_new || begun.version == 0.0 {
            begun.version = now;
            begun.clear();
        }
        if is_new {
            begun.passed = now;
        }
        if lead::take() {
            lead::set_begun(begun);
        }
        for (index, timer) in version.timers.iter().enumerate() {
            timer.begin(index, &begun, now);
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
        let limit = self.limits.timer_timeout;
        self.run_clientless(version, &exchange, index, run, limit)
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
    let time = now();
    timer.look(time);
    let late = time - timer.next.get();
    if late < 0.0 {
        return Some(-late);
    }
    if !lead::take() {
        timer.pass(index, now());
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
    if !timer.note_begin(index) {
        timer.is_over.set(true);
        return None;
    }
    timer.is_running.set(true);
    timer.runs.set(timer.runs.get() + 1);
    if timer.runs_once() {
        timer.is_over.set(true);
    }
    app.run_timer(&version, index, true).await;
    timer.is_running.set(false);
    timer.schedule(now());
    Some(0.0)
}

#[cfg(test)]
mod tests {
    use super::{multiple, Timer};

    #[test]
    fn timers_follow_a_clock_that_is_set_back() {
        let [after, every, cron] = [(0, 60.0), (1, 20.0), (2, 1060.0)]
            .map(|(kind, seconds)| Timer::new(String::new(), kind, seconds));
        after.next.set(1060.0);
        every.next.set(1020.0);
        let look = |now: f64| {
            [&after, &every, &cron].map(|timer| {
                timer.look(now);
                timer.next.get()
            })
        };
        for now in [1000.0, 1001.0, 1000.5] {
            assert_eq!(look(now), [1060.0, 1020.0, 1060.0]);
        }
        assert_eq!(look(400.5), [460.0, 420.0, 400.5]);
        assert!(cron.is_stale.get());
    }

    #[test]
    fn multiples_of_a_period_are_after_the_time() {
        assert_eq!(multiple(60.0, 120.0), 180.0);
        assert_eq!(multiple(60.0, 179.9), 180.0);
        assert!(multiple(0.1, 1_700_000_000.05) > 1_700_000_000.05);
        assert!(multiple(0.1, 1_700_000_000.05) < 1_700_000_000.16);
    }
}
