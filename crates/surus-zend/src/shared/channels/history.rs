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
use surus_channels::{History, HistoryError, Keep, Position};

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

/// So long after another server's epoch was over, a worker that was busy may still hear something of it, in nanoseconds.
const LATE: u64 = 60_000_000_000;

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

/// Where a channel is.
#[derive(Clone, Copy)]
struct Newest {
    position: Position,
    /// The epoch that this one has replaced, and when.
    before: Option<(u64, u64)>,
}

fn newest(store: &Store, channel: &str) -> Option<Newest> {
    let mut bytes = Vec::new();
    let head = store.read(&key_of_newest(channel), now(), &mut bytes)?;
    let words = bytes.chunks_exact(size_of::<u64>());
    let mut words = words.filter_map(|word| word.try_into().ok().map(u64::from_ne_bytes));
    let position = Position {
        epoch: words.next()?,
        offset: u64::try_from(head.number).ok()?,
    };
    let before = words.next().zip(words.next());
    Some(Newest { position, before })
}

fn set_newest(
    store: &Store,
    channel: &str,
    newest: Newest,
    keep: Keep,
) -> Result<(), HistoryError> {
    let now = now();
    let Newest { position, before } = newest;
    let mut bytes = position.epoch.to_ne_bytes().to_vec();
    if let Some((epoch, time)) = before {
        bytes.extend_from_slice(&epoch.to_ne_bytes());
        bytes.extend_from_slice(&time.to_ne_bytes());
    }
    let new = New {
        kind: KIND,
        number: i64::try_from(position.offset).unwrap_or(i64::MAX),
        bytes: &bytes,
        until: after(now, keep.ttl.saturating_add(LONGER)),
        is_kept: false,
    };
    let written = store.write(&key_of_newest(channel), &new, now);
    written.map_err(|_| HistoryError::Unavailable)
}

/// A channel of which nothing is known.
fn begin() -> Newest {
    let (epoch, offset) = (random(), 0);
    Newest {
        position: Position { epoch, offset },
        before: None,
    }
}

/// What becomes the newest of a channel where somebody has heard of a position, or has asked for it. `None`: it stays.
fn newer(last: Option<Newest>, position: Position, was_asked: bool, now: u64) -> Option<Newest> {
    let Some(last) = last else {
        let before = None;
        return Some(Newest { position, before });
    };
    if last.position.epoch == position.epoch {
        let is_newer = position.offset > last.position.offset;
        return is_newer.then_some(Newest { position, ..last });
    }
    let is_over = last
        .before
        .is_some_and(|(epoch, time)| epoch == position.epoch && now.saturating_sub(time) < LATE);
    if is_over && !was_asked {
        return None;
    }
    // If it has come again, nothing tells which of them is late.
    let before = (!is_over).then_some((last.position.epoch, now));
    Some(Newest { position, before })
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
        let last = newest(store, channel).unwrap_or_else(begin);
        let offset = last.position.offset + 1;
        let position = Position {
            offset,
            ..last.position
        };
        write(store, channel, position, keep, content)?;
        // First: who dies in between has published it, and others have to look.
        self.appended.fetch_add(1, Ordering::Relaxed);
        set_newest(store, channel, Newest { position, ..last }, keep)?;
        Ok(position)
    }

    fn newest(&self, channel: &str, keep: Keep) -> Result<Position, HistoryError> {
        let store = memory()?;
        if let Some(newest) = newest(store, channel) {
            return Ok(newest.position);
        }
        if self.is_shared {
            // Others know where it is.
            return Err(HistoryError::Unavailable);
        }
        let _held = self.lock(channel)?;
        if let Some(newest) = newest(store, channel) {
            return Ok(newest.position);
        }
        let newest = begin();
        set_newest(store, channel, newest, keep)?;
        Ok(newest.position)
    }

    fn is_known(&self, channel: &str) -> bool {
        memory().is_ok_and(|store| newest(store, channel).is_some())
    }

    fn read(&self, channel: &str, position: Position) -> Option<Bytes> {
        let mut content = Vec::new();
        let store = memory().ok()?;
        store.read(&key_of(channel, position), now(), &mut content)?;
        Some(Bytes::from(content))
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
        let newer = newer(newest(store, channel), position, content.is_none(), now());
        newer.map_or(Ok(()), |newer| set_newest(store, channel, newer, keep))
    }

    fn appended(&self) -> u64 {
        self.appended.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_heard_late_of_an_old_epoch_does_not_bring_it_back() {
        let at = |epoch, offset| Position { epoch, offset };
        let newest = |position, before| Newest { position, before };
        let place = |newest: Option<Newest>| newest.map(|it| (it.position, it.before));
        let step = |last, position, was_asked, now| place(newer(last, position, was_asked, now));
        assert_eq!(step(None, at(1, 3), false, 0), Some((at(1, 3), None)));
        let old = Some(newest(at(1, 3), None));
        assert_eq!(step(old, at(1, 3), true, 0), None);
        assert_eq!(step(old, at(1, 4), false, 0), Some((at(1, 4), None)));
        let before = Some((1, 5));
        assert_eq!(step(old, at(2, 1), false, 5), Some((at(2, 1), before)));
        let new = Some(newest(at(2, 1), before));
        assert_eq!(step(new, at(1, 4), false, 6), None);
        assert_eq!(step(new, at(2, 2), false, 6), Some((at(2, 2), before)));
        // It is there again: somebody has asked, or it has been over for long.
        assert_eq!(step(new, at(1, 4), true, 6), Some((at(1, 4), None)));
        let later = 5 + LATE;
        let expected = Some((at(1, 4), Some((2, later))));
        assert_eq!(step(new, at(1, 4), false, later), expected);
    }
}
