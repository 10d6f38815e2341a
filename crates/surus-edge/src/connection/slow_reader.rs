//! How long a client has held up its connection: what waits for a window of HTTP/2 has [`crate::limits::allowance`] of its own.

use std::cell::Cell;
use std::time::Duration;

use crate::connection::output::Output;
use crate::Limits;

/// Ticks of the sweep that found the client not taking what waits for it, less those that did not.
#[derive(Debug, Default)]
pub(crate) struct SlowReader {
    ticks: Cell<u32>,
    /// Bytes sent before it began.
    sent_before: Cell<u64>,
}

impl SlowReader {
    /// Counts a tick. True if the client has had its time.
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
