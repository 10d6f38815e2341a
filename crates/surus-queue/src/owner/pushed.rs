//! Pushes: taken in, made durable together, and then answered.

use std::io;

use super::Owner;
use crate::job::{Id, NewBatch, Push, Pushed};
use crate::message::{check_length, ToClient};
use crate::record::Record;

impl Owner {
    pub(super) fn push(&mut self, id: Id, push: Push, time: u64) -> Result<Pushed, String> {
        check_length("payload", push.payload.len())?;
        let (pushed, job) = self.book.push(id, push, time, self.most)?;
        if let Some(job) = job {
            Record::Job(job.clone()).write(&mut self.batch.records);
            self.batch.ids.push(id);
        }
        Ok(pushed)
    }

    pub(super) fn push_batch(
        &mut self,
        id: Id,
        batch: NewBatch,
        time: u64,
    ) -> Result<Pushed, String> {
        check_length("batch", batch.length())?;
        let (pushed, record) = self.book.push_batch(id, batch, time, self.most)?;
        if let Some(record) = record {
            record.write(&mut self.batch.records);
            if let Record::Batch { jobs, .. } = record {
                self.batch.ids.extend(jobs.iter().map(|job| job.id));
            }
            self.batch.batches.push(id);
        }
        Ok(pushed)
    }

    /// Makes the pushes of this batch durable, and answers them. What cannot be written is refused; the rest goes on.
    pub(super) fn save(&mut self) -> io::Result<()> {
        let batch = std::mem::take(&mut self.batch);
        if batch.answers.is_empty() {
            return Ok(());
        }
        let written = match batch.records.is_empty() {
            true => Ok(()),
            false => self
                .log
                .write_owed()
                .and_then(|()| self.log.write(&batch.records)),
        };
        let time = self.clock.now();
        match &written {
            Ok(()) => {
                // If this fails nobody knows what is on disk. The next owner reads it, and clients send their pushes again.
                self.log.sync()?;
                self.unsynced_since = None;
                self.note_written(&Ok(()));
                batch.ids.iter().for_each(|&id| self.book.saved(id, time));
                for stream in &batch.streams {
                    self.book.streams.saved(stream, true);
                }
            }
            Err(error) => {
                self.note_written(&Err(error));
                for id in &batch.ids {
                    self.book.remove(*id);
                }
                for id in &batch.batches {
                    self.book.refuse_batch(*id);
                }
                for stream in &batch.streams {
                    self.book.streams.saved(stream, false);
                }
                // They stay acknowledged, and whoever says so again is answered that they are.
                for record in &batch.acknowledged {
                    self.log.owe(record);
                }
            }
        }
        for (peer, request, result) in batch.answers {
            let refused = |error: &io::Error| {
                format!(
                    "it cannot be written to {}: {error}",
                    self.door.folder().display()
                )
            };
            let result = match (&written, result) {
                (Err(error), Ok(_)) => Err(refused(error)),
                (_, result) => result,
            };
            self.send(peer, &ToClient::Pushed { request, result });
        }
        Ok(())
    }
}
