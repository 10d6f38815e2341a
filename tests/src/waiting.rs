//! Waiting for what another process does.

use std::thread;
use std::time::{Duration, Instant};

/// A loaded machine needs seconds for what takes milliseconds, and a virtual one may stand still for some.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns once it is so.
///
/// # Panics
/// With `problem`, if it is not so for a minute.
pub fn wait_for(problem: &str, is_so: impl FnMut() -> bool) {
    wait_up_to(PATIENCE, is_so, || problem.to_owned());
}

/// The same with a time of its own, and a problem that is looked at when it is there.
///
/// # Panics
/// With `problem`, if it is not so in this time.
pub fn wait_up_to(
    patience: Duration,
    mut is_so: impl FnMut() -> bool,
    problem: impl FnOnce() -> String,
) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < patience, "{}", problem());
        thread::sleep(Duration::from_millis(5));
    }
}
