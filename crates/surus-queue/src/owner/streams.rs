//! Streams, for those who append and read.

use super::Owner;
use crate::book::Peer;
use crate::job::{Id, Pushed};
use crate::message::{check_length, Change, Reading, ToClient};
use crate::record::Record;

impl Owner {
    pub(super) fn change(&mut self, id: Id, change: Change, time: u64) -> Result<Pushed, String> {
        let pushed = |position| Pushed {
            id,
            is_new: true,
            position,
        };
        match change {
            Change::Append { stream, payload } => {
                check_length("entry", payload.len())?;
                let room = self.most.saturating_sub(self.book.bytes());
                let streams = &mut self.book.streams;
                let (position, record) = streams.append(&stream, id, payload, time, room)?;
                if let Some(record) = record {
                    record.write(&mut self.batch.records);
                    self.batch.streams.insert(stream);
                }
                Ok(pushed(position))
            }
            Change::Acknowledge {
                stream,
                group,
                positions,
            } => {
                let streams = &mut self.book.streams;
                let count = streams.acknowledge(&stream, &group, &positions);
                if count > 0 {
                    let record = Record::Acknowledged {
                        stream,
                        group,
                        positions,
                    };
                    record.write(&mut self.batch.records);
                    self.batch.acknowledged.push(record);
                }
                Ok(pushed(count))
            }
        }
    }

    pub(super) fn read(&mut self, peer: Peer, request: u64, wanted: Reading) {
        // One that has not said which entries it has might get them again.
        if !self.holders.contains_key(&peer) {
            return;
        }
        match self.book.streams.read(peer, request, wanted) {
            Ok(Some(record)) => self.log.owe(&record),
            Ok(None) => {}
            Err(error) => {
                let result = Err(error);
                self.send(peer, &ToClient::Entries { request, result });
            }
        }
    }

    pub(super) fn deliver_entries(&mut self) {
        let time = self.clock.now();
        while let Some((peer, request, entries)) = self.book.streams.next(time) {
            let result = Ok(entries);
            self.send(peer, &ToClient::Entries { request, result });
        }
    }
}
