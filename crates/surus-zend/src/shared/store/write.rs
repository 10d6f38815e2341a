//! Changes of a shard, by the holder of its lock.
//!
//! Each step leaves the shard as it has to be, so that the next holder can go on if this one dies at any of them: an entry is
//! written where nobody looks, and one word of the index makes it the value of its key.
//!
//! Room is made at the tail: an entry that was read since it was last moved is written again at the head (the CLOCK algorithm,
//! whose hand is the tail), others go. Those that are kept always move.

use std::sync::atomic::{fence, AtomicU64, Ordering::*};

use super::{
    entry::{words, Entry, Head, Item, UNIT},
    index::{self, Slot},
    shard::{Guard, Shard},
};

/// Words that are moved at most to make room for one entry, beside those that are kept.
const MOST_MOVED: usize = 16 * 1024;
/// Nanoseconds between two searches of a shard for expired entries: each looks at all of its slots, with its lock held, and
/// who asks for ever new numbers would have one for each.
const SWEEP_INTERVAL: u64 = 1_000_000_000;
/// Slots that are cleared at a time: others wait for the lock only so long.
pub(super) const CLEARED_AT_ONCE: usize = 4096;

/// A shard whose lock is held.
pub(super) struct Writer<'a> {
    shard: &'a Shard,
    _held: Guard<'a>,
}

/// Why nothing was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A value may have a quarter of a shard.
    TooLarge,
    /// What is kept may use a quarter of the memory.
    Full,
    /// There is no memory, or its lock is not available.
    Unavailable,
}

/// The key of a value, with its hash.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) text: &'a [u8],
    pub(super) hash: u64,
}

/// A value to store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct New<'a> {
    pub(crate) kind: u8,
    pub(crate) number: i64,
    pub(crate) bytes: &'a [u8],
    /// Nanoseconds of the monotonic clock.
    pub(crate) until: u64,
    /// It is not removed to make room.
    pub(crate) is_kept: bool,
}

impl<'a> Writer<'a> {
    pub(super) fn new(shard: &'a Shard, held: Guard<'a>) -> Self {
        let is_orphan = held.is_orphan;
        let writer = Writer { shard, _held: held };
        if is_orphan {
            writer.count_again();
        }
        writer
    }

    /// The slot, the entry and its head.
    pub(super) fn find(
        &self,
        key: &[u8],
        hash: u64,
    ) -> Option<(&'static AtomicU64, Entry<'static>, Head)> {
        let bucket = self.shard.index.bucket(hash);
        bucket.candidates(hash).find_map(|(place, slot)| {
            let entry = self.shard.at(slot.position());
            let head = entry.head()?;
            (head.hash == hash && entry.has_key(&head, key)).then_some((place, entry, head))
        })
    }

    /// The entry of a key that has not expired.
    pub(super) fn current(&self, key: Key<'_>, now: u64) -> Option<(Entry<'static>, Head)> {
        let found = self.find(key.text, key.hash);
        let found = found.filter(|(.., head)| head.until > now);
        found.map(|(_, entry, head)| (entry, head))
    }

    pub(super) fn put(&self, key: Key<'_>, new: &New<'_>, now: u64) -> Result<(), Refusal> {
        let head = Head {
            key_size: key.text.len(),
            size: new.bytes.len(),
            hash: key.hash,
            kind: new.kind,
            is_kept: new.is_kept,
            until: new.until,
            number: new.number,
        };
        let size = words(head.key_size, head.size);
        if u32::try_from(head.key_size.max(head.size)).is_err() || size > self.shard.largest() {
            return Err(Refusal::TooLarge);
        }
        if new.is_kept {
            // Its own place, if it has expired, is for it.
            if let Some((place, _, old)) = self.find(key.text, key.hash) {
                if old.until <= now {
                    self.release(place);
                }
            }
            self.check_kept(size, now)?;
        }
        self.make_room(size, now);
        let place = self.slot(key, now).ok_or(Refusal::Full)?;
        let position = self.place(size);
        self.shard.at(position).write(&head, key.text, new.bytes);
        self.advance(size);
        let before = index::get(place);
        index::set(place, Slot::new(key.hash, position));
        if let Some(old) = self.head(before) {
            self.count(&old, false);
        }
        self.count(&head, true);
        Ok(())
    }

    pub(super) fn remove(&self, key: &[u8], hash: u64) -> bool {
        let found = self.find(key, hash);
        if let Some((place, ..)) = found {
            self.release(place);
        }
        found.is_some()
    }

    /// Removes the keys with this prefix from so many slots.
    pub(super) fn clear(&self, prefix: &[u8], from: usize, count: usize) {
        let mut key = Vec::new();
        for (place, slot) in self.shard.index.all().slots().skip(from).take(count) {
            if slot.is_empty() {
                continue;
            }
            let entry = self.shard.at(slot.position());
            if let Some(head) = entry.head() {
                entry.key(&head, &mut key);
                if !key.starts_with(prefix) {
                    continue;
                }
            }
            self.release(place);
        }
    }

    /// From now on the entry is not removed to make room.
    pub(super) fn keep(&self, entry: Entry<'_>, head: &Head, now: u64) -> Result<(), Refusal> {
        if !head.is_kept {
            self.check_kept(head.words(), now)?;
            entry.set_kept(head.kind);
            self.shard
                .counters
                .kept
                .fetch_add(head.words() as u64, Relaxed);
        }
        Ok(())
    }

    /// Whether there is room for so many words that are kept.
    fn check_kept(&self, size: usize, now: u64) -> Result<(), Refusal> {
        let fits =
            || self.shard.counters.kept.load(Relaxed) as usize + size <= self.shard.most_kept();
        if size > self.shard.largest_moved() {
            return Err(Refusal::TooLarge);
        }
        let sweep = self.shard.counters.sweep;
        if !fits() && sweep.load(Relaxed) <= now {
            sweep.store(now.saturating_add(SWEEP_INTERVAL), Relaxed);
            for (place, slot) in self.shard.index.all().slots() {
                if self.head(slot).is_some_and(|head| head.until <= now) {
                    self.release(place);
                }
            }
        }
        fits().then_some(()).ok_or(Refusal::Full)
    }

    /// The slot of the key, or one that is free, or else that of an entry which goes. `None`: all of the others are kept.
    fn slot(&self, key: Key<'_>, now: u64) -> Option<&'static AtomicU64> {
        if let Some((place, ..)) = self.find(key.text, key.hash) {
            return Some(place);
        }
        let slots = || self.shard.index.bucket(key.hash).slots();
        if let Some((place, _)) = slots().find(|(_, slot)| slot.is_empty()) {
            return Some(place);
        }
        let rank = |slot: Slot| {
            let head = self.head(slot)?;
            let is_over = head.until <= now;
            (is_over || !head.is_kept).then_some((!is_over, slot.was_used(), slot.position()))
        };
        let ranked = slots().filter_map(|(place, slot)| Some((rank(slot)?, place)));
        let (_, place) = ranked.min_by_key(|(rank, _)| *rank)?;
        self.shard.counters.evictions.fetch_add(1, Relaxed);
        Some(place)
    }

    /// Empties a slot.
    fn release(&self, place: &AtomicU64) {
        let head = self.head(index::get(place));
        index::clear(place);
        if let Some(head) = head {
            self.count(&head, false);
        }
    }

    fn head(&self, slot: Slot) -> Option<Head> {
        let entry = (!slot.is_empty()).then(|| self.shard.at(slot.position()))?;
        entry.head()
    }

    fn count(&self, head: &Head, is_new: bool) {
        let counters = &self.shard.counters;
        let size = head.words() as u64;
        let add = |counter: &AtomicU64, by: u64| {
            let before = counter.load(Relaxed);
            let after = if is_new {
                before + by
            } else {
                before.saturating_sub(by)
            };
            counter.store(after, Relaxed);
        };
        add(counters.entries, 1);
        add(counters.words, size);
        if head.is_kept {
            add(counters.kept, size);
        }
    }

    /// The last holder of the lock died: it may not have counted what it has done.
    pub(super) fn count_again(&self) {
        let counters = &self.shard.counters;
        for counter in [counters.entries, counters.words, counters.kept] {
            counter.store(0, Relaxed);
        }
        for (_, slot) in self.shard.index.all().slots() {
            if let Some(head) = self.head(slot) {
                self.count(&head, true);
            }
        }
    }

    /// Words that no entry uses.
    fn gap(&self) -> usize {
        let counters = &self.shard.counters;
        let used = counters.head.load(Relaxed) - counters.tail.load(Relaxed);
        self.shard.size() - used as usize * UNIT
    }

    /// Words that an entry takes, with what is left unused at the end of the ring: entries are contiguous.
    fn needs(&self, size: usize) -> usize {
        let rest = self
            .shard
            .words_to_end(self.shard.counters.head.load(Relaxed));
        if rest < size {
            rest + size
        } else {
            size
        }
    }

    /// There is always room for two entries that are moved.
    fn make_room(&self, size: usize, now: u64) {
        let most = MOST_MOVED.max(4 * size);
        let mut moved = 0;
        while self.gap() < self.needs(size) + 2 * self.shard.largest_moved() {
            moved += self.pop(now, moved < most);
        }
    }

    /// The oldest entry goes, or moves to the head. How many words were moved.
    fn pop(&self, now: u64, may_move: bool) -> usize {
        let counters = &self.shard.counters;
        let position = counters.tail.load(Relaxed);
        let mut moved = 0;
        let size = match self.shard.at(position).item() {
            Some(Item::Padding(words)) => words,
            Some(Item::Entry(head)) => {
                let bucket = self.shard.index.bucket(head.hash);
                let mut slots = bucket.candidates(head.hash);
                let slot = slots.find(|(_, slot)| slot.position() == position);
                if let Some((place, slot)) = slot {
                    moved = self.pass(position, &head, place, slot, now, may_move);
                }
                head.words()
            }
            // Impossible: the ring would be walked from nowhere. All that is in it goes.
            None => {
                self.clear(b"", 0, usize::MAX);
                (counters.head.load(Relaxed) - position) as usize * UNIT
            }
        };
        counters
            .tail
            .store(position + (size / UNIT) as u64, Relaxed);
        // Before anything is written there.
        fence(Release);
        moved
    }

    fn pass(
        &self,
        position: u64,
        head: &Head,
        place: &AtomicU64,
        slot: Slot,
        now: u64,
        may_move: bool,
    ) -> usize {
        let size = head.words();
        let stays = head.until > now
            && size <= self.shard.largest_moved()
            && self.gap() >= self.needs(size)
            && (head.is_kept || may_move && slot.was_used());
        if !stays {
            self.shard
                .counters
                .evictions
                .fetch_add(u64::from(head.until > now), Relaxed);
            self.release(place);
            return 0;
        }
        let to = self.place(size);
        self.shard.at(to).copy_from(self.shard.at(position), size);
        self.advance(size);
        index::set(place, Slot::new(head.hash, to));
        size
    }

    /// The position for the next entry.
    fn place(&self, size: usize) -> u64 {
        let head = self.shard.counters.head.load(Relaxed);
        let rest = self.shard.words_to_end(head);
        if rest < size {
            self.shard.at(head).pad(rest);
            self.advance(rest);
        }
        self.shard.counters.head.load(Relaxed)
    }

    /// What is at the head belongs to the ring now.
    fn advance(&self, size: usize) {
        let head = self.shard.counters.head;
        head.store(head.load(Relaxed) + (size / UNIT) as u64, Release);
    }
}
