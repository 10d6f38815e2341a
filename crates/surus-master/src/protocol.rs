//! What master and worker tell each other: lines of JSON over a socket pair that lives as long as the worker.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// From the master to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Boot the application as it is on disk now, in addition to the version that serves. Answered with
    /// [`Report::Prepared`] or [`Report::PrepareFailed`].
    Prepare {
        /// The reload this belongs to. Reports of an older one are stale.
        reload: u64,
        /// For one worker of all: make OPcache forget files that have changed since this time, in Unix seconds.
        refresh: Option<u64>,
    },
    /// From now on the prepared version serves. Answered with [`Report::Committed`].
    Commit {
        /// The reload this belongs to.
        reload: u64,
    },
    /// The prepared version will not be needed.
    Abort {
        /// The reload this belongs to.
        reload: u64,
        /// Why: development servers show it.
        error: String,
    },
    /// Accept connections for this seat: the worker's own, or another one's as well.
    Adopt {
        /// Index of the seat.
        seat: usize,
    },
    /// Accept no more connections for this seat: its own worker does again.
    Release {
        /// Index of the seat.
        seat: usize,
    },
    /// For a plain process: another one serves in its place.
    Retire,
    /// The log goes on in the file that comes with this order. [`Channel`](crate::Channel) sees to it.
    Reopen {
        /// Which one.
        access: bool,
    },
    /// Answered with [`Report::Status`] from the event loop, so that the answer is also a sign of life.
    Status {
        /// Comes back with the answer.
        question: u64,
    },
}

/// What changes with a file: seconds and nanoseconds of its time, its size, its inode. None: it is not there.
pub type Stamp = Option<(i64, i64, u64, u64)>;

/// From a worker to the master.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// It serves.
    Ready,
    /// The application did not boot; the worker is about to exit.
    BootFailed {
        /// PHP's, or why there is none.
        error: String,
    },
    /// The new version has booted, and serves on order.
    Prepared {
        /// That of the order.
        reload: u64,
    },
    /// The new version has not booted: the old one goes on.
    PrepareFailed {
        /// That of the order.
        reload: u64,
        /// PHP's, or why there is none.
        error: String,
    },
    /// Every request that it takes from now on is answered by the new version.
    Committed {
        /// That of the order.
        reload: u64,
    },
    /// It takes no more requests: another process serves in its place.
    Retired,
    /// How the worker is.
    Status {
        /// That of the order.
        question: u64,
        /// What [`Order::Status`] asks for: an object.
        status: Value,
    },
    /// It should be replaced.
    Worn {
        /// Which limit it has reached.
        why: String,
    },
    /// A file of the application has changed: a reload is due (development).
    Changed {
        /// Its path.
        file: String,
        /// How it is now.
        stamp: Stamp,
    },
}

/// A message as it goes over the wire.
pub(crate) fn encode(message: &impl Serialize) -> Vec<u8> {
    // Enums of strings and numbers always serialise.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Takes complete lines out of what was received. A line that cannot be read is left out: it is of another version.
pub(crate) fn decode<T: for<'de> Deserialize<'de>>(received: &mut Vec<u8>) -> Vec<T> {
    let Some(end) = received.iter().rposition(|&byte| byte == b'\n') else {
        return Vec::new();
    };
    let rest = received.split_off(end + 1);
    let lines = std::mem::replace(received, rest);
    lines
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_come() {
        let mut received = encode(&Report::Ready);
        received.extend(encode(&Report::Prepared { reload: 7 }));
        received.extend(b"{\"prepar");
        let reports: Vec<Report> = decode(&mut received);
        assert_eq!(reports, [Report::Ready, Report::Prepared { reload: 7 }]);
        assert_eq!(received, b"{\"prepar");
        received.extend(b"ed\":{\"reload\":8}}\n{\"unknown\":1}\n");
        let reports: Vec<Report> = decode(&mut received);
        assert_eq!(reports, [Report::Prepared { reload: 8 }]);
        assert!(received.is_empty());
    }
}
