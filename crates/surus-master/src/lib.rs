//! The master process of Surus: it forks workers, watches them, replaces them and stops them.
//!
//! It has no other threads and no async runtime, so that a fork is always safe, and it runs no PHP. It has two halves:
//!
//! - [`state`]: decides what to do. Pure: events and the time go in, actions come out.
//! - [`executor`]: carries it out. Waits in one `poll` for signals, workers' reports, clients and the next deadline.
//!
//! The other modules: [`config`] is the master's configuration, [`listen`] binds before the fork, [`seat`] is what a
//! worker gets, [`protocol`] the messages between it and the master, [`process`] a worker as the master sees it,
//! [`look`] checks its health, [`child`] runs something before there are workers, [`upgrade`] starts a new binary,
//! [`control`], [`admin`] and [`status`] are for operators, [`clients`] their connections, [`board`] the counters of
//! workers, [`jobs`] those of queues, [`companions`] processes that serve no requests, [`notify`] informs a service manager, [`identity`] is the user of workers, and [`fork`] has the one unsafe
//! call.

#![deny(unsafe_code)]
#![warn(missing_docs)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

mod address;
mod admin;
mod board;
mod child;
mod clients;
mod companions;
mod config;
mod control;
mod executor;
mod fork;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod identity;
mod jobs;
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
pub use companions::Companion;
pub use config::Config;
pub use control::{ask, Door, Request};
pub use executor::{run, Failure};
pub use identity::Identity;
pub use jobs::JobCounts;
pub use listen::{bind, can_listen, BindError, Inherited, Listeners};
pub use look::Recycle;
pub use protocol::{Order, Report, Stamp};
pub use seat::{Channel, Seat};
pub use state::Outcome;
pub use upgrade::{Predecessor, Program};
