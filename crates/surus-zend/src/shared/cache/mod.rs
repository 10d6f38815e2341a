//! A cache that all workers of a server share: texts by key, until a time, in memory of a fixed size.
//!
//! The memory is mapped before the fork and cut into shards, each with a lock of its own that survives the death of who
//! holds it. A shard is a ring to which entries are appended, over the oldest ones, and an index into it. So there is
//! nothing to free and nothing that fragments, and what is written costs the same whether there is room or not.

mod callbacks;
mod lock;
mod shard;

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::OnceLock,
};

use super::memory;
use shard::{Shard, SLOT_BYTES};

/// More of them than workers, so that these seldom wait for each other.
const SHARDS: usize = 8;
/// Less would have no room for anything.
const LEAST_BYTES: usize = 1 << 20;
/// An entry has at most this part of a shard: one that takes it all would drive out the others.
const LARGEST_PART: usize = 4;

/// What is kept under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value {
    /// What the writer says of the bytes.
    pub(crate) kind: u8,
    pub(crate) bytes: Vec<u8>,
}

struct Cache {
    shards: Vec<Shard>,
    /// Keyed at random, so that nobody can choose keys that collide.
    hash: RandomState,
}

static CACHE: OnceLock<Cache> = OnceLock::new();

/// Makes it, of about so many bytes, 0 for none; before the fork, so that all workers have the same. Of the memory the
/// kernel gives what is used.
pub(crate) fn start(bytes: usize) {
    CACHE.get_or_init(|| Cache::new(bytes));
}

/// On the command line there is nobody to share it with.
fn cache() -> &'static Cache {
    CACHE.get_or_init(|| Cache::new(LEAST_BYTES * 16))
}

/// The value of a key, unless its time is over at `now` (nanoseconds of the monotonic clock, as PHP's `hrtime()`).
pub(crate) fn read(key: &[u8], now: u64) -> Option<Value> {
    cache().read(key, now)
}

/// Keeps a value until a time. False if it is too large, or if the memory could not be had.
pub(crate) fn write(key: &[u8], kind: u8, bytes: &[u8], until: u64) -> bool {
    cache().write(key, kind, bytes, until)
}

/// False: it may still be there.
pub(crate) fn remove(key: &[u8]) -> bool {
    cache().remove(key)
}

/// Forgets all keys that begin like this. False: some may still be there.
pub(crate) fn clear(prefix: &[u8]) -> bool {
    cache().clear(prefix)
}

impl Cache {
    fn new(bytes: usize) -> Cache {
        let mut cache = Cache {
            shards: Vec::new(),
            hash: RandomState::new(),
        };
        let each = bytes.max(LEAST_BYTES) / SHARDS / SLOT_BYTES * SLOT_BYTES;
        if bytes == 0 {
            return cache;
        }
        if let Ok(memory) = memory::zeros(each * SHARDS) {
            // SAFETY: each shard has a part of a mapping of zeros of its own, which is never unmapped.
            let shards = (0..SHARDS).map(|i| unsafe { Shard::new(memory.add(i * each), each) });
            cache.shards.extend(shards.flatten());
        }
        cache
    }

    /// Its shard, and its hash, which is never 0.
    fn find(&self, key: &[u8]) -> Option<(&Shard, u64)> {
        let mut hasher = self.hash.build_hasher();
        hasher.write(key);
        let hash = hasher.finish().max(1);
        // The index within the shard uses the low bits.
        let shard = (hash >> 32) as usize % self.shards.len().max(1);
        Some((self.shards.get(shard)?, hash))
    }

    fn read(&self, key: &[u8], now: u64) -> Option<Value> {
        let (shard, hash) = self.find(key)?;
        shard.lock()?.read(key, hash, now)
    }

    fn write(&self, key: &[u8], kind: u8, bytes: &[u8], until: u64) -> bool {
        let Some((shard, hash)) = self.find(key) else {
            return false;
        };
        let Some(mut ring) = shard.lock() else {
            return false;
        };
        // What was there is the past, also if there is no room for what takes its place.
        ring.remove(key, hash);
        ring.write(key, hash, kind, bytes, until)
    }

    fn remove(&self, key: &[u8]) -> bool {
        let Some((shard, hash)) = self.find(key) else {
            return true;
        };
        let ring = shard.lock();
        ring.map(|mut ring| ring.remove(key, hash)).is_some()
    }

    fn clear(&self, prefix: &[u8]) -> bool {
        let mut cleared = true;
        for shard in &self.shards {
            let ring = shard.lock();
            cleared &= ring.map(|mut ring| ring.clear(prefix)).is_some();
        }
        cleared
    }
}

#[cfg(test)]
mod tests;
