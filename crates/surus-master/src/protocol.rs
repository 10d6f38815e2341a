//! The messages between master and worker: lines of JSON over a socket pair that exists as long as the worker.

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
        /// Only for one of the workers: invalidate files in OPcache that have changed since this time, in Unix seconds.
        refresh: Option<u64>,
    },
    /// Switch to the prepared version. Answered with [`Report::Committed`].
    Commit {
        /// The reload this belongs to.
        reload: u64,
    },
    /// Discard the prepared version.
    Abort {
        /// The reload this belongs to.
        reload: u64,
        /// Why: development servers show it.
        error: String,
    },
    /// Accept connections for this seat: the worker's own, or that of another worker.
    Adopt {
        /// Index of the seat.
        seat: usize,
    },
    /// Accept no more connections for this seat: its own worker does again.
    Release {
        /// Index of the seat.
        seat: usize,
    },
    /// For a plain process: take no more requests, since another one serves in its place.
    Retire,
    /// Continue the log in the file that comes with this order. [`Channel`](crate::Channel) carries it out.
    Reopen {
        /// The access log, or else the error log.
        access: bool,
    },
    /// Answered with [`Report::Status`] from the event loop, so that the answer also shows that the worker is alive.
    Status {
        /// Returned with the answer.
        question: u64,
    },
}

/// The state of a file: seconds and nanoseconds of its modification time, its size, its inode. `None`: it does not
/// exist.
pub type Stamp = Option<(i64, i64, u64, u64)>;

/// From a worker to the master.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The worker serves.
    Ready,
    /// The application did not boot; the worker is about to exit.
    BootFailed {
        /// The error of PHP, or why there is none.
        error: String,
    },
    /// The new version has booted, and serves after [`Order::Commit`].
    Prepared {
        /// From the order.
        reload: u64,
    },
    /// The new version has not booted: the old one keeps serving.
    PrepareFailed {
        /// From the order.
        reload: u64,
        /// The error of PHP, or why there is none.
        error: String,
    },
    /// The new version answers every request from now on.
    Committed {
        /// From the order.
        reload: u64,
    },
    /// The worker takes no more requests: another process serves in its place.
    Retired,
    /// Plain processes are needed that start on demand.
    Wake,
    /// A process is needed that runs beside the workers, and does not.
    Summon {
        /// Which.
        name: String,
    },
    /// The status of the worker.
    Status {
        /// From the order.
        question: u64,
        /// The status, an object.
        status: Value,
    },
    /// The worker should be replaced.
    Worn {
        /// Which limit it has reached.
        why: String,
    },
    /// A file of the application has changed: a reload is due (development).
    Changed {
        /// Its path.
        file: String,
        /// Its state now.
        stamp: Stamp,
    },
}

/// Encodes a message as a line.
pub(crate) fn encode(message: &impl Serialize) -> Vec<u8> {
    // Enums of strings and numbers always serialise.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Takes complete lines out of the received bytes. A line that cannot be parsed is skipped: it is from another version.
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
