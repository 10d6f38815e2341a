//! A part of the cache: a lock, a ring of entries, and an index into it.
//!
//! Positions count all bytes that were ever written; a position modulo the ring's size is its place in memory. An entry
//! is intact until the size of the ring was written from its beginning on.

use std::slice;

use super::{
    lock::{Held, Lock},
    Value, LARGEST_PART,
};

/// Bytes of the ring for each slot of the index: about the size of a small entry.
const BYTES_PER_SLOT: usize = 128;
/// Slots that a key may have.
const WAYS: usize = 8;
pub(super) const SLOT_BYTES: usize = size_of::<Slot>();
/// Bytes of an entry before its key: lengths of key and value, kind. Entries begin at multiples of it.
const HEAD: usize = 16;

/// At the beginning of a shard's memory.
#[repr(C)]
struct Header {
    lock: Lock,
    /// All bytes that were ever written.
    written: u64,
}

/// The place of an entry; a slot of zeros is empty. Any bytes are a valid slot.
#[repr(C)]
#[derive(Clone, Copy)]
struct Slot {
    hash: u64,
    position: u64,
    /// Nanoseconds of the monotonic clock.
    until: u64,
    /// Padding: a slot must not cross a cache line.
    unused: u64,
}

/// The memory of a shard, which is only accessed under its lock.
pub(super) struct Shard {
    header: *mut Header,
    slots: usize,
    ring: usize,
}

// SAFETY: the memory is never unmapped, and only the holder of its lock uses it.
unsafe impl Send for Shard {}
// SAFETY: as above.
unsafe impl Sync for Shard {}

/// A shard whose lock is held.
pub(super) struct Ring<'a> {
    written: &'a mut u64,
    slots: &'a mut [Slot],
    bytes: &'a mut [u8],
    /// Dropped after the other fields.
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
        // SAFETY: the header fits, and nobody uses it yet.
        let locked = unsafe { Lock::make(&raw mut (*header).lock) };
        (locked && ring > 0).then_some(Shard {
            header,
            slots,
            ring,
        })
    }

    /// None if the lock is held for too long.
    pub(super) fn lock(&self) -> Option<Ring<'_>> {
        let head = size_of::<Header>().next_multiple_of(SLOT_BYTES);
        // SAFETY: the lock was made, and is only used as such.
        let held = unsafe { &(*self.header).lock }.hold()?;
        // SAFETY: the three parts do not overlap in the shard's memory, any bytes are valid in them, and only the
        // holder of the lock uses them.
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

    /// Adds a key, which must not be there. False if the entry is too large.
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
            // Entries are contiguous: the rest of the ring stays unused.
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

    /// Clears the index: the last holder of the lock died, so the index may be inconsistent.
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
