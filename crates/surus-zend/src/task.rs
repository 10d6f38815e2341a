//! A stack that runs PHP in an isolate, driven as a future.

use std::{
    ffi::CString,
    future::{poll_fn, Future},
    pin::pin,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use crate::{
    blocking::{take_parked, Parked},
    exchange::Exchange,
    ffi,
    isolate::Isolate,
    request::Limits,
    BootError,
};

/// Time for `finally` blocks and destructors of a cancelled request before nothing of it may wait any more.
const UNWIND_TIME: Duration = Duration::from_secs(5);

pub(crate) struct Task {
    raw: *mut ffi::Task,
    isolate: Rc<Isolate>,
}

/// How a piece of work has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok,
    /// A fatal error: the isolate takes no new requests.
    Fatal,
    Cancelled,
    /// An uncaught exception; the isolate goes on.
    Exception,
    /// The stack is lost, and the isolate with it.
    Abandoned,
}

/// What one turn of PHP has led to.
pub(crate) enum Turn {
    Done(Outcome),
    Parked(Parked),
    Preempted,
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
        })
    }

    pub(crate) fn raw(&self) -> *mut ffi::Task {
        self.raw
    }

    pub(crate) fn isolate(&self) -> &Rc<Isolate> {
        &self.isolate
    }

    /// Sets what the task does next. The caller keeps the exchange until the task is done.
    pub(crate) fn assign(&self, work: i32, exchange: &Exchange) {
        // SAFETY: the task is idle.
        unsafe { ffi::surus_task_assign(self.raw, work, exchange.raw()) };
    }

    pub(crate) fn is_blocked(&self) -> bool {
        !self.isolate.is_free_for(self.raw)
    }

    /// Runs PHP until it parks, is pre-empted or done. On the event loop's stack only.
    pub(crate) fn resume(&self) -> Turn {
        // SAFETY: never called from a PHP stack: nothing that runs there has a Task.
        let event = unsafe { ffi::surus_task_resume(self.raw) };
        match event {
            ffi::PREEMPTED => return Turn::Preempted,
            ffi::PARKED => {
                self.isolate.release(self.raw);
                // At once: another task may park before this one is waited for.
                return Turn::Parked(take_parked());
            }
            _ => self.isolate.release(self.raw),
        }
        if event != ffi::DONE {
            self.isolate.mark_unclean();
            return Turn::Done(Outcome::Abandoned);
        }
        // SAFETY: the task is alive.
        Turn::Done(match unsafe { ffi::surus_task_outcome(self.raw) } {
            ffi::OUTCOME_FATAL => Outcome::Fatal,
            ffi::OUTCOME_CANCELLED => Outcome::Cancelled,
            ffi::OUTCOME_EXCEPTION => Outcome::Exception,
            _ => Outcome::Ok,
        })
    }

    /// Runs assigned work that has not begun, when the isolate is free for it.
    pub(crate) async fn start(&self, exchange: &Exchange, limits: &Limits) -> Outcome {
        self.wait_for_turn().await;
        let turn = self.resume();
        self.drive(exchange, limits, turn).await
    }

    /// Runs assigned work to its end here and now: what it would wait for is cut short.
    pub(crate) fn finish_now(&self) {
        loop {
            match self.resume() {
                Turn::Done(_) => return,
                Turn::Preempted => {}
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
        limits: &Limits,
        mut turn: Turn,
    ) -> Outcome {
        let mut watch = Watch::new(exchange, limits);
        loop {
            match turn {
                Turn::Done(outcome) => return outcome,
                Turn::Preempted => {
                    if !limits.preempt_fibers {
                        self.isolate.hold(self.raw);
                    }
                    watch.check(self);
                    tokio::task::yield_now().await;
                }
                Turn::Parked(parked) => self.wait_parked(parked, &mut watch).await,
            }
            self.wait_for_turn().await;
            turn = self.resume();
        }
    }

    async fn wait_for_turn(&self) {
        if self.is_blocked() {
            poll_fn(|cx| {
                if self.is_blocked() {
                    self.isolate.wait(cx.waker());
                    return Poll::Pending;
                }
                Poll::Ready(())
            })
            .await;
        }
    }

    /// Waits for what PHP waits for, or for a reason to end the request.
    async fn wait_parked(&self, mut parked: Parked, watch: &mut Watch<'_>) {
        loop {
            let next = watch.next();
            let event = {
                let mut alarm = pin!(async {
                    match next {
                        Some(at) => tokio::time::sleep_until(at.into()).await,
                        None => std::future::pending().await,
                    }
                });
                poll_fn(|cx| {
                    // What PHP waits for comes first: a request that is ready in time has not timed out.
                    if parked.poll(cx).is_ready() {
                        return Poll::Ready(true);
                    }
                    if watch.poll_client(cx).is_ready()
                        || (next.is_some() && alarm.as_mut().poll(cx).is_ready())
                    {
                        return Poll::Ready(false);
                    }
                    Poll::Pending
                })
                .await
            };
            if event || watch.check(self) {
                return;
            }
        }
    }

    pub(crate) fn cancel(&self, why: i32) {
        // SAFETY: the task is alive and not running.
        unsafe { ffi::surus_task_cancel(self.raw, why) };
    }

    fn backtrace(&self, title: &str) {
        let title = CString::new(title.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the task is parked or pre-empted.
        unsafe { ffi::surus_task_backtrace(self.raw, title.as_ptr()) };
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // SAFETY: idle, or abandoned: its stack is not used again.
        unsafe { ffi::surus_task_free(self.raw) };
    }
}

/// The reasons to look after a request: its deadline, the slow log, a client that leaves.
struct Watch<'a> {
    exchange: &'a Exchange,
    deadline: Option<Instant>,
    slow: Option<Instant>,
    client: bool,
    timeout: Option<Duration>,
}

impl<'a> Watch<'a> {
    fn new(exchange: &'a Exchange, limits: &Limits) -> Self {
        Watch {
            exchange,
            deadline: limits.request_timeout.map(|t| exchange.started + t),
            slow: limits.slow_log.map(|t| exchange.started + t),
            client: true,
            timeout: limits.request_timeout,
        }
    }

    fn next(&self) -> Option<Instant> {
        match (self.deadline, self.slow) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn poll_client(&self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.client {
            return Poll::Pending;
        }
        if self.exchange.has_client_left() {
            return Poll::Ready(());
        }
        let mut driver = self.exchange.driver.borrow_mut();
        if !driver
            .as_ref()
            .is_some_and(|w: &Waker| w.will_wake(cx.waker()))
        {
            *driver = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Acts on what is due; true when PHP must be resumed for it.
    fn check(&mut self, task: &Task) -> bool {
        let mut cancelled = false;
        if self.client && self.exchange.has_client_left() {
            self.client = false;
            task.cancel(ffi::CANCEL_CLIENT);
            cancelled = true;
        }
        let now = Instant::now();
        if self.slow.is_some_and(|at| at <= now) {
            self.slow = None;
            let request = &self.exchange.request;
            task.backtrace(&format!(
                "slow request: {} {} for {:?}",
                request.method,
                request.uri,
                self.exchange.started.elapsed()
            ));
        }
        if self.deadline.is_some_and(|at| at <= now) {
            let request = &self.exchange.request;
            tracing::warn!(method = %request.method, uri = %request.uri, timeout = ?self.timeout, "request timed out");
            task.cancel(ffi::CANCEL_TIMEOUT);
            self.exchange
                .answer_instead(|| crate::coroutine::plain_answer(504));
            self.deadline = Some(now + UNWIND_TIME);
            cancelled = true;
        }
        cancelled
    }
}
