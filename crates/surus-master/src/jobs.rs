//! How many jobs the queues have, in memory that the process which has them shares with the master.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde_json::{json, Value};

/// What is counted, in the order of the cells.
const NAMES: [&str; 6] = ["waiting", "delayed", "running", "failed", "done", "bytes"];

/// The counters.
#[derive(Clone, Copy, Debug)]
pub struct JobCounts(&'static [AtomicU64]);

impl JobCounts {
    /// The number of zeroed cells that it needs.
    pub const CELLS: usize = NAMES.len();

    /// Counters in cells that all processes share.
    #[must_use]
    pub fn new(cells: &'static [AtomicU64]) -> Self {
        JobCounts(cells)
    }

    /// Jobs that wait, are delayed, run, have failed and were done, and the bytes that they take.
    pub fn set(&self, counts: [u64; Self::CELLS]) {
        for (cell, count) in self.0.iter().zip(counts) {
            cell.store(count, Relaxed);
        }
    }

    pub(crate) fn json(&self) -> Value {
        let counts = NAMES.iter().zip(self.0);
        let counts = counts.map(|(name, cell)| ((*name).to_owned(), json!(cell.load(Relaxed))));
        Value::Object(counts.collect())
    }
}
