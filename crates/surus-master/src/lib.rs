//! The master process of Surus: it forks workers, watches them, replaces them and ends them.
//!
//! It has no threads and no event loop, so that a fork is always safe, and it runs no PHP. It is in two halves:
//!
//! - [`state`]: what to do. Pure: an event and the time go in, actions come out.
//! - [`executor`]: does it. Waits in one `poll` for signals, workers' reports and the next deadline.
//!
//! Beside them: [`listen`] binds before the fork, [`seat`] is what a worker gets, [`child`] tries something out before
//! there are workers, and [`fork`] holds the one unsafe call.

#![deny(unsafe_code)]

mod child;
mod executor;
mod fork;
mod listen;
mod seat;
mod state;

pub use child::in_child;
pub use executor::{run, Config};
pub use listen::{bind, BindError, Listeners};
pub use seat::Seat;
pub use state::Outcome;
