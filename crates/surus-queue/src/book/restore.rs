//! The book, as the log says that it was.

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
                if let Some(entry) = self.jobs.get_mut(&id) {
                    let job = &mut entry.job;
                    (job.due, job.attempts, job.error) = (due, attempts, error);
                    job.holder = None;
                    job.failure = None;
                }
                self.take_key(id);
                self.put(id, Place::Delayed);
            }
            Record::Failed { id, failure } => {
                if let Some(entry) = self.jobs.get_mut(&id) {
                    entry.job.failure = Some(failure);
                    entry.job.holder = None;
                }
                self.fail(id);
            }
            Record::Clock {
                boot,
                offset,
                set_by,
            } => {
                self.shift(set_by);
                self.clock = Some(Clock { boot, offset });
            }
            Record::Done { id } | Record::Forgotten { id } => {
                self.remove(id);
                self.gone.add(id);
            }
        }
    }
}
