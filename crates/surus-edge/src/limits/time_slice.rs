//! How long a client that pipelines requests without waiting for responses is served before others get their turn.

use std::cell::Cell;
use std::time::Duration;

use nix::time::{clock_gettime, ClockId};
use tokio::task::yield_now;

/// Most requests in a turn.
const MOST: u32 = 16;

/// A turn that has taken longer ends after the current request. The coarse clock ticks every few milliseconds, but
/// costs almost nothing to read.
const LONGEST: Duration = Duration::from_millis(1);

/// A connection's turn. A new one begins when the edge has waited for the client.
#[derive(Debug, Default)]
pub(crate) struct TimeSlice {
    requests: Cell<u32>,
    /// On the coarse clock.
    since: Cell<Duration>,
}

impl TimeSlice {
    pub(crate) fn begin(&self) {
        self.requests.set(0);
    }

    /// A request is about to be answered.
    pub(crate) fn count(&self) {
        let before = self.requests.get();
        if before == 0 {
            self.since.set(now());
        }
        self.requests.set(before + 1);
    }

    pub(crate) fn is_over(&self) -> bool {
        let requests = self.requests.get();
        requests >= MOST || (requests > 0 && now().saturating_sub(self.since.get()) >= LONGEST)
    }

    /// Lets other tasks run, also those that wait for a socket: the event loop would not poll sockets while a task
    /// wakes itself.
    pub(crate) async fn pass(&self) {
        self.begin();
        yield_now().await;
    }
}

fn now() -> Duration {
    // Through libc: rustix reads the vDSO itself, which does not exist under valgrind.
    clock_gettime(ClockId::CLOCK_MONOTONIC_COARSE).map_or(Duration::ZERO, Duration::from)
}
