//! What the log says about jobs, and how a record lies in the file:
//!
//! ```text
//!   magic 2 │ length 4 │ CRC-32 of the rest 4 │ the record, as postcard writes it
//! ```

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::book::Batch;
use crate::holder::Holder;
use crate::job::{Failure, Id, Job};

/// Never the beginning of what postcard writes for a record: there are fewer kinds.
const MAGIC: [u8; 2] = [0xd7, 0x51];
const HEAD: usize = 10;
/// Nothing that is longer is read: a payload is at most [`crate::message::LONGEST`].
const LONGEST: usize = 80 << 20;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Record {
    /// A job as it is.
    Job(Job),
    /// It runs.
    Begun {
        id: Id,
        holder: Holder,
    },
    /// It is done, and gone.
    Done {
        id: Id,
    },
    /// It waits again.
    Again {
        id: Id,
        due: u64,
        attempts: u32,
        error: Option<String>,
    },
    Failed {
        id: Id,
        failure: Failure,
    },
    /// A failed one is forgotten.
    Forgotten {
        id: Id,
    },
    /// How the calendar is related to the time since the start of the machine. The clock was set by so many milliseconds: delayed jobs
    /// have waited no longer or shorter for that.
    Clock {
        boot: u64,
        offset: i64,
        set_by: i64,
    },
    /// Jobs that belong together: with the jobs, when they are pushed, or with their ids.
    Batch {
        id: Id,
        batch: Box<Batch>,
        jobs: Vec<Job>,
        members: Vec<Id>,
    },
    /// An entry of a stream.
    Append {
        stream: String,
        id: Id,
        position: u64,
        at: u64,
        payload: Bytes,
    },
    /// A group has done with these entries.
    Acknowledged {
        stream: String,
        group: String,
        positions: Vec<u64>,
    },
    /// A group of readers: it has done with all entries up to one, and with some after it.
    Group {
        stream: String,
        group: String,
        done: u64,
        acknowledged: Vec<u64>,
    },
    /// A group is forgotten.
    Ungroup {
        stream: String,
        group: String,
    },
    /// The position of the last entry, which may be gone.
    Stream {
        stream: String,
        last: u64,
    },
}

impl Record {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend(MAGIC);
        out.extend([0; 8]);
        // Writing to memory does not fail, and these types can all be written.
        if let Ok(written) = postcard::to_extend(self, std::mem::take(out)) {
            *out = written;
        }
        let body = &out[begin + HEAD..];
        let (length, sum) = (body.len() as u32, crc32fast::hash(body));
        out[begin + 2..begin + 6].copy_from_slice(&length.to_le_bytes());
        out[begin + 6..begin + HEAD].copy_from_slice(&sum.to_le_bytes());
    }

    /// The record at the beginning of these bytes, and its length with its head.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Record, usize)> {
        let head = bytes.get(..HEAD)?;
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let length = number(2) as usize;
        if head[..2] != MAGIC || length > LONGEST {
            return None;
        }
        let body = bytes.get(HEAD..HEAD + length)?;
        if crc32fast::hash(body) != number(6) {
            return None;
        }
        let record = postcard::from_bytes(body).ok()?;
        Some((record, HEAD + length))
    }
}

/// What a file has: its records, and what of it is none.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) records: Vec<Record>,
    /// Up to the end of the last record.
    pub(crate) length: usize,
    /// Bytes between records that are none: the medium has changed them.
    pub(crate) damaged: usize,
    /// Bytes after the last record: what was not written to its end.
    pub(crate) torn: usize,
}

impl Contents {
    pub(crate) fn read(bytes: &[u8]) -> Contents {
        let mut contents = Contents::default();
        let mut at = 0;
        while at < bytes.len() {
            if let Some((record, length)) = Record::read(&bytes[at..]) {
                contents.damaged += at - contents.length;
                contents.records.push(record);
                at += length;
                contents.length = at;
            } else {
                let next = bytes[at + 1..].windows(2).position(|pair| pair == MAGIC);
                at = next.map_or(bytes.len(), |next| at + 1 + next);
            }
        }
        contents.torn = bytes.len() - contents.length;
        contents
    }
}

/// Payloads that were read with a whole file would keep all of it in memory.
pub(crate) fn detach(job: &mut Job) {
    job.payload = Bytes::copy_from_slice(&job.payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done() -> Record {
        Record::Done { id: Id::new() }
    }

    fn text(records: &[Record]) -> Vec<u8> {
        let mut out = Vec::new();
        for record in records {
            record.write(&mut out);
        }
        out
    }

    #[test]
    fn a_torn_end_is_left_out_wherever_it_was_torn() {
        let whole = text(&[done(), done(), done()]);
        let one = whole.len() / 3;
        for length in 0..=whole.len() {
            let contents = Contents::read(&whole[..length]);
            assert_eq!(contents.records.len(), length / one);
            assert_eq!(contents.length, length / one * one);
            assert_eq!((contents.damaged, contents.torn), (0, length % one));
        }
    }

    #[test]
    fn a_changed_byte_costs_one_record() {
        let whole = text(&[done(), done(), done()]);
        let one = whole.len() / 3;
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x40;
            let contents = Contents::read(&bytes);
            assert_eq!(contents.records.len(), 2, "byte {at}");
            let is_last = at >= 2 * one;
            let lost = (contents.damaged, contents.torn);
            assert_eq!(lost, if is_last { (0, one) } else { (one, 0) }, "byte {at}");
        }
    }
}
