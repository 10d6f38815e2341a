//! The edge of Surus: everything between a client's socket and a backend.
//!
//! One edge runs on one thread, on a current-thread tokio runtime inside a `LocalSet`. It accepts connections, speaks
//! HTTP/1 and HTTP/2, and hands each request to a [`Backend`]. It knows nothing about PHP.
//!
//! ```text
//! listener ──► server.rs ──► connection.rs ──► http1, ──► service.rs ──► Backend ──► reply.rs ──► socket
//!              accept,       one task per      http2     limits, 413,               bytes, a file or the
//!              drain         connection, timeouts       access log                 backend's own stream
//! ```
//!
//! - [`server`]: the accept loops, the bound on connections, the drain; [`crowd`]: those of one address; [`seldom`]: what is logged once for many; [`limits`], [`settings`]: what it is told
//! - [`opening`], [`proxy_protocol`]: the first bytes of a connection decide what it speaks
//! - [`http1`]: HTTP/1.0 and HTTP/1.1
//! - [`http2`]: HTTP/2, on the `h2` crate
//! - [`serving`]: the life of one connection; [`connection`]: its state; [`socket`], [`transport`]: its bytes; [`turn`]: its share of time
//! - [`sweep`], [`stall`]: the timeouts of all of them, once a second; [`patience`]: those of bodies
//! - [`buffers`], [`output`], [`flush`]: what is read, and what is written, gathered
//! - [`service`]: a request's way to the backend; [`responding`]: its way back; [`refusal`], [`refused`]: where it ends before
//! - [`wellformed`]: what is asked of a request beyond what the engines check
//! - [`proxies`], [`hops`], [`claims`]: who the client is, and headers that say so; [`hosts`]: which name it means
//! - [`ids`], [`access_log`]: what its request is called, and what is noted of it
//! - [`backend`]: what a backend is; [`request_body`], [`reply`]: the bodies on both sides of it
//! - [`input`], [`direct`]: where request bodies come from
//! - [`spool`], [`kept`]: request bodies read to their end first, in memory or in a file; [`spare`]: those files;
//!   [`splice`]: the way there past this process; [`form`]: the files of forms, apart
//! - [`site`]: which file or script a path of a classic site means; [`hidden`], [`backups`]: which are not for clients; [`path`], [`fs`]: what
//!   both build on
//! - [`files`], [`mime`], [`conditional`], [`range`]: static files as replies
//! - [`high`]: its descriptors keep out of PHP's way
//! - [`upgrade`]: connections that leave HTTP
//! - [`length`], [`date`]: what a response says of itself is true
//! - [`compress`], [`encoding`]: responses compressed on their way

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

mod access_log;
mod backend;
mod backups;
mod buffers;
mod claims;
mod compress;
mod conditional;
mod connection;
mod crowd;
mod date;
mod direct;
mod encoding;
mod files;
mod flush;
mod form;
mod fs;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod hidden;
mod high;
mod hops;
mod hosts;
mod http1;
mod http2;
mod ids;
mod input;
mod kept;
mod length;
mod limits;
mod mime;
mod opening;
mod output;
mod path;
mod patience;
mod proxies;
mod proxy_protocol;
mod range;
mod refusal;
mod refused;
mod reply;
mod request_body;
mod responding;
mod seldom;
mod server;
mod service;
mod serving;
mod settings;
mod site;
mod socket;
mod spare;
mod splice;
mod spool;
mod stall;
mod sweep;
#[cfg(test)]
mod testing;
mod transport;
mod turn;
mod upgrade;
mod wellformed;

pub use access_log::{AccessLog, LogFormat};
pub use backend::{take_head, Answer, Backend, Connection, Later, Peer, SendInterim};
pub use files::{serve_file, serve_file_with};
pub use form::Scanner;
pub use fs::{CachedDisk, Disk, FileSystem, Kind, Stat};
pub use hidden::Hidden;
pub use hosts::HostName;
pub use kept::{Kept, Piece};
pub use limits::Limits;
pub use proxies::{Network, Proxies, ProxyHeader};
pub use refused::Refusal;
pub use reply::{plain, Reply};
pub use request_body::{BodyError, RequestBody, Trailers};
pub use server::{serve, Drained, Edge, Intake};
pub use settings::{Health, Settings};
pub use site::{Resolution, Script, Site};
pub use spare::BodyFile;
pub use spool::{Share, Spool, SpoolLimits, Spooled, SpooledFile};
pub use upgrade::{Upgrade, Upgraded};

/// The error of every body that crosses the edge.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
