//! What operators ask.

use serde_json::{json, Value};

use super::Owner;
use crate::message::Question;

impl Owner {
    pub(super) fn answer(&mut self, question: Question, time: u64) -> Value {
        let records = match question {
            Question::Counts => return self.book.counts(),
            Question::Streams { stream } => {
                return self.book.streams.shown(stream.as_deref());
            }
            Question::Ungroup { stream, group } => {
                let record = self.book.streams.ungroup(&stream, &group);
                record.into_iter().collect()
            }
            Question::Batches { id } => return self.book.list_batches(id),
            Question::List { queue, failed } => return self.book.list(queue.as_deref(), failed),
            Question::Retry { id, queue } => {
                let (records, blocked) = self.book.revive(id, queue.as_deref(), time);
                records.iter().for_each(|record| self.log.owe(record));
                return json!({"again": records.len(), "blocked": blocked});
            }
            Question::Forget { id, queue } => self.book.forget(id, queue.as_deref(), time),
        };
        records.iter().for_each(|record| self.log.owe(record));
        json!(records.len())
    }
}
