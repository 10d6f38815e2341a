//! State that all workers of a server share: values by key, with an expiry time, in memory of a fixed size. Caches, counters
//! and what applications store are views of it, each with a prefix of its keys.
//!
//! The memory is mapped before the fork and divided into shards. Readers hold no lock ([`shard`]). Writers hold that of their shard,
//! which survives the death of its holder; what the holder was writing is then the old value (`write.rs`).

mod callbacks;
mod change;
mod entry;
mod figures;
mod index;
mod shard;
mod write;

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::OnceLock,
};

use super::{memory, mutex::Mutex};
use entry::{Head, WORD};
use figures::Reads;
pub use figures::{figures, StoreFigures};
use shard::Shard;
pub(crate) use write::New;
use write::{Key, Refusal, CLEARED_AT_ONCE};

/// Several, so that writers seldom wait for each other.
const SHARDS: usize = 8;
/// The smallest size: less would have no room for entries.
const LEAST_BYTES: usize = 1 << 20;

pub(crate) struct Store {
    shards: Vec<Shard>,
    reads: Reads,
    /// Keyed at random, so that nobody can choose keys that collide.
    hash: RandomState,
}

static STORE: OnceLock<Store> = OnceLock::new();

/// Creates the store, of about `bytes` bytes, 0 for none; before the fork, so that all workers share it. The kernel
/// allocates pages on first use.
pub(crate) fn start(bytes: usize) {
    STORE.get_or_init(|| Store::new(bytes));
}

/// On the command line it is created on first use, and not shared.
pub(crate) fn store() -> &'static Store {
    STORE.get_or_init(|| Store::new(LEAST_BYTES * 16))
}

/// Nanoseconds of the monotonic clock, which all processes share, as PHP's `hrtime()`.
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Store {
    fn new(bytes: usize) -> Store {
        let mut store = Store {
            shards: Vec::new(),
            reads: Reads::new(),
            hash: RandomState::new(),
        };
        let each = bytes.max(LEAST_BYTES) / SHARDS / WORD;
        if bytes == 0 {
            return store;
        }
        let (Ok(locks), Ok(words)) = (
            Mutex::several(SHARDS),
            memory::shared_counters(each * SHARDS),
        ) else {
            return store;
        };
        let shards = locks.iter().zip(words.chunks_exact(each));
        store.shards = shards
            .filter_map(|(lock, words)| Shard::new(lock, words))
            .collect();
        store
    }

    /// Its shard, and its hash.
    fn find<'a>(&self, key: &'a [u8]) -> Option<(&Shard, Key<'a>)> {
        let mut hasher = self.hash.build_hasher();
        hasher.write(key);
        let hash = hasher.finish();
        // The index within the shard uses the low bits and the highest ones.
        let shard = (hash >> 32) as usize % self.shards.len().max(1);
        Some((self.shards.get(shard)?, Key { text: key, hash }))
    }

    /// Whether there is no memory.
    pub(crate) fn is_none(&self) -> bool {
        self.shards.is_empty()
    }

    /// The value of a key, unless it has expired. Its bytes are in `to`.
    pub(crate) fn read(&self, key: &[u8], now: u64, to: &mut Vec<u8>) -> Option<Head> {
        let (shard, key) = self.find(key)?;
        let found = shard.read(key.text, key.hash, to);
        let found = found.filter(|head| head.until > now);
        self.reads.count(found.is_some());
        found
    }

    /// Stores a value. The old one is removed even if the new one is too large.
    pub(crate) fn write(&self, key: &[u8], new: &New<'_>, now: u64) -> Result<(), Refusal> {
        let (shard, key) = self.find(key).ok_or(Refusal::Unavailable)?;
        let writer = shard.lock().ok_or(Refusal::Unavailable)?;
        let result = writer.put(key, new, now);
        if result.is_err() {
            writer.remove(key.text, key.hash);
        }
        result
    }

    /// Whether it was there, or an error: it may still be there.
    pub(crate) fn remove(&self, key: &[u8], now: u64) -> Result<bool, Refusal> {
        let Some((shard, key)) = self.find(key) else {
            return Ok(false);
        };
        let writer = shard.lock().ok_or(Refusal::Unavailable)?;
        let found = writer.find(key.text, key.hash);
        let was_there = found.is_some_and(|(.., head)| head.until > now);
        writer.remove(key.text, key.hash);
        Ok(was_there)
    }

    /// Removes all keys with this prefix. False: some may still be there.
    fn clear(&self, prefix: &[u8]) -> bool {
        let mut cleared = true;
        for shard in &self.shards {
            for from in (0..shard.index.len()).step_by(CLEARED_AT_ONCE) {
                let writer = shard.lock();
                cleared &= writer
                    .map(|writer| writer.clear(prefix, from, CLEARED_AT_ONCE))
                    .is_some();
                // Who waits for the lock gets it.
                std::thread::yield_now();
            }
        }
        cleared
    }
}

#[cfg(test)]
mod tests;
