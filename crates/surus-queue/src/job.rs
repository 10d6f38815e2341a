//! A job, as it is kept and as it is sent.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::holder::Holder;

/// The name of a job. Whoever pushes a job names it: a push that is sent twice, because the owner has died before it answered, is one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Id(u128);

impl Id {
    /// A new one. Its first part is the time, so that names sort by it.
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Id {
        let mut random = [0; 10];
        // Without the kernel's randomness the process id and the time have to do.
        if getrandom(&mut random).is_err() {
            let spread = std::time::Instant::now();
            random[..4].copy_from_slice(&std::process::id().to_le_bytes());
            random[4..].copy_from_slice(&format!("{spread:?}").into_bytes()[..6]);
        }
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&crate::now().to_be_bytes()[2..]);
        bytes[6..].copy_from_slice(&random);
        Id(u128::from_be_bytes(bytes))
    }
}

fn getrandom(bytes: &mut [u8]) -> Result<(), ()> {
    match rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(count) if count == bytes.len() => Ok(()),
        _ => Err(()),
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Id {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match u128::from_str_radix(text, 16) {
            Ok(number) if text.len() == 32 => Ok(Id(number)),
            _ => Err(format!(
                "{text:?} is not the id of a job, which has 32 hexadecimal digits"
            )),
        }
    }
}

/// What is pushed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Push {
    /// Which queue.
    pub queue: String,
    /// What the handler gets.
    pub payload: Bytes,
    /// The highest is first.
    pub priority: i32,
    /// How long it waits before its first run.
    pub delay: Duration,
    /// While a job with this key waits or runs in the queue, there is no other one with it.
    pub unique: Option<String>,
}

impl Push {
    /// Bytes that its job takes in memory, roughly.
    pub(crate) fn size(&self) -> u64 {
        size(&self.queue, &self.payload)
    }
}

fn size(queue: &str, payload: &[u8]) -> u64 {
    const ITSELF: usize = 400;
    (ITSELF + payload.len() + queue.len()) as u64
}

/// Jobs that belong together, and jobs that follow them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NewBatch {
    /// They have no unique keys.
    pub jobs: Vec<(Id, Push)>,
    /// Pushed when the last one is done.
    pub then: Option<(Id, Push)>,
    /// Pushed when the first one has failed for good.
    pub catch: Option<(Id, Push)>,
    /// Pushed when all are done or have failed for good.
    pub finally: Option<(Id, Push)>,
}

impl NewBatch {
    /// Bytes of payloads.
    pub(crate) fn length(&self) -> usize {
        let after = [&self.then, &self.catch, &self.finally];
        let all = self.jobs.iter().chain(after.into_iter().flatten());
        all.map(|(_, push)| push.payload.len() + push.queue.len() + 64)
            .sum()
    }
}

/// What has become of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pushed {
    /// The job: a new one, or the one that has the unique key already.
    pub id: Id,
    /// Whether it is new.
    pub is_new: bool,
    /// Of an entry of a stream: its position. Of acknowledgements: how many there were.
    pub position: u64,
}

/// A job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) id: Id,
    pub(crate) queue: String,
    pub(crate) payload: Bytes,
    pub(crate) priority: i32,
    pub(crate) unique: Option<String>,
    /// When it was pushed, and when it may run; as [`crate::now`].
    pub(crate) pushed: u64,
    pub(crate) due: u64,
    /// How often it has begun.
    pub(crate) attempts: u32,
    /// Who runs it, as far as the log knows.
    pub(crate) holder: Option<Holder>,
    /// It has failed for good.
    pub(crate) failure: Option<Failure>,
    /// Of its last attempt, if there is a next one.
    pub(crate) error: Option<String>,
}

impl Job {
    /// One that was pushed at this time.
    pub(crate) fn pushed(id: Id, push: Push, now: u64) -> Job {
        Job {
            id,
            queue: push.queue,
            payload: push.payload,
            priority: push.priority,
            unique: push.unique,
            pushed: now,
            due: now.saturating_add(crate::millis(push.delay)),
            attempts: 0,
            holder: None,
            failure: None,
            error: None,
        }
    }

    /// Bytes that it takes in memory, roughly.
    pub(crate) fn size(&self) -> u64 {
        size(&self.queue, &self.payload)
    }
}

/// Why a job is among the failed ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) at: u64,
    pub(crate) error: String,
}

/// How a run of a job has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Ending {
    /// It is done.
    Done,
    /// It runs again after this time.
    Again {
        /// From now on.
        delay: Duration,
        /// Why, if it has failed.
        error: Option<String>,
        /// Whether this run was one of its tries.
        counts: bool,
    },
    /// It has failed for good, and is kept.
    Failed {
        /// Why.
        error: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let id = Id::new();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!("12".parse::<Id>().is_err());
        assert!("zz".repeat(16).parse::<Id>().is_err());
        assert_ne!(id, Id::new());
    }
}
