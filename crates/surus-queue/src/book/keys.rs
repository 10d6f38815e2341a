//! Unique keys: one job at most with each waits or runs.

use super::Book;
use crate::job::Id;

impl Book {
    pub(super) fn key(&self, id: Id) -> Option<(String, String)> {
        let job = &self.jobs.get(&id)?.job;
        Some((job.queue.clone(), job.unique.clone()?))
    }

    /// A job waits, so that no other one with its key may. Returns whether that is so: another one may have the key.
    pub(super) fn take_key(&mut self, id: Id) -> bool {
        let Some(key) = self.key(id) else {
            return true;
        };
        *self.unique.entry(key).or_insert(id) == id
    }

    /// A job that neither waits nor runs has no key.
    pub(super) fn leave_key(&mut self, id: Id) {
        if let Some(key) = self.key(id) {
            if self.unique.get(&key) == Some(&id) {
                self.unique.remove(&key);
            }
        }
    }
}
