//! The master process of Surus: it forks workers, watches them, replaces them and ends them.
//!
//! It has no threads and no event loop, so that a fork is always safe, and it runs no PHP. It is in two halves:
//!
//! - [`state`]: what to do. Pure: an event and the time go in, actions come out.
//! - [`executor`]: does it. Waits in one `poll` for signals, workers' reports, clients and the next deadline.
//!
//! Beside them: [`config`] is what the master is told, [`listen`] binds before the fork, [`seat`] is what a worker gets,
//! [`protocol`] what it and the master tell each other, [`process`] a worker as the master sees it, [`look`] its health,
//! [`child`] tries something out before there are workers, [`upgrade`] is a new binary, [`control`], [`admin`] and
//! [`status`] what an operator asks for, [`clients`] how, [`board`] what workers count, [`notify`] what a service manager is told,
//! [`identity`] who workers are, and [`fork`] holds the one unsafe call.

#![deny(unsafe_code)]
#![warn(missing_docs)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

mod address;
mod admin;
mod board;
mod child;
mod clients;
mod config;
mod control;
mod executor;
mod fork;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod identity;
mod listen;
mod look;
mod metrics;
mod notify;
mod process;
mod protocol;
mod seat;
mod state;
mod status;
mod unix;
mod upgrade;

pub use address::Address;
pub use admin::Desk;
pub use board::{Board, Tally};
pub use child::{in_child, in_child_as};
pub use config::Config;
pub use control::{ask, Door, Request};
pub use executor::{run, Failure};
pub use identity::Identity;
pub use listen::{bind, can_listen, BindError, Inherited, Listeners};
pub use look::Recycle;
pub use protocol::{Order, Report, Stamp};
pub use seat::{Channel, Seat};
pub use state::Outcome;
pub use upgrade::{Predecessor, Program};
