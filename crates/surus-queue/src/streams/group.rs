//! What a group of readers has read and acknowledged.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::book::Peer;

#[derive(Debug, Default)]
pub(super) struct Group {
    /// Up to here all are acknowledged, and beyond it these.
    pub(super) done: u64,
    pub(super) acknowledged: BTreeSet<u64>,
    /// The last one that was read.
    pub(super) read: u64,
    pub(super) held: BTreeMap<u64, Held>,
    /// They were read by a process that has died, or did not want them.
    pub(super) back: BTreeSet<u64>,
    /// How often those were read that are not acknowledged.
    pub(super) attempts: HashMap<u64, u32>,
}

#[derive(Debug)]
pub(super) struct Held {
    pub(super) by: Peer,
    pub(super) since: u64,
}

impl Group {
    pub(super) fn acknowledge(&mut self, position: u64) -> bool {
        self.held.remove(&position);
        self.back.remove(&position);
        self.attempts.remove(&position);
        if position <= self.done || !self.acknowledged.insert(position) {
            return false;
        }
        while self.acknowledged.remove(&(self.done + 1)) {
            self.done += 1;
        }
        self.read = self.read.max(self.done);
        true
    }

    /// The next one that a reader may have, up to this position.
    pub(super) fn next(&mut self, saved: u64, now: u64, idle: u64) -> Option<u64> {
        if let Some(position) = self.back.pop_first() {
            return Some(position);
        }
        let is_late = |held: &Held| idle > 0 && held.since.saturating_add(idle) <= now;
        if let Some((&position, _)) = self.held.iter().find(|(_, held)| is_late(held)) {
            return Some(position);
        }
        while self.read < saved {
            self.read += 1;
            let is_read =
                self.acknowledged.contains(&self.read) || self.held.contains_key(&self.read);
            if !is_read {
                return Some(self.read);
            }
        }
        None
    }
}

impl Group {
    pub(super) fn at(done: u64) -> Group {
        Group {
            done,
            read: done,
            ..Group::default()
        }
    }
}
