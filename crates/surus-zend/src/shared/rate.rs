//! Token buckets that all workers of a server share.
//!
//! A bucket is one number: the time at which it will be full again (the generic cell rate algorithm, ITU-T I.371, which
//! is a token bucket without a counter). It fits one atomic, so no lock is held when a worker dies. A full bucket is
//! the same as none, so its entry may be reused; if all entries for a key are in use, the fullest bucket is replaced.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    slice,
    sync::{
        atomic::{AtomicU64, Ordering},
        OnceLock,
    },
    time::Duration,
};

use super::memory;

/// Of 16 bytes each: 2 MB of address space; the kernel allocates pages on first use.
const ENTRIES: usize = 128 * 1024;
/// The number of entries that a key may use.
const WAYS: usize = 8;

struct Entry {
    /// Hash of the key, 0 if the entry is free.
    key: AtomicU64,
    /// Nanoseconds of the monotonic clock, which all processes share.
    full_at: AtomicU64,
}

struct Table {
    entries: &'static [Entry],
    /// Keyed at random, so that nobody can choose keys that collide.
    hash: RandomState,
}

static TABLE: OnceLock<Table> = OnceLock::new();

/// The answer of a bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Taken {
    pub(crate) allowed: bool,
    /// Whole tokens left.
    pub(crate) remaining: u64,
    /// Until a request of this cost would be allowed; zero if it was.
    pub(crate) retry_after: Duration,
    /// Until the bucket is full.
    pub(crate) reset_after: Duration,
}

/// Makes the table; before the fork, so that all workers have the same.
pub(crate) fn start() {
    TABLE.get_or_init(|| Table {
        entries: entries(),
        hash: RandomState::new(),
    });
}

/// Empty if the memory could not be allocated.
fn entries() -> &'static [Entry] {
    let Ok(memory) = memory::zeros(ENTRIES * size_of::<Entry>()) else {
        return &[];
    };
    // SAFETY: page-aligned, of that size; zeros are valid entries; never unmapped, only accessed by atomic operations.
    unsafe { slice::from_raw_parts(memory.cast(), ENTRIES) }
}

fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Takes `cost` tokens from the bucket of `key`, which holds `burst` and gains `rate` a second. Without memory for a
/// table, or with an invalid rate, everything is allowed.
pub(crate) fn take(key: &[u8], rate: f64, burst: f64, cost: f64) -> Taken {
    let Some(table) = TABLE.get().filter(|table| !table.entries.is_empty()) else {
        return free(burst);
    };
    if !(rate > 0.0 && burst > 0.0 && cost >= 0.0) {
        return free(burst);
    }
    let mut hasher = table.hash.build_hasher();
    hasher.write(key);
    // Another limit for the same key is another bucket.
    hasher.write_u64(rate.to_bits());
    hasher.write_u64(burst.to_bits());
    let hash = hasher.finish().max(1);
    let first = (hash as usize % (ENTRIES / WAYS)) * WAYS;
    let now = now();
    let entry = entry(&table.entries[first..first + WAYS], hash, now);
    spend(&entry.full_at, now, rate, burst, cost)
}

fn free(burst: f64) -> Taken {
    Taken {
        allowed: true,
        remaining: burst as u64,
        retry_after: Duration::ZERO,
        reset_after: Duration::ZERO,
    }
}

fn entry(ways: &[Entry], hash: u64, now: u64) -> &Entry {
    if let Some(mine) = ways.iter().find(|p| p.key.load(Ordering::Acquire) == hash) {
        return mine;
    }
    let mut victim = &ways[0];
    let mut least = u64::MAX;
    for entry in ways {
        let full_at = entry.full_at.load(Ordering::Relaxed);
        if full_at < least {
            (victim, least) = (entry, full_at);
        }
    }
    // Two workers may take one entry at the same time: then one bucket starts again, which costs a token at most.
    victim.full_at.store(now, Ordering::Relaxed);
    victim.key.store(hash, Ordering::Release);
    victim
}

fn spend(full_at: &AtomicU64, now: u64, rate: f64, burst: f64, cost: f64) -> Taken {
    let nanoseconds = |tokens: f64| (tokens / rate * 1e9) as u64;
    let capacity = nanoseconds(burst);
    loop {
        let before = full_at.load(Ordering::Acquire);
        let after = before.max(now).saturating_add(nanoseconds(cost));
        let allowed = after - now <= capacity;
        let stays = if allowed { after } else { before.max(now) };
        if allowed
            && full_at
                .compare_exchange(before, after, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
        {
            continue;
        }
        let used = (stays - now) as f64 * rate / 1e9;
        return Taken {
            allowed,
            remaining: (burst - used).max(0.0) as u64,
            retry_after: Duration::from_nanos(if allowed { 0 } else { after - now - capacity }),
            reset_after: Duration::from_nanos(stays - now),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_bucket_empties_and_fills() {
        let bucket = AtomicU64::new(0);
        let take = |now| spend(&bucket, now, 2.0, 3.0, 1.0);
        let start = 100 * SECOND;
        let remaining: Vec<_> = (0..3).map(|_| take(start).remaining).collect();
        assert_eq!(remaining, [2, 1, 0]);
        let refused = take(start);
        assert!(!refused.allowed);
        assert_eq!(refused.retry_after, Duration::from_millis(500));
        assert!(!take(start + SECOND / 2 - 1).allowed);
        assert!(take(start + SECOND / 2).allowed);
        assert_eq!(
            take(start + 60 * SECOND).remaining,
            2,
            "never more than it holds"
        );
    }

    #[test]
    fn what_costs_more_than_the_bucket_holds_is_never_allowed() {
        let bucket = AtomicU64::new(0);
        assert!(!spend(&bucket, SECOND, 1.0, 5.0, 6.0).allowed);
        assert!(spend(&bucket, SECOND, 1.0, 5.0, 5.0).allowed);
    }

    #[test]
    fn keys_have_buckets_of_their_own_even_when_there_are_too_many() {
        start();
        for i in 0..200_000u32 {
            assert!(take(&i.to_le_bytes(), 0.001, 1.0, 1.0).allowed, "{i}");
        }
        assert!(!take(&199_999u32.to_le_bytes(), 0.001, 1.0, 1.0).allowed);
        assert!(
            take(&199_999u32.to_le_bytes(), 0.001, 2.0, 1.0).allowed,
            "another limit"
        );
    }
}
