//! Batches: jobs that belong together, and jobs that follow them.
//!
//! What follows is decided by the ends of the jobs alone, which are in the log. So it need not be written down: a new owner that reads the log
//! comes to the same.

use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

use super::{Book, Place, QUEUES};
use crate::job::{Id, Job, NewBatch, Push, Pushed};
use crate::record::Record;

/// A batch, until all of its jobs are done or forgotten.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Batch {
    pushed: u64,
    total: u64,
    done: u64,
    /// Among the failed ones.
    failed: u64,
    forgotten: u64,
    /// What follows, as long as it has not been pushed.
    then: Option<(Id, Push)>,
    catch: Option<(Id, Push)>,
    finally: Option<(Id, Push)>,
}

/// What has become of one of its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Done,
    Failed,
    /// A failed one runs again.
    Again,
    /// A failed one is gone.
    Forgotten,
}

impl Batch {
    /// Bytes of what follows, roughly.
    fn size(&self) -> u64 {
        let after = [&self.then, &self.catch, &self.finally];
        let all = after.into_iter().flatten();
        all.map(|(_, push)| push.size()).sum()
    }

    fn turn(&mut self, turn: Turn) -> Vec<(Id, Push)> {
        let mut released = Vec::new();
        match turn {
            Turn::Done => self.done += 1,
            Turn::Failed => {
                self.failed += 1;
                released.extend(self.catch.take());
            }
            Turn::Again => self.failed = self.failed.saturating_sub(1),
            Turn::Forgotten => {
                self.failed = self.failed.saturating_sub(1);
                self.forgotten += 1;
            }
        }
        if self.done == self.total {
            released.extend(self.then.take());
        }
        if self.done + self.failed + self.forgotten == self.total {
            released.extend(self.finally.take());
        }
        released
    }

    fn is_over(&self) -> bool {
        self.done + self.forgotten == self.total
    }
}

impl Book {
    /// Takes jobs in that belong together. They do not run before [`Book::saved`].
    pub(crate) fn push_batch(
        &mut self,
        id: Id,
        new: NewBatch,
        now: u64,
        most: u64,
    ) -> Result<(Pushed, Option<Record>), String> {
        let known = Pushed {
            id,
            is_new: true,
            position: 0,
        };
        if self.batches.contains_key(&id) || self.gone.has(&id) {
            return Ok((known, None));
        }
        let is_unique = new.jobs.iter().any(|(_, push)| push.unique.is_some());
        if new.jobs.is_empty() || is_unique {
            return Err("a batch has jobs, and none of them a unique key".to_owned());
        }
        let names = new.jobs.iter().map(|(_, push)| &push.queue);
        let names = names.filter(|name| !self.queues.contains_key(*name));
        let names: std::collections::HashSet<&String> = names.collect();
        if self.queues.len() + names.len() > QUEUES {
            return Err(format!("there would be more than {QUEUES} queues"));
        }
        let batch = Batch {
            pushed: now,
            total: new.jobs.len() as u64,
            then: new.then,
            catch: new.catch,
            finally: new.finally,
            ..Batch::default()
        };
        let jobs: Vec<Job> = new
            .jobs
            .into_iter()
            .map(|(id, push)| Job::pushed(id, push, now))
            .collect();
        let size = batch.size() + jobs.iter().map(Job::size).sum::<u64>();
        if self.bytes() + size > most {
            return Err(format!(
                "the queue is full: its jobs take {} of {most} bytes (`queue_size`), and the batch {size}",
                self.bytes()
            ));
        }
        self.bytes += batch.size();
        self.batches.insert(id, batch.clone());
        for job in &jobs {
            self.batch_of.insert(job.id, id);
            self.insert(job.clone(), Place::Unsaved);
        }
        let record = Record::Batch {
            id,
            batch: Box::new(batch),
            jobs,
            members: Vec::new(),
        };
        Ok((known, Some(record)))
    }

    /// A new owner reads of a batch: with its jobs, or with their ids if they have records of their own.
    pub(super) fn restore_batch(&mut self, id: Id, batch: Batch, jobs: Vec<Job>, members: &[Id]) {
        self.drop_batch(id);
        self.bytes += batch.size();
        self.batches.insert(id, batch);
        for &member in members {
            self.batch_of.insert(member, id);
        }
        for mut job in jobs {
            crate::record::detach(&mut job);
            self.batch_of.insert(job.id, id);
            self.remove(job.id);
            self.insert(job, Place::Delayed);
        }
    }

    /// It cannot be kept; nor can its jobs, which are gone already.
    pub(crate) fn refuse_batch(&mut self, id: Id) {
        if let Some(batch) = self.batches.remove(&id) {
            self.bytes -= batch.size();
        }
        self.batch_of.retain(|_, batch| *batch != id);
    }

    /// Forgets a batch; its jobs stay.
    fn drop_batch(&mut self, id: Id) {
        if let Some(batch) = self.batches.remove(&id) {
            self.bytes -= batch.size();
            self.gone.add(id, ());
        }
    }

    /// Something has become of a job: if it is one of a batch, others may follow.
    pub(super) fn turn(&mut self, job: Id, turn: Turn, now: u64) {
        let Some(&id) = self.batch_of.get(&job) else {
            return;
        };
        if matches!(turn, Turn::Done | Turn::Forgotten) {
            self.batch_of.remove(&job);
        }
        let Some(batch) = self.batches.get_mut(&id) else {
            return;
        };
        let before = batch.size();
        let released = batch.turn(turn);
        self.bytes -= before - batch.size();
        if batch.is_over() {
            self.drop_batch(id);
        }
        for (id, push) in released {
            self.insert(Job::pushed(id, push, now), Place::Delayed);
        }
    }

    /// Jobs of batches that are in no record, since the disk has damaged theirs: otherwise their batches would never be over.
    pub(crate) fn give_up_lost(&mut self, now: u64) -> Vec<Record> {
        let members = self.batch_of.keys().copied();
        let mut lost: Vec<Id> = members.filter(|id| !self.jobs.contains_key(id)).collect();
        lost.sort_unstable();
        let mut records = Vec::new();
        for id in lost {
            self.turn(id, Turn::Forgotten, now);
            records.push(Record::Forgotten { id });
        }
        records
    }

    /// Batches without their jobs, which have records of their own.
    pub(super) fn batch_records(&self) -> impl Iterator<Item = Record> + '_ {
        let mut members: std::collections::HashMap<Id, Vec<Id>> = std::collections::HashMap::new();
        for (&job, &batch) in &self.batch_of {
            // A rewritten log has no jobs that are not on disk yet.
            members.entry(batch).or_default().push(job);
        }
        let mut batches: Vec<(&Id, &Batch)> = self.batches.iter().collect();
        batches.sort_unstable_by_key(|(id, _)| **id);
        batches.into_iter().map(move |(&id, batch)| Record::Batch {
            id,
            batch: Box::new(batch.clone()),
            jobs: Vec::new(),
            members: members.remove(&id).unwrap_or_default(),
        })
    }

    /// Those that have not ended, or one of them.
    pub(crate) fn list_batches(&self, id: Option<Id>) -> Value {
        const LISTED: usize = 1000;
        let meant = self.batches.iter();
        let meant = meant.filter(|(own, _)| id.is_none_or(|id| id == **own));
        let mut shown: Vec<(u64, Value)> = meant
            .map(|(id, batch)| {
                let value = json!({
                    "id": id.to_string(),
                    "pushed": batch.pushed / 1000,
                    "total": batch.total,
                    "done": batch.done,
                    "failed": batch.failed,
                    "forgotten": batch.forgotten,
                });
                (batch.pushed, value)
            })
            .collect();
        shown.sort_by_key(|(pushed, _)| *pushed);
        let values = shown.into_iter().take(LISTED).map(|(_, value)| value);
        values.collect()
    }
}
