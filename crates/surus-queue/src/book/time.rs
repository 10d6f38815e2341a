//! When delayed jobs become ready.

use super::{Book, Place};
use crate::clock::Clock;
use crate::record::Record;

impl Book {
    /// Jobs whose time has come are ready.
    pub(crate) fn wake(&mut self, now: u64) {
        while let Some(&(due, id)) = self.due.first() {
            if due > now {
                return;
            }
            self.put(id, Place::Ready);
        }
    }

    /// The owner follows this clock, which may have been set since the last one was read. Returns the one that counts: the last one if
    /// nothing has changed.
    pub(crate) fn follow_clock(&mut self, clock: Clock) -> (Clock, Option<Record>) {
        let set_by = match self.clock {
            Some(before) if clock.goes_on(before) => return (before, None),
            Some(before) => clock.since(before),
            None => 0,
        };
        self.shift(set_by);
        self.clock = Some(clock);
        let Clock { boot, offset } = clock;
        let record = Record::Clock {
            boot,
            offset,
            set_by,
        };
        (clock, Some(record))
    }

    /// What waits for a time has to wait no longer or shorter than before, in milliseconds.
    pub(super) fn shift(&mut self, by: i64) {
        if by == 0 {
            return;
        }
        for (due, id) in std::mem::take(&mut self.due) {
            let due = due.saturating_add_signed(by);
            if let Some(entry) = self.jobs.get_mut(&id) {
                entry.job.due = due;
            }
            self.due.insert((due, id));
        }
        self.queues.values_mut().for_each(|queue| queue.shift(by));
        self.streams.shift(by);
    }

    /// When the next job becomes ready.
    pub(crate) fn next_due(&self, now: u64) -> Option<u64> {
        let delayed = self.due.first().map(|&(due, _)| due);
        let queues = self.queues.values();
        let slowed = queues.filter_map(|queue| queue.next_due(now)).min();
        let read = self.streams.next_due(now);
        delayed.into_iter().chain(slowed).chain(read).min()
    }
}
