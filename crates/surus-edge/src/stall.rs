//! How long a client has held up its response.

use std::cell::Cell;
use std::time::Duration;

use crate::output::Output;
use crate::Limits;

/// Ticks of the sweep that found the client not taking what waits for it, less those that did not.
#[derive(Debug, Default)]
pub(crate) struct Stall {
    ticks: Cell<u32>,
    /// Bytes sent before it began.
    sent_before: Cell<u64>,
    /// HTTP/2: response bodies that have given bytes and were not asked for more since: their windows are closed.
    held: Cell<u32>,
    /// HTTP/2: how often a body was asked, and how often it had been at the last tick.
    asked: Cell<u64>,
    asked_before: Cell<u64>,
}

impl Stall {
    /// A body is asked for bytes; `held` says whether it had given some before.
    pub(crate) fn asked(&self, held: bool) {
        self.asked.set(self.asked.get() + 1);
        self.released(held);
    }

    pub(crate) fn gave(&self) {
        self.held.set(self.held.get() + 1);
    }

    pub(crate) fn released(&self, held: bool) {
        if held {
            self.held.set(self.held.get() - 1);
        }
    }

    /// Counts a tick. True if the client has had its time.
    pub(crate) fn tick(&self, output: &Output, limits: &Limits) -> bool {
        let ticks = self.ticks.get();
        let asked = self.asked.get();
        let is_held = self.held.get() > 0 && self.asked_before.replace(asked) == asked;
        if !output.is_blocked() && !is_held {
            self.ticks.set(ticks.saturating_sub(1));
            return false;
        }
        if ticks == 0 {
            self.sent_before.set(output.sent());
        }
        self.ticks.set(ticks + 1);
        let sent = output.sent() - self.sent_before.get();
        Duration::from_secs(ticks.into()) > limits.patience(limits.write_timeout, sent)
    }
}
