//! Processes with one request at a time, as in php-fpm: for extensions whose state cannot be isolated, and for code
//! whose crash must not affect other requests.
//!
//! ```text
//!  client ──► edge (a worker) ──► socket without a name ──► process 1: accept, one request, accept …
//!             connections,        the kernel's queue        process 2
//!             files, limits       is the queue              …
//! ```
//!
//! The workers keep the clients' connections, so an idle or slow one does not block a process. A process accepts from
//! the socket only while it is free: the next free process serves a waiting request.
//!
//! - [`wire`]: the frames in which requests and responses are sent; [`head`]: their heads
//! - [`mod@line`]: the socket, which is the queue, and how a process notices that the last worker has exited
//! - [`client`]: the edge's side; [`server`]: the process's side
//! - [`jobs`]: the same for jobs of `Surus\offload()`, where PHP runs in the workers; [`guard`] ends those that do not

mod arriving;
mod client;
#[cfg(test)]
mod fuzz;
mod guard;
mod head;
mod jobs;
mod line;
mod server;
mod wire;

pub(crate) use client::Processes;
pub(crate) use jobs::{offloading, JobRunner};
pub(crate) use line::{Purpose, Queue, SLEEP};
pub(crate) use server::{serve, News, Runs};
