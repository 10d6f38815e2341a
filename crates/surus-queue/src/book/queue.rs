//! The jobs of one queue by place, and who takes them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Peer, Place};
use crate::job::{Id, Job};
use crate::message::{Rate, Subscription};

/// Milliseconds that are made up for.
const LATE: f64 = 20.0;

#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// By priority, then in the order in which they came.
    ready: BTreeMap<(Reverse<i32>, u64), Id>,
    takers: Vec<Taker>,
    rate: Rate,
    /// When the next one may begin, in milliseconds since 1970.
    not_before: f64,
    held: HashMap<Peer, HashSet<Id>>,
    /// Runs of a job whose processes die; as its handler has said last.
    pub(crate) tries: Option<u32>,
    pub(crate) delayed: u64,
    pub(crate) running: u64,
    pub(crate) failed: u64,
    /// Since the owner has started.
    pub(crate) done: u64,
}

#[derive(Debug)]
struct Taker {
    peer: Peer,
    places: u32,
}

impl Queue {
    pub(super) fn leave(&mut self, place: Place, job: &Job, sequence: u64) {
        match place {
            Place::Unsaved => {}
            Place::Ready => _ = self.ready.remove(&(Reverse(job.priority), sequence)),
            Place::Delayed => self.delayed -= 1,
            Place::Held(peer) => {
                self.running -= 1;
                if let Some(held) = self.held.get_mut(&peer) {
                    held.remove(&job.id);
                    if held.is_empty() {
                        self.held.remove(&peer);
                    }
                }
            }
            Place::Doubted(_) => self.running -= 1,
            Place::Failed => self.failed -= 1,
        }
    }

    pub(super) fn enter(&mut self, place: Place, job: &Job, sequence: u64) {
        match place {
            Place::Unsaved => {}
            Place::Ready => _ = self.ready.insert((Reverse(job.priority), sequence), job.id),
            Place::Delayed => self.delayed += 1,
            Place::Held(peer) => {
                self.running += 1;
                self.held.entry(peer).or_default().insert(job.id);
            }
            Place::Doubted(_) => self.running += 1,
            Place::Failed => self.failed += 1,
        }
    }

    pub(super) fn subscribe(&mut self, peer: Peer, wanted: &Subscription) {
        self.unsubscribe(peer);
        if wanted.places > 0 {
            let places = wanted.places;
            self.takers.push(Taker { peer, places });
            self.tries = wanted.tries.or(self.tries);
            self.rate = wanted.rate.unwrap_or(self.rate);
        }
    }

    pub(super) fn unsubscribe(&mut self, peer: Peer) {
        self.takers.retain(|taker| taker.peer != peer);
    }

    /// One begins.
    pub(super) fn begin(&mut self, now: u64) {
        let Some(pause) = self.rate.pause() else {
            return;
        };
        // What the owner was late by is made up for, but not the time in which there was nothing to do.
        let now = now as f64;
        let was_late = self.not_before > now - LATE;
        self.not_before = pause + if was_late { self.not_before } else { now };
    }

    /// The clock was set by so many milliseconds.
    pub(super) fn shift(&mut self, by: i64) {
        self.not_before += by as f64;
    }

    /// When a job may begin that has to wait for that.
    pub(super) fn next_due(&self, now: u64) -> Option<u64> {
        let due = self.not_before.ceil() as u64;
        (due > now && !self.ready.is_empty() && self.rate.pause().is_some()).then_some(due)
    }

    /// The first job that is ready, and the connection that takes it: the one with the fewest.
    pub(super) fn next(&self, now: u64) -> Option<(Peer, Id)> {
        if self.rate.pause().is_some() && self.not_before > now as f64 {
            return None;
        }
        let (_, &id) = self.ready.first_key_value()?;
        let held = |taker: &Taker| self.held.get(&taker.peer).map_or(0, HashSet::len);
        let free = self
            .takers
            .iter()
            .filter(|taker| held(taker) < taker.places as usize);
        let taker = free.min_by_key(|taker| held(taker))?;
        Some((taker.peer, id))
    }

    pub(super) fn held_by(&self, peer: Peer) -> impl Iterator<Item = Id> + '_ {
        self.held.get(&peer).into_iter().flatten().copied()
    }

    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    pub(super) fn places(&self) -> u64 {
        self.takers
            .iter()
            .map(|taker| u64::from(taker.places))
            .sum()
    }
}
