//! Lines of the log for what any number of clients may do at any time: one stands for many.

use std::cell::Cell;
use std::fmt::Arguments;
use std::time::{Duration, Instant};

/// Between two lines about the same.
const QUIET: Duration = Duration::from_secs(60);

/// When one was last written.
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
