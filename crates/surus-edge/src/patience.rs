//! How long a client is waited for that is to send or to take something.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::Limits;

/// What is left of the time that one client has for one body. Only the time counts in which it is waited for.
#[derive(Debug)]
pub(crate) struct Patience {
    timeout: Duration,
    limits: Limits,
    /// Bytes.
    moved: u64,
    /// How long was waited for the client in all, and since when it is waited for now.
    waited: Duration,
    since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    /// `timeout` is lengthened as `limits` say.
    pub(crate) fn new(timeout: Duration, limits: &Limits) -> Self {
        Patience {
            timeout,
            limits: limits.clone(),
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
            let patience = self.limits.patience(self.timeout, self.moved);
            let end = since + patience.saturating_sub(self.waited);
            Box::pin(tokio::time::sleep_until(end))
        });
        timer.as_mut().poll(cx)
    }
}
