//! HTTP/2 by prior knowledge (RFC 9113). Frames, windows and the compression of headers are the `h2` crate's.
//!
//! ```text
//! Socket ──► connection ──► Service ──► stream ──► h2 ──► Socket
//!            accepts        begins      waits for the answer, then for the client's window
//! ```
//!
//! A stream that has its answer at once, and room for it, ends where it has begun: in the connection's task. Each other
//! one gets a task of its own, which also sees that the client gives the stream up.
//!
//! - [`connection`]: the streams of a connection, one after the other
//! - [`stream`]: one request's response; [`respond`]: where its heads go, interim ones among them
//! - [`socket`]: what `h2` reads and writes
//! - [`received`]: a request's body
//! - [`frames`]: whether a client owes the rest of a head
//! - [`head`]: what HTTP/2 does not have in a response's head, and what the server adds

mod connection;
mod frames;
mod head;
mod received;
mod respond;
mod socket;
mod stream;

pub(crate) use connection::Serving;
#[cfg(any(test, fuzzing))]
pub(crate) use frames::Frames;
pub(crate) use socket::Stream;

use crate::Limits;

/// Streams of one connection at a time. A client that opens more is refused them, and may try again.
const STREAMS: u32 = 128;

/// Bytes of one request's body that may wait to be read, and of all those of a connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Bytes of one response that may wait for the socket; one chunk of the body more, which is there anyway.
const OUTPUT: usize = 64 * 1024;

/// Streams that a client may have reset before they are looked at. Who resets more ("rapid reset") is told to calm down,
/// and disconnected.
const RESET_AT_ONCE: usize = 20;

/// The same for streams that the server has reset because of what the client has sent.
const IN_ERROR: usize = 256;

/// Streams that were reset of late: what the client has sent before it knew is read and forgotten.
const REMEMBERED: usize = 50;

/// What one connection may make the server keep, and do.
pub(crate) fn builder(limits: &Limits) -> h2::server::Builder {
    let mut builder = h2::server::Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(OUTPUT)
        .max_concurrent_streams(STREAMS)
        .max_pending_accept_reset_streams(RESET_AT_ONCE)
        .max_local_error_reset_streams(Some(IN_ERROR))
        .max_concurrent_reset_streams(REMEMBERED)
        // It bounds the CONTINUATION frames of a head, too.
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX));
    builder
}
