//! Counts dropped lines, of all processes of a server.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;

use crate::Log;

/// Counters that [`share`] takes.
pub const CELLS: usize = 2;

static OWN: [AtomicU64; CELLS] = [const { AtomicU64::new(0) }; CELLS];
static SHARED: OnceLock<&'static [AtomicU64]> = OnceLock::new();

/// Counts in these cells from now on, which master and workers share. Adds the previous counts.
pub fn share(cells: &'static [AtomicU64]) {
    if SHARED.set(cells).is_ok() {
        for (own, shared) in OWN.iter().zip(cells) {
            shared.fetch_add(own.load(Relaxed), Relaxed);
        }
    }
}

/// Lines of this log that were dropped since the server was started.
pub fn dropped(log: Log) -> u64 {
    cell(log).load(Relaxed)
}

pub(crate) fn count(log: Log, lines: u64) {
    cell(log).fetch_add(lines, Relaxed);
}

fn cell(log: Log) -> &'static AtomicU64 {
    let index = usize::from(matches!(log, Log::Access | Log::Output));
    let shared = SHARED.get().and_then(|cells| cells.get(index));
    shared.unwrap_or(&OWN[index])
}
