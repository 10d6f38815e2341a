//! From a key's hash to the position of its entry: buckets of slots.
//!
//! A slot is one word, so that it changes at once: whoever dies leaves the old entry or the new one.

use std::sync::atomic::{AtomicU64, Ordering};

/// Slots of a bucket: two cache lines.
pub(super) const WAYS: usize = 16;

const POSITION: u64 = (1 << 48) - 1;
/// It was read since its entry was last moved.
const USED: u64 = 1 << 48;
const TAG_SHIFT: u32 = 49;

/// A position in units, part of the hash, and whether it was read. Zero is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(u64);

impl Slot {
    pub(super) fn new(hash: u64, position: u64) -> Self {
        Slot(hash >> TAG_SHIFT << TAG_SHIFT | position & POSITION)
    }

    pub(super) fn position(self) -> u64 {
        self.0 & POSITION
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn was_used(self) -> bool {
        self.0 & USED != 0
    }

    fn may_be(self, hash: u64) -> bool {
        !self.is_empty() && (self.0 ^ hash) >> TAG_SHIFT == 0
    }
}

#[derive(Clone, Copy)]
pub(super) struct Index<'a>(&'a [AtomicU64]);

/// The slots of a hash.
#[derive(Clone, Copy)]
pub(super) struct Bucket<'a>(&'a [AtomicU64]);

impl<'a> Index<'a> {
    /// A multiple of [`WAYS`] slots.
    pub(super) fn new(slots: &'a [AtomicU64]) -> Self {
        Index(slots)
    }

    pub(super) fn bucket(self, hash: u64) -> Bucket<'a> {
        let first = (hash as u32 as usize % (self.0.len() / WAYS)) * WAYS;
        Bucket(&self.0[first..first + WAYS])
    }

    pub(super) fn len(self) -> usize {
        self.0.len()
    }

    pub(super) fn all(self) -> Bucket<'a> {
        Bucket(self.0)
    }
}

impl<'a> Bucket<'a> {
    pub(super) fn slots(self) -> impl Iterator<Item = (&'a AtomicU64, Slot)> {
        self.0
            .iter()
            .map(|place| (place, Slot(place.load(Ordering::Acquire))))
    }

    /// Those whose keys may have this hash.
    pub(super) fn candidates(self, hash: u64) -> impl Iterator<Item = (&'a AtomicU64, Slot)> {
        self.slots().filter(move |(_, slot)| slot.may_be(hash))
    }
}

/// If the slot has not changed meanwhile.
pub(super) fn mark_used(place: &AtomicU64, slot: Slot) {
    if !slot.was_used() {
        let (now, used) = (slot.0, slot.0 | USED);
        let _ = place.compare_exchange(now, used, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// For the holder of the lock. What the entry has is visible to whoever finds it here.
pub(super) fn set(place: &AtomicU64, slot: Slot) {
    place.store(slot.0, Ordering::Release);
}

pub(super) fn clear(place: &AtomicU64) {
    place.store(0, Ordering::Release);
}

/// For the holder of the lock.
pub(super) fn get(place: &AtomicU64) -> Slot {
    Slot(place.load(Ordering::Acquire))
}
