//! Processes with one request at a time, as php-fpm's: for extensions whose state cannot be isolated, and for what must
//! not share its fate with others.
//!
//! ```text
//!  client ──► edge (a worker) ──► socket without a name ──► process 1: accept, one request, accept …
//!             connections,        the kernel's queue        process 2
//!             files, limits       is the queue              …
//! ```
//!
//! The workers keep the clients' connections, so one that is idle or slow holds up no process. A process accepts from
//! the socket only while it is free: a waiting request is served by the next free process.
//!
//! - [`wire`]: how a request and its response travel; [`head`]: what goes before their bodies
//! - [`mod@line`]: the socket, and when a process ends
//! - [`client`]: the edge's side; [`server`]: a process's life

mod arriving;
mod client;
#[cfg(test)]
mod fuzz;
mod head;
mod line;
mod server;
mod wire;

pub(crate) use client::Processes;
pub(crate) use line::{Queue, SLEEP};
pub(crate) use server::{serve, News, Runs};
