//! How many isolates requests may have at a time.
//!
//! A request that waits costs memory only, so there may be many: as many as fit into a budget of memory, which is
//! measured. While the thread has no time left, more isolates would make nothing faster: above [`FEW`] they are made
//! only when the event loop runs on time, some at a time.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use crate::ffi;

/// Up to this number they are made at once.
const FEW: usize = 64;

/// How often to look whether more may be made.
const PERIOD: Duration = Duration::from_millis(2);

/// The event loop has time if it runs a timer not later than this.
const ON_TIME: Duration = Duration::from_millis(2);

/// What an isolate takes at least, with its stack.
const LEAST: f64 = (512 << 10) as f64;

/// How often the log says that the memory is used up.
const SAID: Duration = Duration::from_secs(60);

/// The budget of one worker.
pub(crate) struct Growth {
    /// Bytes.
    budget: u64,
    /// Bytes of this process's memory before there were isolates.
    before: u64,
    /// Bytes that an isolate takes: quick to rise, slow to fall.
    each: Cell<f64>,
    said: Cell<Option<Instant>>,
    watching: Cell<bool>,
}

impl Growth {
    /// Before the first isolate is made.
    pub(crate) fn new(budget: u64) -> Self {
        Growth {
            budget,
            before: own_bytes(),
            each: Cell::new(LEAST),
            said: Cell::new(None),
            watching: Cell::new(false),
        }
    }

    /// Whether one more may be made at once.
    pub(crate) fn admits(&self, alive: usize) -> bool {
        alive < FEW && self.fits(alive)
    }

    /// Whether the memory suffices for one more.
    pub(crate) fn fits(&self, alive: usize) -> bool {
        let used = own_bytes();
        let own = used.saturating_sub(self.before);
        let now = (own as f64 / alive.max(1) as f64).max(LEAST);
        let each = self.each.get();
        let each = now.max(each - each / 32.0);
        self.each.set(each);
        let fits = each * (alive + 1) as f64 <= self.budget.saturating_sub(self.before) as f64
            && used + each as u64 <= self.budget;
        if !fits && alive > 0 && self.said.get().is_none_or(|said| said.elapsed() >= SAID) {
            self.said.set(Some(Instant::now()));
            tracing::warn!(
                isolates = alive,
                each_bytes = each as u64,
                budget_bytes = self.budget,
                "requests wait for memory: isolates.memory, divided by the workers, has no room for one more isolate. \
                 Raise it, or lower what a request needs"
            );
        }
        fits || alive == 0
    }

    /// Whether the caller has to [`watch`]; until [`Growth::rest`] nobody else has to.
    pub(crate) fn begin(&self) -> bool {
        !self.watching.replace(true)
    }

    pub(crate) fn rest(&self) {
        self.watching.set(false);
    }

    /// The number that is made in one period.
    pub(crate) fn step(alive: usize) -> usize {
        (alive / 4).max(16)
    }
}

/// Calls `grow` again and again, until it returns false, and tells it whether the thread has time.
pub(crate) async fn watch(mut grow: impl FnMut(bool) -> bool) {
    loop {
        let begun = Instant::now();
        tokio::time::sleep(PERIOD).await;
        if !grow(begun.elapsed() <= PERIOD + ON_TIME) {
            return;
        }
    }
}

/// This process's memory that is no file's; what isolates are put back to, which is in files without a name, is its too. Zero where /proc is missing: then only the number of isolates is limited.
fn own_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut pages = statm.split_whitespace().skip(1);
    let mut next = || {
        pages
            .next()
            .and_then(|count| count.parse::<u64>().ok())
            .unwrap_or(0)
    };
    let (resident, shared) = (next(), next());
    // SAFETY: reads a number.
    let kept = unsafe { ffi::surus_pages_kept() } as u64;
    resident.saturating_sub(shared) * 4096 + kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_measured_and_bounds_the_number() {
        let growth = Growth::new(1 << 40);
        assert!(growth.before > 0);
        assert!(growth.admits(0) && growth.admits(FEW - 1) && !growth.admits(FEW));
        assert!(growth.fits(1_000));
        let used = growth.before;
        let small = Growth::new(used + (8 << 20));
        let block = vec![1u8; 16 << 20];
        assert!(!small.fits(1), "{} bytes", own_bytes());
        assert!(small.fits(0), "there is always one");
        drop(block);
    }
}
