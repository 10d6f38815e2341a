//! A stack that runs PHP in an isolate, driven as a future.

use std::{
    cell::Cell,
    ffi::CString,
    future::poll_fn,
    rc::Rc,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll},
};

use tokio::sync::Notify;

use crate::{
    blocking::{take_parked, Parked},
    engine::{
        isolate::{Isolate, Waiting},
        process::BootError,
    },
    exchange::{request::AppLimits, Exchange},
    ffi,
    serve::{inspect::Driven, jobs::end_abandoned, stalls::Run, turns::Ticket, watch::Watch},
};

/// How often C code may repeat a refused call in [`Task::finish_now`], which cannot wait.
const MAX_YIELDS: usize = 1000;

thread_local! {
    /// The isolate of the task that was resumed last.
    static RUNNING: Cell<*const Isolate> = const { Cell::new(std::ptr::null()) };
}

pub(crate) struct Task {
    raw: *mut ffi::Task,
    isolate: Rc<Isolate>,
    begun: Cell<bool>,
    /// A piece of a request's work, whose task is another one.
    is_job: bool,
}

/// How the work of a task has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok,
    /// A fatal error: the isolate takes no new requests.
    Fatal,
    Cancelled,
    /// An uncaught exception; the isolate can still be used.
    Exception,
    /// The stack is lost, and the isolate with it.
    Abandoned,
}

/// Why one turn of PHP has ended.
pub(crate) enum Turn {
    Done(Outcome),
    Parked(Parked),
    Preempted,
    /// It repeats a refused call again and again.
    Yielded,
}

/// The isolate of the code that runs now; only the address is to be used.
pub(crate) fn running_isolate() -> *const Isolate {
    RUNNING.get()
}

impl Task {
    pub(crate) fn new(isolate: &Rc<Isolate>, stack_size: usize) -> Result<Task, BootError> {
        // SAFETY: the isolate is alive, and the task keeps it so.
        let raw = unsafe { ffi::surus_task_new(isolate.raw(), stack_size) };
        if raw.is_null() {
            return Err(BootError(
                "no memory for a stack; see vm.max_map_count".to_string(),
            ));
        }
        Ok(Task {
            raw,
            isolate: isolate.clone(),
            begun: Cell::new(false),
            is_job: false,
        })
    }

    /// Owns a job that C has made.
    ///
    /// # Safety
    /// `raw` is a new task of the isolate of the task that runs now.
    pub(crate) unsafe fn of_running_isolate(raw: *mut ffi::Task) -> Task {
        let isolate = RUNNING.get();
        // SAFETY: the running task holds a reference; a pointer of `Rc::as_ptr`.
        let isolate = unsafe {
            Rc::increment_strong_count(isolate);
            Rc::from_raw(isolate)
        };
        Task {
            raw,
            isolate,
            begun: Cell::new(false),
            is_job: true,
        }
    }

    /// Whether it was resumed.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.get()
    }

    pub(crate) fn raw(&self) -> *mut ffi::Task {
        self.raw
    }

    pub(crate) fn isolate(&self) -> &Rc<Isolate> {
        &self.isolate
    }

    /// Sets the next work of the task. The caller keeps the exchange until the task is done.
    pub(crate) fn assign(&self, work: i32, exchange: &Exchange) {
        // SAFETY: the task is idle.
        unsafe { ffi::surus_task_assign(self.raw, work, exchange.raw()) };
    }

    /// Whether it has to wait for other tasks of its isolate.
    pub(crate) fn is_blocked(&self) -> bool {
        self.isolate.is_closed_to(self.raw)
    }

    /// Runs PHP until it parks, is pre-empted or done. On the event loop's stack only.
    pub(crate) fn resume(&self) -> Turn {
        let event = {
            RUNNING.set(Rc::as_ptr(&self.isolate));
            self.begun.set(true);
            let run = Run::begin();
            // SAFETY: never called from a PHP stack: nothing that runs there has a Task.
            let event = unsafe { ffi::surus_task_resume(self.raw) };
            run.end(self.raw);
            event
        };
        match event {
            ffi::PREEMPTED => {
                // Immediately: other fibers of the isolate may run next.
                self.isolate.hold(self.raw);
                return Turn::Preempted;
            }
            ffi::YIELDED => {
                self.isolate.release(self.raw);
                return Turn::Yielded;
            }
            ffi::PARKED => {
                self.isolate.release(self.raw);
                // Immediately: another task may park before this future is polled.
                return Turn::Parked(take_parked());
            }
            _ => self.isolate.release(self.raw),
        }
        if event != ffi::DONE {
            let reason = if event == ffi::EXHAUSTED {
                "hard memory limit"
            } else {
                "C stack overflow"
            };
            tracing::error!("{reason}: what ran cannot go on");
            self.isolate.mark_unclean();
            note_given_up();
            self.leave_jobs();
            return Turn::Done(Outcome::Abandoned);
        }
        // SAFETY: the task is alive.
        Turn::Done(match unsafe { ffi::surus_task_outcome(self.raw) } {
            ffi::FATAL => Outcome::Fatal,
            ffi::CANCELLED => Outcome::Cancelled,
            ffi::EXCEPTION => Outcome::Exception,
            _ => Outcome::Ok,
        })
    }

    /// It was abandoned: its jobs that have not begun never do.
    fn leave_jobs(&self) {
        if self.is_job {
            return;
        }
        // SAFETY: the task is alive, and so is its exchange, which its driver holds.
        let exchange = unsafe {
            let raw = ffi::surus_task_exchange(self.raw);
            (!raw.is_null()).then(|| Exchange::from_raw(raw))
        };
        if let Some(jobs) = exchange.and_then(|exchange| exchange.jobs.get()) {
            jobs.abandoned.set(true);
        }
    }

    /// Of a boot that is done: whether its script waits for requests.
    pub(crate) fn waits_for_requests(&self) -> bool {
        // SAFETY: the task is alive.
        unsafe { ffi::surus_task_waits(self.raw) }
    }

    /// Tells such a script that a request has ended, or that no more will come. To be resumed then.
    pub(crate) fn tell(&self, more: bool) {
        // SAFETY: the task is alive, and waits for this.
        unsafe { ffi::surus_task_tell(self.raw, more) };
    }

    /// Waits until the isolate is free, then starts the assigned work and runs it to its end.
    pub(crate) async fn start(&self, exchange: &Exchange, limits: &AppLimits) -> Outcome {
        let mut watch = Watch::new(exchange, limits);
        if !self.wait_for_turn(&mut watch).await {
            // Its deadline passed, or its client disconnected, before it could start: then it never starts.
            return Outcome::Cancelled;
        }
        let turn = self.resume();
        self.drive_to_end(limits, &mut watch, turn).await
    }

    /// Runs the assigned work to its end now. Its waits are interrupted.
    pub(crate) fn finish_now(&self) {
        let mut yields = 0;
        loop {
            match self.resume() {
                Turn::Done(_) => return,
                Turn::Preempted => {}
                Turn::Yielded if yields > MAX_YIELDS => {
                    self.give_up();
                    return;
                }
                Turn::Yielded => yields += 1,
                Turn::Parked(_) => {
                    self.cancel(ffi::CANCEL_SHUTDOWN);
                    self.cancel(ffi::CANCEL_SHUTDOWN);
                }
            }
        }
    }

    /// Resumes PHP until its work is done, from wherever `turn` left it.
    pub(crate) async fn drive(
        &self,
        exchange: &Exchange,
        limits: &AppLimits,
        turn: Turn,
    ) -> Outcome {
        let mut watch = Watch::new(exchange, limits);
        self.drive_to_end(limits, &mut watch, turn).await
    }

    async fn drive_to_end(&self, limits: &AppLimits, watch: &mut Watch<'_>, turn: Turn) -> Outcome {
        let outcome = self.drive_watched(limits, watch, turn).await;
        if outcome == Outcome::Abandoned {
            end_abandoned(watch.exchange()).await;
        }
        outcome
    }

    async fn drive_watched(
        &self,
        limits: &AppLimits,
        watch: &mut Watch<'_>,
        mut turn: Turn,
    ) -> Outcome {
        if let Turn::Done(outcome) = turn {
            return outcome;
        }
        let _listed = Driven::begin(self, watch.exchange());
        loop {
            let ticket = match turn {
                Turn::Done(outcome) => {
                    watch.check_end();
                    return outcome;
                }
                Turn::Preempted | Turn::Yielded => {
                    if limits.preempt_fibers {
                        self.isolate.release(self.raw);
                    }
                    watch.check(self);
                    if watch.has_given_up() {
                        return self.give_up();
                    }
                    let mut ticket = Ticket::take();
                    while !watch.wait(|cx| ticket.poll_first(cx)).await && !watch.check(self) {}
                    if watch.has_given_up() {
                        return self.give_up();
                    }
                    ticket.begin().await;
                    Some(ticket)
                }
                Turn::Parked(mut parked) => {
                    while !watch.wait(|cx| parked.poll(cx)).await && !watch.check(self) {}
                    None
                }
            };
            // The task that holds the isolate may be queued after this ticket: then the ticket must not be kept.
            let turn_of_its_own = ticket.filter(|_| !self.isolate.is_held_from(self.raw));
            self.wait_for_turn(watch).await;
            turn = self.resume();
            drop(turn_of_its_own);
        }
    }

    /// Waits until no other fiber holds the isolate or has waited for it longer. False if the request was cancelled
    /// meanwhile: then it runs to its end although another fiber holds the isolate.
    async fn wait_for_turn(&self, watch: &mut Watch<'_>) -> bool {
        if !self.is_blocked() || self.isolate.lets_overtake(self.raw) {
            return true;
        }
        let waiting = Waiting::begin(&self.isolate);
        loop {
            let mut poll = |cx: &mut Context<'_>| {
                if self.isolate.lets_overtake(self.raw) {
                    return Poll::Ready(());
                }
                waiting.poll(cx)
            };
            if watch.wait(&mut poll).await {
                return true;
            }
            if watch.check(self) {
                return false;
            }
        }
    }

    /// Waits until no other task holds the isolate or has waited for it longer.
    pub(crate) async fn wait_until_free(&self) {
        if self.is_blocked() {
            let waiting = Waiting::begin(&self.isolate);
            poll_fn(|cx| waiting.poll(cx)).await;
        }
    }

    /// Abandons its stack.
    pub(crate) fn give_up(&self) -> Outcome {
        // SAFETY: pre-empted or yielded: nothing that lives on the stack is known to the event loop.
        unsafe { ffi::surus_task_give_up(self.raw) };
        self.isolate.release(self.raw);
        self.isolate.mark_unclean();
        note_given_up();
        self.leave_jobs();
        Outcome::Abandoned
    }

    /// Whether it was cancelled and must end; false if it continues anyway (`ignore_user_abort`).
    pub(crate) fn is_ending(&self) -> bool {
        // SAFETY: the task is alive.
        unsafe { ffi::surus_task_is_ending(self.raw) }
    }

    pub(crate) fn cancel(&self, why: i32) {
        // SAFETY: the task is alive and not running.
        unsafe { ffi::surus_task_cancel(self.raw, why) };
    }

    pub(crate) fn backtrace(&self, title: &str) {
        let title = CString::new(title.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the task is parked or pre-empted.
        unsafe { ffi::surus_task_backtrace(self.raw, title.as_ptr()) };
    }
}

static GIVEN_UP: AtomicBool = AtomicBool::new(false);
static GIVING_UP: Notify = Notify::const_new();

fn note_given_up() {
    GIVEN_UP.store(true, Ordering::Relaxed);
    GIVING_UP.notify_one();
}

/// Whether an isolate of this process was given up: its files, connections and locks stay open until the process ends.
#[must_use]
pub fn has_given_up() -> bool {
    GIVEN_UP.load(Ordering::Relaxed)
}

/// Returns when an isolate was given up. Only one task of the process may wait for it.
pub async fn giving_up() {
    GIVING_UP.notified().await;
}

impl Drop for Task {
    fn drop(&mut self) {
        // SAFETY: idle, or abandoned: its stack is not used again.
        unsafe { ffi::surus_task_free(self.raw) };
    }
}
