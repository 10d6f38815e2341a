//! HTTP/1.0 and HTTP/1.1 (RFC 9112), on the `httparse` crate.
//!
//! ```text
//! bytes ──► head ──► Service ──► encode ──► output        at once, where the answer is there
//!            │          │           │
//!            │          ▼           ▼
//!            └─► body  waiting ──► send ──► output        in a future of its own, for as long as it takes
//! ```
//!
//! A worker that answers in a microsecond must not spend another one on what HTTP/1 could ask for and this request does
//! not. So a request is answered in the connection's own turn if its answer is there; only what has to wait is put on the
//! heap, and is gone afterwards. A connection that rests has neither buffers nor futures.
//!
//! What goes on at a time has a machine each: see [`crate::connection`].
//!
//! - [`connection`]: the requests of a connection; [`send`]: the rest of an answer
//! - [`head`]: what a request says of itself; [`encode`]: the same of a response
//! - [`body`], [`chunks`]: bodies of requests, read by who wants them

mod body;
mod chunks;
mod connection;
mod encode;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod head;
mod send;
#[cfg(test)]
mod tests;

pub(crate) use connection::serve;
