//! What a client is doing, and since when.
//!
//! ```text
//!            first byte             headers complete          response body dropped
//!   New ────────────────► Head ───────────────────────► Busy ───────────────────────► Idle
//!    │ header_timeout      │ header_timeout             │ write_timeout               │ keep_alive; first byte: Head
//!    ▼                     ▼                            ▼                             ▼
//!  closed                 408, closed                  cut                          closed
//! ```
//!
//! The phases are plain cells, which [`crate::connection::timeouts`] checks once a second: a timer for each request
//! would cost an allocation and two accesses to the timer wheel.

use std::cell::Cell;
use std::rc::Rc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing was received yet.
    New,
    /// Between requests.
    Idle,
    /// The same, and the connection is to be closed, to make room for another one.
    Dismissed,
    Head,
    /// The head was not received in time.
    Late,
    /// A request is being answered.
    Busy,
    /// The same, and the head of the response has been written.
    Answering,
    /// The connection is upgraded to another protocol, whose code has its own timeouts.
    Upgraded,
}

impl Phase {
    /// No request has begun.
    pub(crate) fn is_between(self) -> bool {
        matches!(self, Phase::New | Phase::Idle | Phase::Dismissed)
    }

    /// A request is being answered.
    pub(crate) fn is_busy(self) -> bool {
        matches!(self, Phase::Busy | Phase::Answering)
    }
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    /// One request after the other.
    Http1,
    /// Several requests at a time, so that heads have no phase of their own.
    Http2 {
        /// Requests that are being answered.
        streams: u32,
        /// Since when the client owes the rest of a head.
        owes_since: Option<u32>,
    },
}

/// The phase that a connection is in. Times are ticks of the sweep's clock (seconds).
#[derive(Debug)]
pub(crate) struct Progress {
    phase: Cell<Phase>,
    /// When it was entered.
    since: Cell<u32>,
    protocol: Cell<Protocol>,
    clock: Rc<Cell<u32>>,
}

impl Progress {
    pub(super) fn new(clock: Rc<Cell<u32>>) -> Self {
        Progress {
            phase: Cell::new(Phase::New),
            since: Cell::new(clock.get()),
            protocol: Cell::new(Protocol::Http1),
            clock,
        }
    }

    pub(crate) fn clock(&self) -> Rc<Cell<u32>> {
        Rc::clone(&self.clock)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// How long this phase has lasted.
    pub(crate) fn age(&self, now: u32) -> u32 {
        now.wrapping_sub(self.since.get())
    }

    pub(crate) fn is_http2(&self) -> bool {
        self.protocol.get() != Protocol::Http1
    }

    /// From here on the timeouts are those of HTTP/2.
    pub(super) fn speaks_http2(&self) {
        self.protocol.set(Protocol::Http2 {
            streams: 0,
            owes_since: None,
        });
        self.enter(Phase::Idle);
    }

    fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.since.set(self.clock.get());
    }

    /// Bytes of a request were received, or are buffered.
    pub(crate) fn has_read(&self) {
        if self.phase.get().is_between() && !self.is_http2() {
            self.enter(Phase::Head);
        }
    }

    /// The head was not received in time.
    pub(super) fn is_late(&self) {
        self.phase.set(Phase::Late);
    }

    pub(super) fn begin_request(&self) {
        if let Protocol::Http2 {
            streams,
            owes_since,
        } = self.protocol.get()
        {
            self.protocol.set(Protocol::Http2 {
                streams: streams + 1,
                owes_since,
            });
        }
        self.enter(Phase::Busy);
    }

    /// The head of the response has been written.
    pub(crate) fn begin_answer(&self) {
        self.phase.set(Phase::Answering);
    }

    /// After the response the connection does not speak HTTP.
    pub(crate) fn is_upgraded(&self) {
        self.phase.set(Phase::Upgraded);
    }

    pub(super) fn end_request(&self) {
        if let Protocol::Http2 {
            streams,
            owes_since,
        } = self.protocol.get()
        {
            let streams = streams - 1;
            self.protocol.set(Protocol::Http2 {
                streams,
                owes_since,
            });
            if streams > 0 {
                return;
            }
        }
        self.enter(Phase::Idle);
    }

    /// The connection is to be closed, to make room for another one. The client's time to do so begins now.
    pub(super) fn dismiss(&self) {
        self.enter(Phase::Dismissed);
    }

    /// Notes whether an HTTP/2 client has sent only a part of a head. `has_ended`: the head from before is complete, so
    /// this is a new one.
    pub(crate) fn note_head(&self, is_open: bool, has_ended: bool) {
        if let Protocol::Http2 {
            streams,
            owes_since,
        } = self.protocol.get()
        {
            let since = owes_since.filter(|_| !has_ended);
            let since = since.unwrap_or_else(|| self.clock.get());
            self.protocol.set(Protocol::Http2 {
                streams,
                owes_since: is_open.then_some(since),
            });
        }
    }

    /// How long an HTTP/2 client has owed the rest of a head.
    pub(crate) fn owes_head_for(&self, now: u32) -> u32 {
        match self.protocol.get() {
            Protocol::Http2 {
                owes_since: Some(since),
                ..
            } => now.wrapping_sub(since),
            Protocol::Http2 { .. } | Protocol::Http1 => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress() -> (Rc<Cell<u32>>, Progress) {
        let clock = Rc::new(Cell::new(10));
        (Rc::clone(&clock), Progress::new(clock))
    }

    #[test]
    fn a_request_of_http1_after_the_other() {
        let (clock, progress) = progress();
        assert_eq!(progress.phase(), Phase::New);
        clock.set(12);
        progress.has_read();
        assert_eq!((progress.phase(), progress.age(15)), (Phase::Head, 3));
        progress.begin_request();
        progress.has_read();
        assert_eq!(progress.phase(), Phase::Busy, "bytes of its body");
        progress.begin_answer();
        assert!(progress.phase().is_busy());
        progress.end_request();
        assert_eq!(progress.phase(), Phase::Idle);
        progress.dismiss();
        assert!(progress.phase().is_between());
        progress.has_read();
        assert_eq!(progress.phase(), Phase::Head, "it asks once more");
        progress.is_late();
        assert_eq!(progress.phase(), Phase::Late);
    }

    #[test]
    fn requests_of_http2_at_the_same_time() {
        let (clock, progress) = progress();
        progress.speaks_http2();
        progress.has_read();
        assert_eq!(progress.phase(), Phase::Idle, "heads are no phase");
        progress.note_head(true, false);
        clock.set(14);
        progress.note_head(true, false);
        assert_eq!(progress.owes_head_for(15), 5);
        progress.note_head(true, true);
        assert_eq!(progress.owes_head_for(15), 1, "another one");
        progress.begin_request();
        progress.begin_request();
        progress.end_request();
        assert_eq!(progress.phase(), Phase::Busy);
        progress.end_request();
        assert_eq!(progress.phase(), Phase::Idle);
        assert_eq!(progress.owes_head_for(15), 1);
        progress.note_head(false, true);
        assert_eq!(progress.owes_head_for(15), 0);
    }
}
