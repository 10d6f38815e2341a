//! A part of the cache: a lock, a ring of entries, and an index into it.
//!
//! Positions count all bytes that were ever written; where one is in memory is its remainder. An entry is whole for as
//! long as less than a ring's size was written behind its beginning.

use std::slice;

use super::{
    lock::{Held, Lock},
    Value, LARGEST_PART,
};

/// One slot of the index for this many bytes of the ring: about what a small entry has.
const BYTES_PER_SLOT: usize = 128;
/// Slots that a key may have.
const WAYS: usize = 8;
pub(super) const SLOT_BYTES: usize = size_of::<Slot>();
/// Of an entry before its key: lengths of key and value, kind; entries begin at multiples of 16.
const HEAD: usize = 16;

/// At the beginning of a shard's memory.
#[repr(C)]
struct Header {
    lock: Lock,
    /// How much was written.
    written: u64,
}

/// Where an entry is; all zeros: nowhere. Any bytes are a valid slot.
#[repr(C)]
#[derive(Clone, Copy)]
struct Slot {
    hash: u64,
    position: u64,
    /// Nanoseconds of the monotonic clock.
    until: u64,
    /// Keeps slots from crossing lines of the processor's cache.
    unused: u64,
}

/// A shard's memory; what is in it is reached through its lock only.
pub(super) struct Shard {
    header: *mut Header,
    slots: usize,
    ring: usize,
}

// SAFETY: the memory is never unmapped, and used by who holds the lock in it.
unsafe impl Send for Shard {}
// SAFETY: as above.
unsafe impl Sync for Shard {}

/// A shard whose lock is held.
pub(super) struct Ring<'a> {
    written: &'a mut u64,
    slots: &'a mut [Slot],
    bytes: &'a mut [u8],
    /// Dropped behind the others.
    _held: Held<'a>,
}

impl Shard {
    /// # Safety
    ///
    /// `memory` has `bytes` zeros at a multiple of 32, which only this shard uses and nobody unmaps.
    pub(super) unsafe fn new(memory: *mut u8, bytes: usize) -> Option<Shard> {
        let head = size_of::<Header>().next_multiple_of(SLOT_BYTES);
        let slots = (bytes / (BYTES_PER_SLOT + SLOT_BYTES) / WAYS).max(1) * WAYS;
        let ring = bytes.checked_sub(head + slots * SLOT_BYTES)? / HEAD * HEAD;
        let header: *mut Header = memory.cast();
        // SAFETY: the header fits, and is nobody's yet.
        let locked = unsafe { Lock::make(&raw mut (*header).lock) };
        (locked && ring > 0).then_some(Shard {
            header,
            slots,
            ring,
        })
    }

    /// None if somebody holds it for too long.
    pub(super) fn lock(&self) -> Option<Ring<'_>> {
        let head = size_of::<Header>().next_multiple_of(SLOT_BYTES);
        // SAFETY: the lock was made, and is only used as such.
        let held = unsafe { &(*self.header).lock }.hold()?;
        // SAFETY: the three parts lie in the shard's memory beside each other, any bytes are valid in them, and who holds
        // the lock is the only one that uses them.
        let mut ring = unsafe {
            let memory: *mut u8 = self.header.cast();
            Ring {
                written: &mut (*self.header).written,
                slots: slice::from_raw_parts_mut(memory.add(head).cast(), self.slots),
                bytes: slice::from_raw_parts_mut(
                    memory.add(head + self.slots * SLOT_BYTES),
                    self.ring,
                ),
                _held: held,
            }
        };
        if ring._held.is_orphan {
            ring.forget();
        }
        Some(ring)
    }
}

impl Ring<'_> {
    pub(super) fn read(&self, key: &[u8], hash: u64, now: u64) -> Option<Value> {
        let slot = self.slots[self.find(key, hash)?];
        if slot.until <= now {
            return None;
        }
        let (_, kind, value) = self.entry(slot)?;
        Some(Value {
            kind,
            bytes: value.to_vec(),
        })
    }

    /// The key must not be there. False if the entry is too large.
    pub(super) fn write(
        &mut self,
        key: &[u8],
        hash: u64,
        kind: u8,
        value: &[u8],
        until: u64,
    ) -> bool {
        let size = (HEAD + key.len() + value.len()).next_multiple_of(HEAD);
        let (Ok(key_size), Ok(value_size)) = (u32::try_from(key.len()), u32::try_from(value.len()))
        else {
            return false;
        };
        if size > self.bytes.len() / LARGEST_PART {
            return false;
        }
        let mut at = self.place(*self.written);
        if at + size > self.bytes.len() {
            // Entries are in one piece: what is left at the end stays free.
            *self.written += (self.bytes.len() - at) as u64;
            at = 0;
        }
        let position = *self.written;
        *self.written += size as u64;
        let entry = &mut self.bytes[at..at + size];
        entry[..4].copy_from_slice(&key_size.to_ne_bytes());
        entry[4..8].copy_from_slice(&value_size.to_ne_bytes());
        entry[8] = kind;
        entry[HEAD..HEAD + key.len()].copy_from_slice(key);
        entry[HEAD + key.len()..HEAD + key.len() + value.len()].copy_from_slice(value);
        let ways = self.ways(hash);
        let free = |slot: &Slot| slot.hash == 0 || self.entry(*slot).is_none();
        let oldest = || ways.clone().min_by_key(|&i| self.slots[i].position);
        let slot = ways.clone().find(|&i| free(&self.slots[i])).or_else(oldest);
        if let Some(slot) = slot {
            self.slots[slot] = Slot {
                hash,
                position,
                until,
                unused: 0,
            };
        }
        true
    }

    pub(super) fn remove(&mut self, key: &[u8], hash: u64) {
        if let Some(slot) = self.find(key, hash) {
            self.slots[slot].hash = 0;
        }
    }

    pub(super) fn clear(&mut self, prefix: &[u8]) {
        for i in 0..self.slots.len() {
            let slot = self.slots[i];
            let stays = slot.hash == 0
                || self
                    .entry(slot)
                    .is_some_and(|(key, ..)| !key.starts_with(prefix));
            if !stays {
                self.slots[i].hash = 0;
            }
        }
    }

    /// Whoever was here last has died: nothing of the index is believed.
    fn forget(&mut self) {
        for slot in self.slots.iter_mut() {
            slot.hash = 0;
        }
        let size = HEAD as u64;
        *self.written = *self.written / size * size;
    }

    fn ways(&self, hash: u64) -> std::ops::Range<usize> {
        let first = (hash as u32 as usize % (self.slots.len() / WAYS)) * WAYS;
        first..first + WAYS
    }

    fn place(&self, position: u64) -> usize {
        (position % self.bytes.len() as u64) as usize
    }

    /// The slot of a key.
    fn find(&self, key: &[u8], hash: u64) -> Option<usize> {
        self.ways(hash).find(|&i| {
            let slot = self.slots[i];
            slot.hash == hash && self.entry(slot).is_some_and(|(found, ..)| found == key)
        })
    }

    /// Key, kind and value, if they are still there.
    fn entry(&self, slot: Slot) -> Option<(&[u8], u8, &[u8])> {
        let behind = self.written.checked_sub(slot.position)?;
        if slot.hash == 0 || behind > self.bytes.len() as u64 {
            return None;
        }
        let entry = self.bytes.get(self.place(slot.position)..)?;
        let size =
            |at: usize| Some(u32::from_ne_bytes(entry.get(at..at + 4)?.try_into().ok()?) as usize);
        let (key, value) = (size(0)?, size(4)?);
        let text = entry.get(HEAD..HEAD.checked_add(key)?.checked_add(value)?)?;
        Some((&text[..key], entry[8], &text[key..]))
    }
}
