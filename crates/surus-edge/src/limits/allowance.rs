//! How long a client is waited for that is to send or to take something.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// How long a client is waited for in all: the longer, the more it moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    timeout: Duration,
    /// Bytes that are good for one more second; zero: none are.
    min_rate: u64,
}

impl Allowance {
    pub(crate) fn new(timeout: Duration, min_rate: u64) -> Self {
        Allowance { timeout, min_rate }
    }

    /// What a client is given in all that has already moved `bytes`.
    pub(crate) fn after(self, bytes: u64) -> Duration {
        match bytes.checked_div(self.min_rate) {
            Some(seconds) => self.timeout.saturating_add(Duration::from_secs(seconds)),
            None => self.timeout,
        }
    }
}

/// What is left of the time that one client has for one body. Only the time counts in which it is waited for.
#[derive(Debug)]
pub(crate) struct ClientTimeout {
    allowance: Allowance,
    /// Bytes.
    moved: u64,
    /// How long was waited for the client in all, and since when it is waited for now.
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

    /// The client is waited for. Ready when that was for too long.
    pub(crate) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(since) = self.since else {
            // Most need not be waited for long: what they have sent is found next. A timer would be for nothing.
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
