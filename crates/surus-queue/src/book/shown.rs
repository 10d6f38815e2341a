//! What operators see of the jobs, and what they do with those that have failed.

use serde_json::{json, Value};

use super::batches::Turn;
use super::{Book, Entry, Place};
use crate::job::Id;
use crate::record::Record;

/// What [`Book::totals`] counts.
pub(crate) type Totals = [u64; 6];

/// Jobs that a list has at most.
const LISTED: usize = 1000;

impl Book {
    pub(crate) fn counts(&self) -> Value {
        let queues = self.queues.iter().map(|(name, queue)| {
            json!({
                "queue": name,
                "waiting": queue.ready(),
                "delayed": queue.delayed,
                "running": queue.running,
                "failed": queue.failed,
                "done": queue.done,
                "places": queue.places(),
            })
        });
        let queues: Vec<Value> = queues.collect();
        json!({"bytes": self.bytes(), "queues": queues})
    }

    /// Of all queues: jobs that wait, are delayed, run, have failed and were done; and bytes.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = [0, 0, 0, 0, 0, self.bytes()];
        for queue in self.queues.values() {
            let counts = [
                queue.ready() as u64,
                queue.delayed,
                queue.running,
                queue.failed,
                queue.done,
            ];
            for (total, count) in totals.iter_mut().zip(counts) {
                *total += count;
            }
        }
        totals
    }

    pub(crate) fn list(&self, queue: Option<&str>, failed: bool) -> Value {
        let is_meant = |entry: &&Entry| {
            queue.is_none_or(|name| name == entry.job.queue)
                && (entry.place == Place::Failed) == failed
                && entry.place != Place::Unsaved
        };
        let mut entries: Vec<&Entry> = self.jobs.values().filter(is_meant).collect();
        entries.sort_unstable_by_key(|entry| entry.sequence);
        entries.into_iter().take(LISTED).map(shown).collect()
    }

    /// Failed jobs run again: one, or all of a queue, or all. Those stay failed whose unique key another job has that waits or runs;
    /// their number comes second.
    pub(crate) fn revive(
        &mut self,
        id: Option<Id>,
        queue: Option<&str>,
        now: u64,
    ) -> (Vec<Record>, usize) {
        let ids = self.failed(id, queue);
        let (mut records, mut blocked) = (Vec::new(), 0);
        for id in ids {
            if !self.take_key(id) {
                blocked += 1;
                continue;
            }
            let Some(entry) = self.jobs.get_mut(&id) else {
                continue;
            };
            let job = &mut entry.job;
            job.error = job.failure.take().map(|failure| failure.error);
            (job.due, job.attempts) = (now, 0);
            records.push(Record::Again {
                id,
                due: now,
                attempts: 0,
                error: job.error.clone(),
            });
            self.wait(id, now);
            self.turn(id, Turn::Again, now);
        }
        (records, blocked)
    }

    /// Failed jobs are forgotten: one, or all of a queue, or all.
    pub(crate) fn forget(&mut self, id: Option<Id>, queue: Option<&str>, now: u64) -> Vec<Record> {
        let ids = self.failed(id, queue);
        for &id in &ids {
            self.remove(id);
            self.turn(id, Turn::Forgotten, now);
        }
        ids.into_iter().map(|id| Record::Forgotten { id }).collect()
    }

    /// In the order in which they came.
    fn failed(&self, id: Option<Id>, queue: Option<&str>) -> Vec<Id> {
        let failed = self
            .jobs
            .iter()
            .filter(|(_, entry)| entry.place == Place::Failed);
        let mut meant: Vec<(u64, Id)> = failed
            .filter(|(own, _)| id.is_none_or(|id| id == **own))
            .filter(|(_, entry)| queue.is_none_or(|name| name == entry.job.queue))
            .map(|(id, entry)| (entry.sequence, *id))
            .collect();
        meant.sort_unstable();
        meant.into_iter().map(|(_, id)| id).collect()
    }
}

fn shown(entry: &Entry) -> Value {
    let job = &entry.job;
    let state = match entry.place {
        Place::Unsaved | Place::Ready => "waiting",
        Place::Delayed => "delayed",
        Place::Held(_) | Place::Doubted(_) => "running",
        Place::Failed => "failed",
    };
    json!({
        "id": job.id.to_string(),
        "queue": job.queue,
        "state": state,
        "pushed": job.pushed / 1000,
        "due": job.due / 1000,
        "attempts": job.attempts,
        "priority": job.priority,
        "progress": entry.progress,
        "unique": job.unique,
        "bytes": job.payload.len(),
        "pid": job.holder.map(|holder| holder.pid()),
        "failed": job.failure.as_ref().map(|failure| failure.at / 1000),
        "error": job.failure.as_ref().map(|failure| &failure.error).or(job.error.as_ref()),
    })
}
