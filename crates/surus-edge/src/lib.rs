//! The edge of Surus: everything between a client's socket and a backend.
//!
//! One edge runs on one thread, on a current-thread tokio runtime inside a `LocalSet`. It accepts connections, speaks
//! HTTP/1 and HTTP/2, and hands each request to a [`Backend`]. It knows nothing about PHP.
//!
//! Each folder uses those below it, and none above it; docs/architecture.md shows them, and `tests/tests/structure.rs`
//! checks it.
//!
//! - [`server`]: the accept loops, and the life of one connection
//! - [`http1`], [`http2`]: the engines of the protocols; [`websocket`]: what follows an upgrade
//! - [`request`]: passes requests to the backend, and its responses back
//! - [`body`], [`response`]: request bodies and responses
//! - [`files`]: static files, and which script a path of a classic site means
//! - [`connection`]: the state and the transport of a connection, and the timeouts of all
//! - [`limits`]: limits on what clients may use; [`log`]: log entries about them; [`client`]: their addresses
//! - [`os`]: system calls

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

mod body;
mod client;
mod connection;
mod files;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod http1;
mod http2;
mod limits;
mod log;
mod os;
mod request;
mod response;
mod server;
#[cfg(test)]
mod testing;
pub mod websocket;

pub use body::file_pool::BodyFile;
pub use body::form::Scanner;
pub use body::request_body::{BodyError, RequestBody, Trailers};
pub use body::spool::{Share, Spool, SpoolLimits, Spooled, SpooledFile};
pub use body::stored::{Kept, Piece};
pub use client::connection::{Connection, Peer, SendInterim};
pub use client::hosts::HostName;
pub use client::network::Network;
pub use client::proxies::{Proxies, ProxyHeader};
pub use files::fs::{CachedDisk, Disk, FileSystem, Kind, Stat};
pub use files::hidden::Hidden;
pub use files::serve::{serve_file, serve_file_with};
pub use files::site::{Resolution, ScriptPath, Site};
pub use limits::Limits;
pub use log::access::{AccessLog, LogFormat};
pub use log::refusal::Refusal;
pub use request::backend::{take_head, Answer, Backend, Later};
pub use request::edge::Edge;
pub use request::settings::{Health, Settings};
pub use response::reply::{plain, Reply};
pub use response::upgrade::{Upgrade, Upgraded};
pub use server::listener::{serve, Drained, Intake};

/// The error of every body that crosses the edge.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
