//! A part of the store: a ring of entries, an index into it, and a lock for those who write.
//!
//! Positions count the units that were ever written; a position modulo the ring's size is its place in memory. Entries lie
//! between `tail` and `head`. A writer advances the tail before it overwrites what was behind it, and a reader looks at the tail
//! after it has copied an entry: if the tail has passed it, what was copied is worth nothing (a sequence lock whose number
//! is the tail).

use std::sync::atomic::{fence, AtomicU64, Ordering};

use super::{
    super::mutex::{Held, Mutex},
    entry::{Entry, Head, UNIT, WORD},
    index::{mark_used, Index, WAYS},
    write::Writer,
};

/// Words at the beginning of a shard's memory: a cache line of counters.
const COUNTERS: usize = 8;
/// Bytes of the ring for each slot of the index: less than the smallest entry, so that buckets seldom overflow.
const BYTES_PER_SLOT: usize = 32;
/// How often a reader may be overtaken by writers before it takes the lock.
const TRIES: usize = 8;

/// The largest entry is this part of a ring: a larger one would remove too many others.
const LARGEST_PART: usize = 4;
/// Larger entries than this part of a ring are removed when the tail reaches them, used or not.
const MOVED_PART: usize = 32;
/// Entries that are never removed may use this part of a ring.
const KEPT_PART: usize = 4;

/// The memory of a shard.
pub(super) struct Shard {
    lock: &'static Mutex,
    pub(super) counters: Counters,
    pub(super) index: Index<'static>,
    ring: &'static [AtomicU64],
}

#[derive(Clone, Copy)]
pub(super) struct Counters {
    /// Position of the next entry, in units.
    pub(super) head: &'static AtomicU64,
    /// Position of the oldest entry.
    pub(super) tail: &'static AtomicU64,
    pub(super) entries: &'static AtomicU64,
    /// Words of entries that the index has.
    pub(super) words: &'static AtomicU64,
    /// Words of those among them that are kept.
    pub(super) kept: &'static AtomicU64,
    pub(super) evictions: &'static AtomicU64,
    /// When expired entries are looked for again, to make room for what is kept.
    pub(super) sweep: &'static AtomicU64,
}

/// What a reader has found, beside the bytes.
enum Copied {
    Found(Head),
    Other,
    Overwritten,
}

impl Shard {
    /// `None`: there is not enough memory. All words are zeros that only this shard uses.
    pub(super) fn new(lock: &'static Mutex, memory: &'static [AtomicU64]) -> Option<Shard> {
        let (counters, rest) = memory.split_at_checked(COUNTERS)?;
        let slots = rest.len() * WORD / (BYTES_PER_SLOT + WORD) / WAYS * WAYS;
        let (slots, ring) = rest.split_at_checked(slots)?;
        let ring = &ring[..ring.len() / UNIT * UNIT];
        let [head, tail, entries, words, kept, evictions, sweep, ..] = counters else {
            return None;
        };
        if slots.is_empty() || ring.len() < 1024 {
            return None;
        }
        // Zero is no position.
        let begin = (ring.len() / UNIT) as u64;
        head.store(begin, Ordering::Relaxed);
        tail.store(begin, Ordering::Relaxed);
        let counters = Counters {
            head,
            tail,
            entries,
            words,
            kept,
            evictions,
            sweep,
        };
        Some(Shard {
            lock,
            counters,
            index: Index::new(slots),
            ring,
        })
    }

    pub(super) fn largest(&self) -> usize {
        self.ring.len() / LARGEST_PART
    }

    pub(super) fn largest_moved(&self) -> usize {
        self.ring.len() / MOVED_PART
    }

    pub(super) fn most_kept(&self) -> usize {
        self.ring.len() / KEPT_PART
    }

    /// Words of the ring.
    pub(super) fn size(&self) -> usize {
        self.ring.len()
    }

    /// Words from a position to the end of the ring.
    pub(super) fn at(&self, position: u64) -> Entry<'static> {
        let place = position as usize % (self.ring.len() / UNIT) * UNIT;
        Entry::new(&self.ring[place..])
    }

    pub(super) fn words_to_end(&self, position: u64) -> usize {
        self.ring.len() - position as usize % (self.ring.len() / UNIT) * UNIT
    }

    /// None if the lock is held for too long.
    pub(super) fn lock(&self) -> Option<Writer<'_>> {
        let held = self.lock.hold()?;
        Some(Writer::new(self, held))
    }

    /// What is stored for a key, also if it has expired. Its bytes are in `to`.
    pub(super) fn read(&self, key: &[u8], hash: u64, to: &mut Vec<u8>) -> Option<Head> {
        'again: for _ in 0..TRIES {
            for (place, slot) in self.index.bucket(hash).candidates(hash) {
                match self.copy(slot.position(), key, hash, to) {
                    Copied::Found(head) => {
                        mark_used(place, slot);
                        return Some(head);
                    }
                    Copied::Other => {}
                    Copied::Overwritten => continue 'again,
                }
            }
            return None;
        }
        let writer = self.lock()?;
        let (_, entry, head) = writer.find(key, hash)?;
        entry.bytes(&head, to);
        Some(head)
    }

    fn copy(&self, position: u64, key: &[u8], hash: u64, to: &mut Vec<u8>) -> Copied {
        let entry = self.at(position);
        let mut found = None;
        if let Some(head) = entry.head() {
            if head.hash == hash && entry.has_key(&head, key) {
                // Sizes that are read while they are overwritten are any.
                if head.words() > self.largest() {
                    return Copied::Overwritten;
                }
                entry.bytes(&head, to);
                found = Some(head);
            }
        }
        fence(Ordering::Acquire);
        if self.counters.tail.load(Ordering::Relaxed) > position {
            return Copied::Overwritten;
        }
        found.map_or(Copied::Other, Copied::Found)
    }
}

/// The lock of a shard, which is held.
pub(super) type Guard<'a> = Held<'a>;
