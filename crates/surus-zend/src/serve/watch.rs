//! Watches a request that runs or waits: its deadline, the slow log, a client that disconnects.
//!
//! A request that must end is cancelled twice at most. First its PHP code is unwound and has [`UNWIND_TIME`] for its
//! `finally` blocks, shutdown functions and destructors. Then it cannot park any more, and PHP code that still runs is
//! a fatal error. If it still runs after another [`UNWIND_TIME`] (C code that tries the same call for ever), it is
//! given up together with its isolate.
//!
//! A WebSocket has no time limit while its client is there. A response that is streamed ([`Stream`]) has no time limit as a whole, but one for its silence. A slow client's time is
//! bounded by the edge. What runs after a stream has the request's time limit again, but for what was deferred
//! (`csrc/app/deferred.c`): that has a time limit of its own, and no client.

use std::{
    future::{poll_fn, Future},
    pin::pin,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use crate::{
    exchange::{
        answers::plain_answer,
        request::{AppLimits, Request},
        timers::Run,
        Exchange, Stream,
    },
    ffi,
    serve::task::Task,
};

const UNWIND_TIME: Duration = Duration::from_secs(5);
/// A deadline that passes while a request ends because its client has disconnected is checked again after this time:
/// the request may continue (`ignore_user_abort`).
const LOOK_AGAIN: Duration = Duration::from_millis(100);

pub(crate) struct Watch<'a> {
    exchange: &'a Exchange,
    timeout: Option<Duration>,
    deadline: Option<Instant>,
    stream_timeout: Option<Duration>,
    heartbeat: Option<Duration>,
    defer_timeout: Option<Duration>,
    /// The deadline has passed, and is checked again at this time.
    look_again: Option<Instant>,
    timed_out: bool,
    /// So has that of what was deferred.
    deferred_timed_out: bool,
    slow: Option<Instant>,
    /// When a cancelled request must have ended.
    grace: Option<Instant>,
    asked_twice: bool,
    given_up: bool,
    /// Whether to watch for a disconnect of the client: it cancels the request, and none was handled yet.
    client: bool,
}

/// Logs a slow request that has ended in its first turn: it never parked, so it was not watched.
pub(crate) fn note_slow_end(exchange: &Exchange, limits: &AppLimits) {
    if limits
        .slow_log
        .is_some_and(|limit| exchange.started().elapsed() >= limit)
    {
        note_slow(exchange);
    }
}

fn note_slow(exchange: &Exchange) {
    let request = &exchange.request;
    tracing::warn!(
        "{} took {:?}, in calls that cannot be left",
        slow(request),
        exchange.started().elapsed()
    );
}

fn slow(request: &Request) -> String {
    if request.is_nobodys() {
        return "slow boot:".to_owned();
    }
    format!("slow request: {} {}", request.method, request.uri)
}

impl<'a> Watch<'a> {
    pub(crate) fn new(exchange: &'a Exchange, limits: &AppLimits) -> Self {
        let started = exchange.started();
        exchange.preempts.set(limits.preempt_fibers);
        let timeout = exchange.times.limit(limits.request_timeout);
        Watch {
            exchange,
            timeout,
            deadline: timeout.and_then(|t| started.checked_add(t)),
            stream_timeout: limits.stream_timeout,
            heartbeat: limits.heartbeat,
            defer_timeout: limits.defer_timeout,
            look_again: None,
            timed_out: false,
            deferred_timed_out: false,
            slow: limits.slow_log.map(|t| started + t),
            grace: None,
            asked_twice: false,
            given_up: false,
            client: limits.cancel_on_disconnect,
        }
    }

    pub(crate) fn exchange(&self) -> &'a Exchange {
        self.exchange
    }

    /// Polls until `poll` is ready (true), or there is something to [`Watch::check`] (false).
    pub(crate) async fn wait(&self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<()>) -> bool {
        let next = self.next();
        let mut alarm = pin!(async {
            match next {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        });
        poll_fn(|cx| {
            // `poll` comes first: a result that is ready in time has not timed out.
            if poll(cx).is_ready() {
                return Poll::Ready(true);
            }
            let alarmed = next.is_some() && alarm.as_mut().poll(cx).is_ready();
            if alarmed || self.poll_exchange(cx).is_ready() {
                return Poll::Ready(false);
            }
            Poll::Pending
        })
        .await
    }

    /// The request did not end although it was cancelled twice. Its stack must not be resumed.
    pub(crate) fn has_given_up(&self) -> bool {
        self.given_up
    }

    fn next(&self) -> Option<Instant> {
        [self.deadline(), self.beat_at(), self.slow_at(), self.grace]
            .into_iter()
            .flatten()
            .min()
    }

    /// When the request must end, as things are.
    fn deadline(&self) -> Option<Instant> {
        if let Some(since) = self.exchange.times.deferred_since() {
            let limit = self.defer_timeout.filter(|_| !self.deferred_timed_out);
            return limit.and_then(|limit| since.checked_add(limit));
        }
        if self.timed_out || self.look_again.is_some() {
            return self.look_again;
        }
        if let Some(socket) = self.exchange.websocket() {
            // Without a client, what PHP does has the time of a request.
            let since = socket.ended_at()?.max(self.exchange.started());
            return since.checked_add(self.timeout?);
        }
        let silent_since = self.exchange.times.last_output();
        let (Some(since), limit) = (silent_since, self.time_left_by_stream()) else {
            return self.deadline;
        };
        limit.and_then(|limit| since.checked_add(limit))
    }

    /// After the last output of a stream.
    fn time_left_by_stream(&self) -> Option<Duration> {
        match self.exchange.stream() {
            // It has ended.
            Stream::Bounded => self.timeout,
            // It waits for its client, not for itself.
            _ if self.exchange.is_full() => None,
            Stream::Events if self.heartbeat.is_some() => None,
            Stream::Items | Stream::Events => self.stream_timeout,
        }
    }

    /// When a silent event stream sends a comment.
    fn beat_at(&self) -> Option<Instant> {
        if self.timed_out || self.exchange.stream() != Stream::Events {
            return None;
        }
        let since = self.exchange.times.last_output()?;
        since.checked_add(self.heartbeat?)
    }

    fn poll_exchange(&self, cx: &mut Context<'_>) -> Poll<()> {
        let is_watched = self.client || self.exchange.jobs.get().is_some();
        if !is_watched && self.exchange.websocket().is_none() {
            return Poll::Pending;
        }
        if (self.client && self.exchange.has_client_left()) || self.exchange.is_interrupted() {
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

    /// Handles all events that are due; true if PHP must be resumed because of one.
    pub(crate) fn check(&mut self, task: &Task) -> bool {
        let now = Instant::now();
        self.check_slow(task, now);
        if self.beat_at().is_some_and(|at| at <= now) {
            self.exchange.beat();
        }
        let client = self.check_client(task, now);
        let deadline = self.check_deadline(task, now);
        let grace = self.check_grace(task, now);
        self.exchange.take_interruption() || client || deadline || grace
    }

    /// When it is slow, unless its client has its response.
    fn slow_at(&self) -> Option<Instant> {
        let is_answered = self.exchange.times.deferred_since().is_some();
        self.slow.filter(|_| !is_answered)
    }

    fn check_slow(&mut self, task: &Task, now: Instant) {
        if self.slow_at().is_some_and(|at| at <= now) {
            self.slow = None;
            let is_long = self.exchange.websocket().is_some();
            if is_long || self.exchange.stream() != Stream::Bounded {
                return;
            }
            let so_far = self.exchange.started().elapsed();
            task.backtrace(&format!("{} for {so_far:?}", slow(&self.exchange.request)));
        }
    }

    /// At the end of a request: logs one that was slow in a call that could not park, which no check has seen.
    pub(crate) fn check_end(&self) {
        if self.slow_at().is_some_and(|at| at <= Instant::now()) {
            note_slow(self.exchange);
        }
    }

    fn check_client(&mut self, task: &Task, now: Instant) -> bool {
        if !self.client || !self.exchange.has_client_left() {
            return false;
        }
        self.client = false;
        if self.exchange.times.deferred_since().is_some() {
            return false;
        }
        self.grace.get_or_insert(now + UNWIND_TIME);
        if !task.is_ending() {
            task.cancel(ffi::CANCEL_CLIENT);
        }
        true
    }

    fn check_deadline(&mut self, task: &Task, now: Instant) -> bool {
        if self.deadline().is_none_or(|at| at > now) {
            return false;
        }
        if self.exchange.times.deferred_since().is_some() {
            self.end_deferred(task, now);
            return true;
        }
        if task.is_ending() {
            self.look_again = Some(now + LOOK_AGAIN);
            return false;
        }
        self.look_again = None;
        self.timed_out = true;
        self.grace = Some(now + UNWIND_TIME);
        let request = &self.exchange.request;
        let without_client = match self.exchange.timers.running.get() {
            Some((_, Run::Asked | Run::Due)) => Some("a timer".to_owned()),
            Some((_, Run::Background)) => Some("what runs in the background".to_owned()),
            Some((_, Run::Queued)) => Some(format!("job of {}", request.uri)),
            None => None,
        };
        if let Some(what) = without_client {
            let so_far = self.exchange.started().elapsed();
            task.backtrace(&format!("{what} timed out after {so_far:?}"));
        } else if request.is_nobodys() {
            tracing::warn!(timeout = ?self.timeout, "a boot takes too long: it is ended");
        } else {
            let is_stream = self.exchange.stream() != Stream::Bounded;
            let (name, timeout) = match is_stream {
                true => ("a silent stream", self.stream_timeout),
                false => ("request", self.timeout),
            };
            tracing::warn!(method = %request.method, uri = %request.uri, ?timeout, "{name} timed out");
        }
        task.cancel(ffi::CANCEL_TIMEOUT);
        self.exchange.answer_instead(|| plain_answer(504));
        true
    }

    fn end_deferred(&mut self, task: &Task, now: Instant) {
        self.deferred_timed_out = true;
        self.grace = Some(now + UNWIND_TIME);
        let (request, timeout) = (&self.exchange.request, self.defer_timeout);
        tracing::warn!(method = %request.method, uri = %request.uri, ?timeout, "what a request has deferred timed out");
        task.cancel(ffi::CANCEL_TIMEOUT);
    }

    fn check_grace(&mut self, task: &Task, now: Instant) -> bool {
        if self.grace.is_none_or(|at| at > now) {
            return false;
        }
        self.grace = None;
        if !task.is_ending() {
            return false;
        }
        let request = &self.exchange.request;
        if self.asked_twice {
            tracing::error!(method = %request.method, uri = %request.uri, "a cancelled request does not end: its isolate is given up");
            self.given_up = true;
            return false;
        }
        tracing::warn!(method = %request.method, uri = %request.uri, "a cancelled request did not end in time: nothing of it may wait any more");
        self.asked_twice = true;
        self.grace = Some(now + UNWIND_TIME);
        task.cancel(ffi::CANCEL_SHUTDOWN);
        true
    }
}
