//! The socket, as `h2` reads and writes it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{ready, Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frames::Frames;
use crate::connection::socket::Socket;

/// Reads from the client; writes go to the connection's output.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: Socket,
    frames: Box<Frames>,
}

impl Stream {
    /// All input from here on is HTTP/2.
    pub(crate) fn new(socket: Socket) -> Self {
        socket.state().speaks_http2();
        Stream {
            socket,
            frames: Box::new(Frames::new()),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.socket.first().is_empty() {
            ready!(this.socket.poll_first(cx))?;
        }
        let count = this.socket.first().len().min(buf.remaining());
        if count > 0 {
            let has_ended = {
                let first = this.socket.first();
                buf.put_slice(&first[..count]);
                this.frames.read(&first[..count])
            };
            this.socket.skip(count);
            let state = this.socket.state();
            state.progress.note_head(this.frames.is_open(), has_ended);
            state.free_buffer();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.socket.state().poll_write(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.socket.state().poll_write(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// The connection's task flushes at the end of its turn.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Not done here either: see [`crate::connection::State::close`].
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
