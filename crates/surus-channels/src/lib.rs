//! Channels: what is published on one reaches all that have subscribed to it, in all workers of a server. No PHP, no sockets, and
//! no shared memory of its own: what it needs of these is [`Links`] and [`History`].
//!
//! Layout:
//!  - `name` — names of channels, and the bounds of everything
//!  - `publication` — what is published, and its position in the history of its channel
//!  - `subscriber` — who is told: [`Subscriber`] of a channel, [`Observer`] of all
//!  - `rules` — which channels have a history
//!  - `history` — where it is kept
//!  - `nodes` — several servers that share channels
//!  - `presence` — who is in a channel
//!  - `wire` — what workers tell each other
//!  - `hub` — the channels of one worker: [`Hub`]
//!
//! Everything of a worker happens on one thread, so that a subscription and the reading of what it has missed are one step.

#![warn(missing_docs)]
#![deny(unsafe_code)]

mod history;
mod hub;
mod name;
mod nodes;
mod presence;
mod publication;
mod rules;
mod subscriber;
mod wire;

pub use history::{History, HistoryError};
pub use hub::{Figures, Hub, Links, Recovery};
pub use name::{is_name, Refused, LARGEST_DATA, LARGEST_INFO, LONGEST_NAME};
pub use nodes::{Fetched, Nodes, Reply};
pub use presence::Member;
pub use publication::{Message, Position, Publication};
pub use rules::{Keep, Rules};
pub use subscriber::{next_id, Observer, Subscriber};
