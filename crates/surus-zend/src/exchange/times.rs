//! The times of one exchange: its start, the limit of its route, the output of a response that is streamed, and what follows it.
//!
//! Kept on a coarse clock, which ticks every few milliseconds and costs next to nothing to read.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use crate::router::TimeLimit;

/// The longest tick of the coarse clock on any kernel.
const COARSE_TICK: Duration = Duration::from_millis(10);

/// How a response is streamed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stream {
    /// As any other response: the time for the whole request bounds it.
    #[default]
    Bounded,
    /// The items of a handler's iterable: the time without output bounds it.
    Items,
    /// Server-sent events: comments keep it alive while there are none.
    Events,
}

#[derive(Debug, Default)]
pub(crate) struct Times {
    started: Cell<Duration>,
    limit: Cell<TimeLimit>,
    stream: Cell<Stream>,
    /// Of a stream; zero if nothing was sent.
    last_output: Cell<Duration>,
    /// When the response was complete and what was deferred began; zero before.
    deferred: Cell<Duration>,
    /// The output so far ends with a whole event.
    between_events: Cell<bool>,
    /// When the last item of a stream was sent without waiting for the next; the beginning of the request before.
    sent: Cell<Duration>,
}

impl Times {
    /// The next request begins.
    pub(super) fn begin(&self) {
        let Times {
            started,
            limit,
            stream,
            last_output,
            deferred,
            between_events,
            sent,
        } = self;
        started.set(coarse_now());
        limit.set(TimeLimit::Configured);
        stream.set(Stream::Bounded);
        last_output.set(Duration::ZERO);
        deferred.set(Duration::ZERO);
        between_events.set(true);
        sent.set(started.get());
    }

    /// What happens to a WebSocket has the limit of its request, and a time of its own.
    pub(super) fn begin_event(&self) {
        let limit = self.limit.get();
        self.begin();
        self.limit.set(limit);
    }

    pub(super) fn set_limit(&self, limit: TimeLimit) {
        self.limit.set(limit);
    }

    /// The time for the request, up to the first bytes of a stream.
    pub(crate) fn limit(&self, configured: Option<Duration>) -> Option<Duration> {
        match self.limit.get() {
            TimeLimit::Configured => configured,
            TimeLimit::Own(limit) => limit,
        }
    }

    /// When the request came, or up to one tick of the coarse clock later: a deadline is never early.
    pub(crate) fn started(&self) -> Instant {
        instant(self.started.get())
    }

    /// What the request does after its response begins.
    pub(crate) fn begin_deferred(&self) {
        self.deferred.set(coarse_now());
    }

    /// When that has begun; `None` before.
    pub(crate) fn deferred_since(&self) -> Option<Instant> {
        let at = self.deferred.get();
        (!at.is_zero()).then(|| instant(at))
    }

    pub(super) fn set_stream(&self, stream: Stream) {
        self.stream.set(stream);
    }

    pub(super) fn stream(&self) -> Stream {
        self.stream.get()
    }

    /// A stream sends these bytes, or ends.
    pub(super) fn note_output(&self, bytes: &[u8]) {
        if self.stream.get() != Stream::Bounded {
            self.note_output_at(coarse_now(), bytes);
        }
    }

    /// The same, of items of a handler's iterable.
    pub(super) fn note_output_at(&self, now: Duration, bytes: &[u8]) {
        self.last_output.set(now);
        if !bytes.is_empty() {
            self.between_events.set(bytes.ends_with(b"\n\n"));
        }
    }

    /// The time, if the coarse clock has not ticked since [`Times::has_ticked`] was true.
    pub(super) fn same_tick(&self) -> Option<Duration> {
        let now = coarse_now();
        (self.sent.get() == now).then_some(now)
    }

    /// Whether the coarse clock has ticked since the last call that said so, or since the request began.
    pub(super) fn has_ticked(&self) -> bool {
        let now = coarse_now();
        self.sent.replace(now) != now
    }

    pub(super) fn is_between_events(&self) -> bool {
        self.between_events.get()
    }

    /// When a stream has sent something for the last time; `None` if it was none.
    pub(crate) fn last_output(&self) -> Option<Instant> {
        let at = self.last_output.get();
        (!at.is_zero()).then(|| instant(at))
    }
}

fn instant(coarse: Duration) -> Instant {
    let now = Instant::now();
    let past = coarse_now().saturating_sub(coarse + COARSE_TICK);
    now.checked_sub(past).unwrap_or(now)
}

fn coarse_now() -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // With libc: rustix reads the vDSO itself, which does not exist under valgrind.
    // SAFETY: the clock exists on every Linux, and `now` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut now) };
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}
