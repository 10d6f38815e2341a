//! What the client is in the midst of, and since when.
//!
//! ```text
//!            first byte             headers complete          response body dropped
//!   New ────────────────► Head ───────────────────────► Busy ───────────────────────► Idle
//!    │ header_timeout      │ header_timeout             │ write_timeout               │ keep_alive; first byte: Head
//!    ▼                     ▼                            ▼                             ▼
//!  closed                 408, closed                  cut                          closed
//! ```
//!
//! The phases are noted with plain cells and judged once a second by [`crate::connection::timeouts`]: a timer of its own for each request
//! would cost an allocation and two visits to the timer wheel.

use std::cell::Cell;
use std::rc::Rc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing has come yet.
    New,
    /// Between requests.
    Idle,
    /// The same, and the client has been asked to go: another one wants its place.
    Dismissed,
    Head,
    /// The head has not come in time.
    Late,
    /// A request is being answered.
    Busy,
    /// The same, and the head of the answer is on its way.
    Answering,
    /// It speaks something else than HTTP. Who speaks it has timeouts of its own.
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

/// What is spoken.
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

    /// From here on it is judged as HTTP/2.
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

    /// Bytes have come, or are there.
    pub(crate) fn has_read(&self) {
        if self.phase.get().is_between() && !self.is_http2() {
            self.enter(Phase::Head);
        }
    }

    /// The head has not come in time.
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

    /// The head of the answer is on its way.
    pub(crate) fn begin_answer(&self) {
        self.phase.set(Phase::Answering);
    }

    /// What follows the answer is not HTTP.
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

    /// The client is to make room, and has its time from here on.
    pub(super) fn dismiss(&self) {
        self.enter(Phase::Dismissed);
    }

    /// Whether a client of HTTP/2 is in the midst of a head. `has_ended`: not of the same one as before.
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

    /// How long a client of HTTP/2 has owed the rest of a head.
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
