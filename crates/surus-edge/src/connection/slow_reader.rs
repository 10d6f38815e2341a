//! How long a client has not read its output. Responses that wait for a window of HTTP/2 are measured by
//! [`crate::limits::allowance`].

use std::cell::Cell;
use std::time::Duration;

use crate::connection::output::Output;
use crate::Limits;

/// Ticks of the sweep that found the output blocked, minus the ticks that did not.
#[derive(Debug, Default)]
pub(crate) struct SlowReader {
    ticks: Cell<u32>,
    /// Bytes sent before the first of these ticks.
    sent_before: Cell<u64>,
}

impl SlowReader {
    /// Counts a tick. True if the client's time is over.
    pub(crate) fn tick(&self, output: &Output, limits: &Limits) -> bool {
        let ticks = self.ticks.get();
        if !output.is_blocked() {
            self.ticks.set(ticks.saturating_sub(1));
            return false;
        }
        if ticks == 0 {
            self.sent_before.set(output.sent());
        }
        self.ticks.set(ticks + 1);
        let sent = output.sent() - self.sent_before.get();
        Duration::from_secs(ticks.into()) > limits.to_take().after(sent)
    }
}
