//! The book, as the log says that it was.

use super::batches::Turn;
use super::{Book, Place};
use crate::clock::Clock;
use crate::record::{detach, Record};

impl Book {
    /// Jobs that ran are in doubt: their processes may be alive.
    pub(crate) fn restored(records: Vec<Record>, now: u64) -> Book {
        let mut book = Book::default();
        for record in records {
            book.apply(record);
        }
        book.wake(now);
        book
    }

    fn apply(&mut self, record: Record) {
        match record {
            Record::Job(mut job) => {
                detach(&mut job);
                let place = match (&job.failure, job.holder) {
                    (Some(_), _) => Place::Failed,
                    (None, Some(holder)) => Place::Doubted(holder),
                    (None, None) => Place::Delayed,
                };
                let id = job.id;
                self.remove(id);
                self.insert(job, place);
                if place == Place::Failed {
                    self.fail(id);
                }
            }
            Record::Begun { id, holder } => {
                self.put(id, Place::Doubted(holder));
                if let Some(entry) = self.jobs.get_mut(&id) {
                    entry.job.attempts += 1;
                    entry.job.holder = Some(holder);
                }
            }
            Record::Again {
                id,
                due,
                attempts,
                error,
            } => {
                self.put(id, Place::Unsaved);
                let mut had_failed = false;
                if let Some(entry) = self.jobs.get_mut(&id) {
                    let job = &mut entry.job;
                    (job.due, job.attempts, job.error) = (due, attempts, error);
                    job.holder = None;
                    had_failed = job.failure.take().is_some();
                }
                self.take_key(id);
                self.put(id, Place::Delayed);
                if had_failed {
                    self.turn(id, Turn::Again, due);
                }
            }
            Record::Failed { id, failure } => {
                let at = failure.at;
                if let Some(entry) = self.jobs.get_mut(&id) {
                    entry.job.failure = Some(failure);
                    entry.job.holder = None;
                }
                self.fail(id);
                self.turn(id, Turn::Failed, at);
            }
            Record::Clock {
                boot,
                offset,
                set_by,
            } => {
                self.shift(set_by);
                self.clock = Some(Clock { boot, offset });
            }
            record @ (Record::Append { .. }
            | Record::Acknowledged { .. }
            | Record::Group { .. }
            | Record::Ungroup { .. }
            | Record::Stream { .. }) => self.streams.apply(record),
            Record::Batch {
                id,
                batch,
                jobs,
                members,
            } => self.restore_batch(id, *batch, jobs, &members),
            Record::Done { id } => {
                let job = self.remove(id);
                self.gone.add(id, ());
                // When, the log does not say.
                self.turn(id, Turn::Done, job.map_or(0, |job| job.due));
            }
            Record::Forgotten { id } => {
                let job = self.remove(id);
                self.gone.add(id, ());
                self.turn(id, Turn::Forgotten, job.map_or(0, |job| job.due));
            }
        }
    }
}
