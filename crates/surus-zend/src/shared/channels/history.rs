//! Histories of channels in the store that all workers share: one entry for what was published last, and one for each publication that
//! is kept. As all of the store they go when their time is over, or when the memory is full and they were not read for long.
//!
//! A publication is written before its position becomes the newest one: if its writer dies in between, the next one writes at the same
//! place.

use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use surus_channels::{History, HistoryError, Keep, Kept, Position};

use crate::shared::{
    mutex::{Held, Mutex},
    store::{now, store, New, Store},
};

/// Several, so that publishers of different channels seldom wait for each other.
pub(super) const LOCKS: usize = 64;

/// Nobody else's keys in the store begin so (`SharedMemory::prefix()` in PHP begins with a letter).
const NEWEST: &[u8] = b"\0n";
const PUBLICATION: &[u8] = b"\0p";

/// The kind of value of these entries.
const KIND: u8 = 255;

/// How much longer than the last publication its position is known: who comes again sooner knows that nothing is missing.
const LONGER: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) struct SharedHistory {
    pub(super) locks: &'static [Mutex],
    pub(super) appended: &'static AtomicU64,
    /// Other servers have it, too, and decide about positions.
    pub(super) is_shared: bool,
}

/// Nobody can foretell it.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(now())
}

fn memory() -> Result<&'static Store, HistoryError> {
    let store = store();
    match store.is_none() {
        true => Err(HistoryError::None),
        false => Ok(store),
    }
}

fn key_of_newest(channel: &str) -> Vec<u8> {
    [NEWEST, channel.as_bytes()].concat()
}

fn key_of(channel: &str, position: Position) -> Vec<u8> {
    let (epoch, offset) = (position.epoch.to_ne_bytes(), position.offset.to_ne_bytes());
    [PUBLICATION, &epoch, &offset, channel.as_bytes()].concat()
}

fn after(now: u64, time: Duration) -> u64 {
    now.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn newest(store: &Store, channel: &str) -> Option<Position> {
    let mut epoch = Vec::new();
    let head = store.read(&key_of_newest(channel), now(), &mut epoch)?;
    Some(Position {
        epoch: u64::from_ne_bytes(epoch.try_into().ok()?),
        offset: u64::try_from(head.number).ok()?,
    })
}

fn set_newest(
    store: &Store,
    channel: &str,
    position: Position,
    keep: Keep,
) -> Result<(), HistoryError> {
    let now = now();
    let new = New {
        kind: KIND,
        number: i64::try_from(position.offset).unwrap_or(i64::MAX),
        bytes: &position.epoch.to_ne_bytes(),
        until: after(now, keep.ttl.saturating_add(LONGER)),
        is_kept: false,
    };
    let written = store.write(&key_of_newest(channel), &new, now);
    written.map_err(|_| HistoryError::Unavailable)
}

/// Writes one, in place of the oldest.
fn write(
    store: &Store,
    channel: &str,
    position: Position,
    keep: Keep,
    content: &[u8],
) -> Result<(), HistoryError> {
    let now = now();
    if let Some(offset) = position.offset.checked_sub(keep.messages) {
        let oldest = Position { offset, ..position };
        let _ = store.remove(&key_of(channel, oldest), now);
    }
    let new = New {
        kind: KIND,
        number: 0,
        bytes: content,
        until: after(now, keep.ttl),
        is_kept: false,
    };
    let written = store.write(&key_of(channel, position), &new, now);
    written.map_err(|_| HistoryError::Unavailable)
}

impl SharedHistory {
    fn lock(&self, channel: &str) -> Result<Held<'static>, HistoryError> {
        // The same in all processes.
        let bytes = channel.bytes();
        let hash = bytes.fold(0_usize, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(usize::from(byte))
        });
        let lock = self.locks.get(hash % LOCKS);
        let held = lock.and_then(Mutex::hold);
        held.ok_or(HistoryError::Unavailable)
    }
}

impl History for SharedHistory {
    fn append(&self, channel: &str, keep: Keep, content: &[u8]) -> Result<Position, HistoryError> {
        let store = memory()?;
        let _held = self.lock(channel)?;
        let last = newest(store, channel);
        let last = last.unwrap_or_else(|| Position {
            epoch: random(),
            offset: 0,
        });
        let offset = last.offset + 1;
        let position = Position { offset, ..last };
        write(store, channel, position, keep, content)?;
        // First: who dies in between has published it, and others have to look.
        self.appended.fetch_add(1, Ordering::Relaxed);
        set_newest(store, channel, position, keep)?;
        Ok(position)
    }

    fn newest(&self, channel: &str, keep: Keep) -> Result<Position, HistoryError> {
        let store = memory()?;
        if let Some(position) = newest(store, channel) {
            return Ok(position);
        }
        if self.is_shared {
            // Others know where it is.
            return Err(HistoryError::Unavailable);
        }
        let _held = self.lock(channel)?;
        if let Some(position) = newest(store, channel) {
            return Ok(position);
        }
        let (epoch, offset) = (random(), 0);
        let position = Position { epoch, offset };
        set_newest(store, channel, position, keep)?;
        Ok(position)
    }

    fn is_known(&self, channel: &str) -> bool {
        memory().is_ok_and(|store| newest(store, channel).is_some())
    }

    fn read(&self, channel: &str, position: Position) -> Option<Kept> {
        let mut content = Vec::new();
        let store = memory().ok()?;
        store.read(&key_of(channel, position), now(), &mut content)?;
        Some(Kept {
            content: Bytes::from(content),
        })
    }

    fn put(
        &self,
        channel: &str,
        keep: Keep,
        position: Position,
        content: Option<&[u8]>,
    ) -> Result<(), HistoryError> {
        let store = memory()?;
        let _held = self.lock(channel)?;
        if let Some(content) = content {
            write(store, channel, position, keep, content)?;
        }
        let last = newest(store, channel).filter(|last| last.epoch == position.epoch);
        if last.is_some_and(|last| last.offset >= position.offset) {
            return Ok(());
        }
        set_newest(store, channel, position, keep)
    }

    fn appended(&self) -> u64 {
        self.appended.load(Ordering::Relaxed)
    }
}
