//! HTTP/1.0 and HTTP/1.1 (RFC 9112), on the `httparse` crate.
//!
//! ```text
//! bytes ──► head ──► Service ──► encode ──► output        at once, if the response is ready
//!            │          │           │
//!            │          ▼           ▼
//!            └─► body  waiting ──► send ──► output        in a boxed future, until the response ends
//! ```
//!
//! A worker that answers in a microsecond must not spend another one on features of HTTP/1 that a request does not use.
//! So a request is answered in the connection's own turn if the response is ready. Only a request that has to wait gets
//! a future on the heap, which is freed afterwards. An idle connection has neither buffers nor such futures.
//!
//! The state machines of a connection are in [`crate::connection`].
//!
//! - [`connection`]: the requests of a connection; [`send`]: the rest of a response
//! - [`head`]: parses the heads of requests; [`encode`]: writes those of responses
//! - [`body`], [`chunks`], [`long_blocks`]: bodies of requests, read by their consumers

mod body;
mod chunks;
mod connection;
mod encode;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod head;
mod long_blocks;
mod send;
#[cfg(test)]
mod tests;

pub(crate) use connection::serve;
