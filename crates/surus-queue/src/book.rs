//! Which jobs there are, and whose turn it is. Decides, and does nothing: what is to be written down is returned as a [`Record`].

mod batches;
mod keys;
mod lives;
mod queue;
mod restore;
mod shown;
mod time;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::clock::Clock;
use crate::holder::Holder;
use crate::job::{Ending, Failure, Id, Job, Push, Pushed};
use crate::message::Subscription;
use crate::millis;
use crate::recent::Recent;
use crate::record::Record;
use crate::streams::Streams;
pub(crate) use batches::Batch;
use batches::Turn;
use queue::Queue;

/// A connection of the owner, never the same number again.
pub(crate) type Peer = u64;

/// Names of queues that are kept: they come from code, so more are a mistake.
const QUEUES: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is not on disk yet.
    Unsaved,
    Ready,
    Delayed,
    /// It runs in the process of this connection.
    Held(Peer),
    /// It runs in this process, if that is still alive; it has no connection.
    Doubted(Holder),
    Failed,
}

#[derive(Debug)]
struct Entry {
    job: Job,
    /// Jobs of the same priority run in this order.
    sequence: u64,
    place: Place,
    /// How much of it is done, while it runs: from 0 to 1.
    progress: Option<f32>,
}

#[derive(Debug, Default)]
pub(crate) struct Book {
    jobs: HashMap<Id, Entry>,
    queues: BTreeMap<String, Queue>,
    /// When delayed jobs become ready.
    due: BTreeSet<(u64, Id)>,
    /// Jobs in doubt.
    doubted: BTreeSet<Id>,
    unique: HashMap<(String, String), Id>,
    /// What the times in the log mean.
    clock: Option<Clock>,
    /// Jobs that are gone: one that is pushed again was not heard of by its sender.
    gone: Recent<()>,
    pub(crate) streams: Streams,
    batches: HashMap<Id, Batch>,
    /// From jobs to their batches.
    batch_of: HashMap<Id, Id>,
    bytes: u64,
    sequence: u64,
}

impl Book {
    /// Takes a job in. It does not run before [`Book::saved`].
    pub(crate) fn push(
        &mut self,
        id: Id,
        push: Push,
        now: u64,
        most: u64,
    ) -> Result<(Pushed, Option<&Job>), String> {
        let known = Pushed {
            id,
            is_new: true,
            position: 0,
        };
        if self.jobs.contains_key(&id) || self.gone.has(&id) {
            return Ok((known, None));
        }
        let key = push.unique.clone().map(|key| (push.queue.clone(), key));
        if let Some(&other) = key.as_ref().and_then(|key| self.unique.get(key)) {
            let pushed = Pushed {
                id: other,
                is_new: false,
                position: 0,
            };
            return Ok((pushed, None));
        }
        let job = Job::pushed(id, push, now);
        if self.bytes() + job.size() > most {
            return Err(format!(
                "the queue is full: its jobs take {} of {most} bytes (`queue_size`)",
                self.bytes()
            ));
        }
        if !self.queues.contains_key(&job.queue) && self.queues.len() >= QUEUES {
            return Err(format!("there are {QUEUES} queues already"));
        }
        self.insert(job, Place::Unsaved);
        Ok((known, self.jobs.get(&id).map(|entry| &entry.job)))
    }

    fn insert(&mut self, job: Job, place: Place) {
        self.sequence += 1;
        self.bytes += job.size();
        let id = job.id;
        let entry = Entry {
            job,
            sequence: self.sequence,
            place: Place::Unsaved,
            progress: None,
        };
        self.jobs.insert(id, entry);
        if place != Place::Failed {
            self.take_key(id);
        }
        self.put(id, place);
    }

    /// Takes a job out of its place, and puts it into another one.
    fn put(&mut self, id: Id, place: Place) {
        let Some(entry) = self.jobs.get_mut(&id) else {
            return;
        };
        let was = std::mem::replace(&mut entry.place, place);
        let job = &entry.job;
        if !self.queues.contains_key(&job.queue) {
            self.queues.insert(job.queue.clone(), Queue::default());
        }
        let Some(queue) = self.queues.get_mut(&job.queue) else {
            return;
        };
        queue.leave(was, job, entry.sequence);
        queue.enter(place, job, entry.sequence);
        match was {
            Place::Delayed => _ = self.due.remove(&(job.due, id)),
            Place::Doubted(_) => _ = self.doubted.remove(&id),
            _ => {}
        }
        match place {
            Place::Delayed => _ = self.due.insert((job.due, id)),
            Place::Doubted(_) => _ = self.doubted.insert(id),
            _ => {}
        }
    }

    /// Puts a job where it waits. A new time must be set before, while it is in no place that depends on it.
    fn wait(&mut self, id: Id, now: u64) {
        let is_due = self.jobs.get(&id).is_some_and(|entry| entry.job.due <= now);
        self.put(id, if is_due { Place::Ready } else { Place::Delayed });
    }

    /// It is on disk: it may run.
    pub(crate) fn saved(&mut self, id: Id, now: u64) {
        if self.place(id) == Some(Place::Unsaved) {
            self.wait(id, now);
        }
    }

    pub(crate) fn place(&self, id: Id) -> Option<Place> {
        self.jobs.get(&id).map(|entry| entry.place)
    }

    /// Forgets a job: it is done, or could not be saved.
    pub(crate) fn remove(&mut self, id: Id) -> Option<Job> {
        self.leave_key(id);
        let (sequence, place) = self
            .jobs
            .get(&id)
            .map(|entry| (entry.sequence, entry.place))?;
        let entry = self.jobs.remove(&id)?;
        let job = entry.job;
        if let Some(queue) = self.queues.get_mut(&job.queue) {
            queue.leave(place, &job, sequence);
        }
        self.due.remove(&(job.due, id));
        self.doubted.remove(&id);
        self.bytes -= job.size();
        Some(job)
    }

    /// From now on this connection takes so many jobs of a queue at a time.
    pub(crate) fn subscribe(&mut self, peer: Peer, wanted: &Subscription) {
        let (queue, places) = (wanted.queue.as_str(), wanted.places);
        if !self.queues.contains_key(queue) {
            if places == 0 || self.queues.len() >= QUEUES {
                return;
            }
            self.queues.insert(queue.to_owned(), Queue::default());
        }
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.subscribe(peer, wanted);
        }
    }

    /// The next job and who gets it; it is held from now on.
    pub(crate) fn next(
        &mut self,
        holders: &HashMap<Peer, Holder>,
        now: u64,
    ) -> Option<(Peer, &Job, Record)> {
        let mut queues = self.queues.values_mut();
        let (queue, peer, id) = queues.find_map(|queue| {
            let (peer, id) = queue.next(now)?;
            Some((queue, peer, id))
        })?;
        let holder = *holders.get(&peer)?;
        queue.begin(now);
        self.put(id, Place::Held(peer));
        let entry = self.jobs.get_mut(&id)?;
        entry.job.attempts += 1;
        entry.job.holder = Some(holder);
        Some((peer, &entry.job, Record::Begun { id, holder }))
    }

    /// What a running job says of itself.
    pub(crate) fn note_progress(&mut self, peer: Peer, id: Id, done: f32) {
        if let Some(entry) = self.jobs.get_mut(&id) {
            if entry.place == Place::Held(peer) {
                entry.progress = Some(done.clamp(0.0, 1.0));
            }
        }
    }

    /// A run has ended. `None`: it is not this connection's.
    pub(crate) fn end(&mut self, peer: Peer, id: Id, ending: Ending, now: u64) -> Option<Record> {
        if self.place(id) != Some(Place::Held(peer)) {
            return None;
        }
        Some(self.ended(id, ending, now))
    }

    fn ended(&mut self, id: Id, ending: Ending, now: u64) -> Record {
        // Out of every place that depends on what changes.
        self.put(id, Place::Unsaved);
        let Some(entry) = self.jobs.get_mut(&id) else {
            return Record::Done { id };
        };
        entry.job.holder = None;
        entry.progress = None;
        match ending {
            Ending::Done => {
                if let Some(job) = self.remove(id) {
                    if let Some(queue) = self.queues.get_mut(&job.queue) {
                        queue.done += 1;
                    }
                }
                self.gone.add(id, ());
                self.turn(id, Turn::Done, now);
                Record::Done { id }
            }
            Ending::Again {
                delay,
                error,
                counts,
            } => {
                let job = &mut entry.job;
                job.due = now.saturating_add(millis(delay));
                job.attempts -= u32::from(!counts && job.attempts > 0);
                job.error = error.or(job.error.take());
                let record = Record::Again {
                    id,
                    due: job.due,
                    attempts: job.attempts,
                    error: job.error.clone(),
                };
                self.wait(id, now);
                record
            }
            Ending::Failed { error } => {
                let failure = Failure { at: now, error };
                entry.job.failure = Some(failure.clone());
                self.fail(id);
                self.turn(id, Turn::Failed, now);
                Record::Failed { id, failure }
            }
        }
    }

    /// It is among the failed ones: another job may have its key.
    fn fail(&mut self, id: Id) {
        self.put(id, Place::Failed);
        self.leave_key(id);
    }

    /// Bytes that its jobs take.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes + self.streams.bytes()
    }

    /// All that must be kept.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let mut entries: Vec<&Entry> = self.jobs.values().collect();
        entries.retain(|entry| entry.place != Place::Unsaved);
        entries.sort_unstable_by_key(|entry| entry.sequence);
        let clock = self.clock.map(|Clock { boot, offset }| Record::Clock {
            boot,
            offset,
            set_by: 0,
        });
        let jobs = entries
            .into_iter()
            .map(|entry| Record::Job(entry.job.clone()));
        clock
            .into_iter()
            .chain(self.batch_records())
            .chain(jobs)
            .chain(self.streams.records())
    }
}

#[cfg(test)]
mod tests;
