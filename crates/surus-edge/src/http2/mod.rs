//! HTTP/2 with prior knowledge (RFC 9113). The `h2` crate handles frames, windows and header compression.
//!
//! ```text
//! Socket ──► connection ──► Service ──► stream ──► h2 ──► Socket
//!            accepts        begins      waits for the response, then for the client's window
//! ```
//!
//! A stream whose response is ready at once, and fits into the windows, is completed in the connection's task. Each
//! other one gets its own task, which also notices when the client resets the stream.
//!
//! - [`connection`]: the streams of a connection, one after the other
//! - [`stream`]: one request's response; [`respond`]: sends its heads, including interim ones
//! - [`socket`]: the socket, as `h2` reads and writes it
//! - [`received`]: a request's body; [`tunnel`]: a stream that is a WebSocket
//! - [`frames`]: whether a client owes the rest of a head
//! - [`head`]: removes headers that HTTP/2 does not allow in a response, and adds those of the server

mod connection;
mod frames;
mod head;
mod received;
mod respond;
mod socket;
mod stream;
mod tunnel;

pub(crate) use connection::Serving;
#[cfg(any(test, fuzzing))]
pub(crate) use frames::Frames;
pub(crate) use socket::Stream;

use crate::Limits;

/// Streams of one connection at a time. Further ones are refused, and the client may retry them.
const STREAMS: u32 = 128;

/// Bytes of one request's body that may wait to be read, and of all those of a connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Bytes of one response that may wait for the socket, in addition to one chunk of the body, which exists anyway.
const OUTPUT: usize = 64 * 1024;

/// Streams that a client may have reset before they are accepted. A client that resets more ("rapid reset") gets
/// ENHANCE_YOUR_CALM and is disconnected.
const RESET_AT_ONCE: usize = 20;

/// The same for streams that the server has reset because of errors of the client.
const IN_ERROR: usize = 256;

/// Recently reset streams to remember: frames that the client has sent before it knew of the reset are ignored.
const REMEMBERED: usize = 50;

/// The limits on what one connection may make the server store and do.
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
        // WebSockets (RFC 8441).
        .enable_connect_protocol()
        // It bounds the CONTINUATION frames of a head, too.
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX));
    builder
}
