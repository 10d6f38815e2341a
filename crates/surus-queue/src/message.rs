//! What goes over the socket: each message as postcard writes it, after its length in four bytes.

use std::io;

use bytes::Bytes;
use serde::{de::DeserializeOwned, Deserialize, Serialize};

use crate::job::{Ending, Id, NewBatch, Push, Pushed};

/// The name of the socket in the folder.
pub(crate) const SOCKET: &str = "socket";

/// Bytes of a payload, and of all payloads of a batch.
pub const LONGEST: usize = 64 << 20;

/// Whether so many bytes of payloads can be sent.
pub(crate) fn check_length(what: &str, length: usize) -> Result<(), String> {
    match length > LONGEST {
        true => Err(format!(
            "the {what} has {length} bytes, of {LONGEST} at most"
        )),
        false => Ok(()),
    }
}

/// Bytes of a message.
const MOST: usize = LONGEST + (1 << 20);

/// To the owner.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToOwner {
    /// The first message: the jobs that this process runs, from an earlier connection.
    Hello {
        holds: Vec<Id>,
    },
    Push {
        request: u64,
        id: Id,
        push: Push,
    },
    Subscribe(Subscription),
    Ended {
        id: Id,
        ending: Ending,
    },
    Ask {
        request: u64,
        question: Question,
    },
    /// Another owner takes over.
    Yield,
    /// How much of a running job is done, from 0 to 1.
    Progress {
        id: Id,
        done: f32,
    },
    /// Of a stream.
    Change {
        request: u64,
        id: Id,
        change: Change,
    },
    /// Entries of a stream are wanted, as soon as there are any.
    Read {
        request: u64,
        wanted: Reading,
    },
    /// They are not waited for any more: the answer is what there is.
    Unread {
        request: u64,
    },
    /// This process has these entries from an earlier owner; or has got them too late, and gives them back.
    Claim {
        stream: String,
        group: String,
        positions: Vec<u64>,
        keeps: bool,
    },
    /// Jobs that belong together.
    Batch {
        request: u64,
        id: Id,
        batch: Box<NewBatch>,
    },
}

/// How many jobs of a queue a process takes at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// The queue.
    pub queue: String,
    /// Those that run included; 0 ends it.
    pub places: u32,
    /// Runs that a job has whose processes die; `None` leaves it as it is.
    pub tries: Option<u32>,
    /// How many of its jobs begin in a time, in all processes together; `None` leaves it as it is.
    pub rate: Option<Rate>,
}

/// So many in so many milliseconds, evenly. None in none: as many as like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// How many.
    pub count: u32,
    /// Milliseconds.
    pub period: u32,
}

impl Rate {
    /// Milliseconds between two; `None`: there is no limit.
    pub(crate) fn pause(self) -> Option<f64> {
        (self.count > 0 && self.period > 0).then(|| f64::from(self.period) / f64::from(self.count))
    }
}

/// Of an operator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Question {
    /// How many jobs each queue has.
    Counts,
    /// Jobs, of one queue or all.
    List {
        /// Which.
        queue: Option<String>,
        /// Those that have failed, or those that have not.
        failed: bool,
    },
    /// Failed jobs run again: one, or all of a queue, or all.
    Retry {
        /// Which one.
        id: Option<Id>,
        /// Which queue.
        queue: Option<String>,
    },
    /// Failed jobs are forgotten: one, or all of a queue, or all.
    Forget {
        /// Which one.
        id: Option<Id>,
        /// Which queue.
        queue: Option<String>,
    },
    /// Streams, or one of them.
    Streams {
        /// Which one.
        stream: Option<String>,
    },
    /// A group of readers is forgotten.
    Ungroup {
        /// Of this stream.
        stream: String,
        /// Which.
        group: String,
    },
    /// Batches that have not ended.
    Batches {
        /// Which one; or all.
        id: Option<Id>,
    },
}

/// Which entries of a stream are wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Of this one.
    pub stream: String,
    /// For this group of readers.
    pub group: String,
    /// How many at most.
    pub count: u32,
    /// Those, too, that another reader has had for so many milliseconds; 0: as long as it lives.
    pub idle: u64,
}

impl Reading {
    /// Bytes above which no further entry is sent at a time. With the longest one after that, and what is said of each of 10,000, they are
    /// one message.
    pub(crate) const MOST: usize = 512 << 10;
}

/// An entry of a stream, for who reads it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Its number, from 1 on.
    pub position: u64,
    /// How often it was read, with this time.
    pub attempt: u32,
    /// When it was appended, in milliseconds since 1970.
    pub at: u64,
    /// What was appended.
    pub payload: Bytes,
}

/// What a client wants of streams, and is answered when it is on disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Change {
    /// Another entry.
    Append {
        /// Of this one.
        stream: String,
        /// Its content.
        payload: Bytes,
    },
    /// A group has done with these entries.
    Acknowledge {
        /// Of this one.
        stream: String,
        /// Which.
        group: String,
        /// Which entries.
        positions: Vec<u64>,
    },
}

/// From the owner.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToClient {
    Pushed {
        request: u64,
        result: Result<Pushed, String>,
    },
    Job(Delivery),
    /// The end of this job is written down.
    Noted {
        id: Id,
    },
    /// Of a stream.
    Entries {
        request: u64,
        result: Result<Vec<Entry>, String>,
    },
    /// JSON.
    Answer {
        request: u64,
        text: String,
    },
}

/// A job, for who runs it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Delivery {
    /// Its name.
    pub id: Id,
    /// Its queue.
    pub queue: String,
    /// What was pushed.
    pub payload: Bytes,
    /// Its runs, with this one.
    pub attempt: u32,
    /// When it was pushed, in milliseconds since 1970.
    pub pushed: u64,
}

pub(crate) fn write(message: &impl Serialize, out: &mut Vec<u8>) {
    let begin = out.len();
    out.extend([0; 4]);
    // Writing to memory does not fail, and these types can all be written.
    if let Ok(written) = postcard::to_extend(message, std::mem::take(out)) {
        *out = written;
    }
    let length = (out.len() - begin - 4) as u32;
    out[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
}

/// The messages in these bytes, which are taken out.
pub(crate) fn read<T: DeserializeOwned>(received: &mut Vec<u8>) -> io::Result<Vec<T>> {
    let (mut messages, mut at) = (Vec::new(), 0);
    while let Some(head) = received.get(at..at + 4) {
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if length > MOST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let Some(body) = received.get(at + 4..at + 4 + length) else {
            break;
        };
        let message = postcard::from_bytes(body);
        messages.push(message.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?);
        at += 4 + length;
    }
    received.drain(..at);
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_in_pieces() {
        let mut sent = Vec::new();
        for request in 0..3 {
            write(
                &ToOwner::Ask {
                    request,
                    question: Question::Counts,
                },
                &mut sent,
            );
        }
        let (mut received, mut count) = (Vec::new(), 0);
        for byte in sent {
            received.push(byte);
            count += read::<ToOwner>(&mut received).expect("messages").len();
        }
        assert_eq!((count, received.len()), (3, 0));
        let mut wrong = u32::MAX.to_le_bytes().to_vec();
        assert!(read::<ToOwner>(&mut wrong).is_err());
    }
}
