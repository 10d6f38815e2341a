//! The queue of Surus: jobs that outlive the processes that push and run them.
//!
//! One process owns the jobs of a server: [`own`]. It keeps them in memory and in a log in a folder of its own, and talks with
//! everybody else over a Unix socket in that folder. The others have a [`Client`] each.
//!
//! ```text
//!   Client ── Push ──► owner ── record, fdatasync ──► Pushed
//!   Client ◄── Job ─── owner     a job is held by the process that it was sent to
//!   Client ── Ended ─► owner ── record ─────────────► Noted
//!     └─ dies: the socket closes, and its jobs go to others at once
//! ```
//!
//! Bottom to top: `job.rs` has a job, `record.rs` what the log has of it, `log.rs` the file; `book.rs` decides which job is whose turn, `streams.rs` which entry,
//! without doing anything; `message.rs` is what goes over the socket, `peer.rs` one connection of the owner, `owner.rs` its loop;
//! `client.rs` and `client/` are the other side, which survive the death of the owner. `holder.rs` tells whether a process still lives, `clock.rs` what time it is.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

mod book;
mod client;
mod clock;
mod holder;
mod job;
mod log;
mod message;
mod owner;
mod peer;
mod recent;
mod record;
mod streams;

pub use client::Client;
pub use job::{Ending, Id, NewBatch, Push, Pushed};
pub use message::{Change, Delivery, Entry, Question, Rate, Reading, Subscription, LONGEST};
pub use owner::{own, Outcome};

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970: times in the log outlive the machine's uptime.
fn now() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    millis(time.unwrap_or_default())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
