//! The end of a connection.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use super::buffers;
use super::reading::Reading;
use super::state::State;

/// Bounds how much of a refused request is read for the sake of the client that is still sending it.
const LINGER_BYTES: usize = 64 * 1024 * 1024;

/// Bytes of it that are read at once.
const SCRATCH: usize = 4096;

impl State {
    /// Called when the connection has finished its work. Sends the remaining output and, if part of the request is
    /// unread, reads it for a moment. Closing with unread data makes the kernel reset the connection, and the client
    /// may lose the response that it has not read yet.
    pub(crate) async fn close(&self) -> io::Result<()> {
        if self.reading.get() != Reading::Nobody {
            return poll_fn(|cx| self.poll_flush(cx)).await;
        }
        poll_fn(|cx| self.poll_finish(cx)).await?;
        let mut budget = LINGER_BYTES;
        loop {
            match poll_fn(|cx| self.poll_skip(cx)).await? {
                0 => return Ok(()),
                count if count > budget => return Ok(()),
                count => budget -= count,
            }
        }
    }

    /// Reads input and discards it.
    fn poll_skip(&self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut scratch = buffers::take();
        scratch.reserve(SCRATCH);
        let polled = self.transport.poll_read(cx, &mut scratch, SCRATCH);
        buffers::give(scratch);
        polled
    }
}
