//! How long the edge waits for a client to send or to take something.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// The total time that the edge waits for a client: longer the more bytes the client moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    timeout: Duration,
    /// Bytes that add one second; zero: nothing is added.
    min_rate: u64,
}

impl Allowance {
    pub(crate) fn new(timeout: Duration, min_rate: u64) -> Self {
        Allowance { timeout, min_rate }
    }

    /// The total time for a client that has already moved `bytes`.
    pub(crate) fn after(self, bytes: u64) -> Duration {
        match bytes.checked_div(self.min_rate) {
            Some(seconds) => self.timeout.saturating_add(Duration::from_secs(seconds)),
            None => self.timeout,
        }
    }
}

/// The time that one client has for one body. It counts only while the edge waits for the client.
#[derive(Debug)]
pub(crate) struct ClientTimeout {
    allowance: Allowance,
    /// Bytes.
    moved: u64,
    /// The time spent waiting so far, and since when the edge waits now.
    waited: Duration,
    since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl ClientTimeout {
    pub(crate) fn new(allowance: Allowance) -> Self {
        ClientTimeout {
            allowance,
            moved: 0,
            waited: Duration::ZERO,
            since: None,
            timer: None,
        }
    }

    /// The client has sent or taken something.
    pub(crate) fn moved(&mut self, bytes: u64) {
        if let Some(since) = self.since.take() {
            self.waited += since.elapsed();
            self.timer = None;
        }
        self.moved += bytes;
    }

    /// Called while the edge waits for the client. Ready when that has taken too long.
    pub(crate) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(since) = self.since else {
            // The next read often finds more input, so no timer is started before the second call.
            self.since = Some(Instant::now());
            cx.waker().wake_by_ref();
            return Poll::Pending;
        };
        let timer = self.timer.get_or_insert_with(|| {
            let left = self.allowance.after(self.moved).saturating_sub(self.waited);
            Box::pin(tokio::time::sleep_until(since + left))
        });
        timer.as_mut().poll(cx)
    }
}
