//! The Pusher protocol, version 7, with its HTTP API: what `pusher-js`, `laravel-echo` and the server libraries of Pusher speak.
//!
//! One [`Front`] serves one worker. It knows neither sockets nor PHP: a [`Connection`] takes the texts of one client and has texts
//! for it, and [`api::answer`] turns a request into a response. What is published, and who is there, goes through the channels of
//! all workers ([`surus_channels::Hub`]), which PHP has, too.
//!
//! ```text
//!   client ──► Connection ──► Hub ──► other workers, PHP
//!   client ◄── Connection ◄── Hub ◄── other workers, PHP, api
//! ```
//!
//! - [`apps`]: what is configured; [`names`]: the rules of names; [`signature`]: who may do what
//! - [`incoming`], [`outgoing`]: the messages of clients, and those to them; [`fault`]: why they are refused
//! - [`event`]: what is published, as channels have it
//! - [`front`]: the connections of a worker; [`connection`]: one of them; [`pace`]: how many events it may send
//! - [`api`]: requests of servers; [`report`]: what they are told

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

pub mod api;
mod apps;
mod connection;
mod event;
mod fault;
mod front;
mod incoming;
mod names;
mod outgoing;
mod pace;
mod report;
mod signature;
#[cfg(test)]
mod tests;

pub use apps::{App, LONGEST_PREFIX};
pub use connection::{Connection, Output};
pub use event::Frame;
pub use front::{Front, Work};
pub use report::{Happened, Reporter};
