//! Waiting for what another process does.

use std::thread;
use std::time::{Duration, Instant};

/// A loaded machine needs seconds for what takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns once it is so.
///
/// # Panics
/// With `problem`, if it is not so for half a minute.
pub fn wait_for(problem: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{problem}");
        thread::sleep(Duration::from_millis(5));
    }
}
