//! Names, and the bounds of what has one.

use std::fmt;

use crate::HistoryError;

/// Bytes of the longest name of a channel, an event or a member.
pub const LONGEST_NAME: usize = 200;

/// Bytes of the largest publication.
pub const LARGEST_DATA: usize = 64 * 1024;

/// Bytes of the most that a member may say of itself.
pub const LARGEST_INFO: usize = 4 * 1024;

/// Why something is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// A name is empty, or longer than [`LONGEST_NAME`].
    Name,
    /// There are more bytes than [`LARGEST_DATA`], or [`LARGEST_INFO`].
    TooLarge,
    /// The channel has a history, which could not be written or read.
    History(HistoryError),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Name => write!(f, "a name has 1 to {LONGEST_NAME} bytes of UTF-8"),
            Refused::TooLarge => f.write_str("it is too large"),
            Refused::History(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

/// Whether this can be the name of a channel or a member.
#[must_use]
pub fn is_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
}

pub(crate) fn check(name: &str) -> Result<(), Refused> {
    is_name(name).then_some(()).ok_or(Refused::Name)
}
