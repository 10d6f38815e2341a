//! Where publications are kept: memory that all workers share.

use std::fmt;

use bytes::Bytes;

use crate::{Keep, Position};

/// Why a history cannot be written or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryError {
    /// There is no memory for it.
    None,
    /// Somebody else holds its lock too long, or it is full of what must not be removed.
    Unavailable,
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HistoryError::None => "there is no shared memory for the history of channels",
            HistoryError::Unavailable => "the history of the channel cannot be written now",
        })
    }
}

/// The histories of all channels of a server. Each append is one step: of a process that is killed in the middle, it is done or it is not.
pub trait History {
    /// Appends to the history of the channel, which begins with this if there is none. Its position is the next one.
    ///
    /// # Errors
    /// Nothing is appended.
    fn append(&self, channel: &str, keep: Keep, content: &[u8]) -> Result<Position, HistoryError>;

    /// The position of the newest publication. Of a channel without a history, one begins, with offset 0.
    ///
    /// # Errors
    /// There is none.
    fn newest(&self, channel: &str, keep: Keep) -> Result<Position, HistoryError>;

    /// Whether the channel has one. None begins.
    fn is_known(&self, channel: &str) -> bool {
        let _ = channel;
        true
    }

    /// What is at a position, as it was appended; `None`: it is not kept any more.
    fn read(&self, channel: &str, position: Position) -> Option<Bytes>;

    /// Keeps what was appended elsewhere, as somebody hears it, maybe late: then it does not bring back an epoch that is over. Without
    /// content it is where the channel is, says who was asked.
    ///
    /// # Errors
    /// It is not kept.
    fn put(
        &self,
        channel: &str,
        keep: Keep,
        position: Position,
        content: Option<&[u8]>,
    ) -> Result<(), HistoryError>;

    /// How often something was appended, by all workers. It may be counted a moment before it can be read.
    fn appended(&self) -> u64;
}
