//! Throttles log messages that any number of clients may cause at any time.

use std::cell::Cell;
use std::fmt::Arguments;
use std::time::{Duration, Instant};

/// Minimum time between two messages.
const QUIET: Duration = Duration::from_secs(60);

/// When the last message was written.
#[derive(Debug, Default)]
pub(crate) struct Throttled(Cell<Option<Instant>>);

impl Throttled {
    pub(crate) fn say(&self, text: Arguments<'_>) {
        let now = Instant::now();
        if self
            .0
            .get()
            .is_none_or(|last| now.duration_since(last) >= QUIET)
        {
            self.0.set(Some(now));
            surus_log::say!("{text}");
        }
    }
}
