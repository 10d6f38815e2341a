//! What the store has and how it is used.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{super::memory, entry::WORD, STORE};

/// Processes count in different cache lines, so that readers do not wait for each other.
const STRIPES: usize = 64;
/// Words of a cache line.
const LINE: usize = 8;

/// Of the store of this server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreFigures {
    /// Bytes that entries may use.
    pub size: u64,
    /// Bytes that they use.
    pub used: u64,
    /// Those of entries that are not removed to make room.
    pub kept: u64,
    /// How many there are.
    pub entries: u64,
    /// Reads that found something.
    pub hits: u64,
    /// Reads that found nothing.
    pub misses: u64,
    /// Entries that were removed to make room.
    pub evictions: u64,
}

pub(super) struct Reads(&'static [AtomicU64]);

impl Reads {
    pub(super) fn new() -> Self {
        Reads(memory::shared_counters(STRIPES * LINE).unwrap_or(&[]))
    }

    pub(super) fn count(&self, is_hit: bool) {
        let line = std::process::id() as usize % STRIPES * LINE;
        if let Some(counter) = self.0.get(line + usize::from(!is_hit)) {
            counter.fetch_add(1, Relaxed);
        }
    }

    fn sum(&self, at: usize) -> u64 {
        let lines = self.0.chunks(LINE);
        lines.map(|line| line[at].load(Relaxed)).sum()
    }
}

/// `None` if the server has no store.
#[must_use]
pub fn figures() -> Option<StoreFigures> {
    let store = STORE.get().filter(|store| !store.shards.is_empty())?;
    let mut figures = StoreFigures {
        hits: store.reads.sum(0),
        misses: store.reads.sum(1),
        ..StoreFigures::default()
    };
    for shard in &store.shards {
        let counters = &shard.counters;
        figures.size += (shard.size() * WORD) as u64;
        figures.used += counters.words.load(Relaxed) * WORD as u64;
        figures.kept += counters.kept.load(Relaxed) * WORD as u64;
        figures.entries += counters.entries.load(Relaxed);
        figures.evictions += counters.evictions.load(Relaxed);
    }
    Some(figures)
}
