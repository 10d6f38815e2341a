//! A cache that all workers of a server share: texts by key, with an expiry time, in memory of a fixed size.
//!
//! The memory is mapped before the fork and divided into shards, each with a lock of its own that survives the death of
//! its holder. A shard is a ring to which entries are appended, over the oldest ones, and an index into it. So there is
//! nothing to free and no fragmentation, and a write costs the same whether the ring is full or not.

mod callbacks;
mod lock;
mod shard;

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::OnceLock,
};

use super::memory;
use shard::{Shard, SLOT_BYTES};

/// Several, so that workers seldom wait for each other.
const SHARDS: usize = 8;
/// The smallest size of a cache: less would have no room for entries.
const LEAST_BYTES: usize = 1 << 20;
/// An entry may use a fourth of a shard: a larger one would evict too many others.
const LARGEST_PART: usize = 4;

/// The value of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value {
    /// The type of the bytes, as the writer has set it.
    pub(crate) kind: u8,
    pub(crate) bytes: Vec<u8>,
}

struct Cache {
    shards: Vec<Shard>,
    /// Keyed at random, so that nobody can choose keys that collide.
    hash: RandomState,
}

static CACHE: OnceLock<Cache> = OnceLock::new();

/// Creates the cache, of about `bytes` bytes, 0 for none; before the fork, so that all workers share it. The kernel
/// allocates pages on first use.
pub(crate) fn start(bytes: usize) {
    CACHE.get_or_init(|| Cache::new(bytes));
}

/// The cache. On the command line it is created on first use, and not shared.
fn cache() -> &'static Cache {
    CACHE.get_or_init(|| Cache::new(LEAST_BYTES * 16))
}

/// The value of a key, unless it has expired at `now` (nanoseconds of the monotonic clock, as PHP's `hrtime()`).
pub(crate) fn read(key: &[u8], now: u64) -> Option<Value> {
    cache().read(key, now)
}

/// Stores a value until a time. False if it is too large, there is no memory, or the lock is not available.
pub(crate) fn write(key: &[u8], kind: u8, bytes: &[u8], until: u64) -> bool {
    cache().write(key, kind, bytes, until)
}

/// Removes a key. False: it may still be there.
pub(crate) fn remove(key: &[u8]) -> bool {
    cache().remove(key)
}

/// Removes all keys with this prefix. False: some may still be there.
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
        // The old value is removed even if the new one is too large.
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
