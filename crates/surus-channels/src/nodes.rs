//! Several servers that share channels, through something that all of them reach. It decides about positions: what is published on a channel
//! with a history is appended there first, and comes to all workers of all servers from there, in order. Each server keeps what has come
//! in its own history, from which its clients recover.

use std::{future::Future, pin::Pin};

use bytes::Bytes;

use crate::{HistoryError, Keep, Position};

/// What somebody waits for.
pub type Reply<T> = Pin<Box<dyn Future<Output = Result<T, HistoryError>>>>;

/// What the others have of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The position of the newest publication.
    pub newest: Position,
    /// Some that are kept, without a gap.
    pub kept: Vec<Bytes>,
    /// So many follow them, up to the newest one: whoever wants those asks again.
    pub left: u64,
}

/// The way to the other servers.
pub trait Nodes {
    /// Appends to the history of a channel, and lets all workers of all servers have it.
    fn append(&self, channel: &str, keep: Keep, content: Bytes) -> Reply<Position>;

    /// What follows a position in the history of a channel, or as much of that as goes at once; without one all that is kept.
    fn fetch(&self, channel: &str, keep: Keep, after: Option<Position>) -> Reply<Fetched>;

    /// Sends a letter to the workers of all other servers. Waits for none.
    fn send(&self, letter: Bytes);
}
