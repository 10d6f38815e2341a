//! A client of PostgreSQL for many callers on one thread, over few connections. It knows no PHP.
//!
//! Who shares a connection does not wait for the others' answers: what is asked is sent at once, and the server answers
//! in order (pipelining). The order of answers is known to one task, [`lane`], which owns the connection. A caller that
//! leaves takes nothing with it: its answer is still read, and dropped.
//!
//! Layout: `config` where the server is · `handshake` connecting, authentication · `lane` one connection · `client` all of
//! them, and who uses which · `bound` one for a transaction · `slot` where a caller waits · `waiter` who is
//! woken · `known` what is known of a statement's text · `statement` what was prepared · `value` parameters ·
//! `listen` notifications · `copy` COPY · `tls` encryption ·
//! `sql` what must not be sent on a shared connection · `failure` what goes wrong
//!
//! Everything runs inside a tokio `LocalSet`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bound;
mod client;
mod config;
mod copy;
mod failure;
mod handshake;
mod known;
mod lane;
mod listen;
mod slot;
mod sql;
mod statement;
mod stream;
mod tls;
mod value;
mod waiter;

pub use bound::Bound;
pub use client::{Client, Figures, Resolve};
pub use config::Config;
pub use copy::{Copy, Direction};
pub use failure::{Details, Failure, Kind};
pub use listen::{Listener, Notification};
pub use slot::{Buffer, Rows, Ticket};
pub use statement::{Column, Statement};
pub use value::Parameter;
