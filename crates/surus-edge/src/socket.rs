//! The client's socket: what has been read of it and is nobody's yet, and what `h2` reads and writes.

use std::cell::Ref;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{ready, Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::buffers;
use crate::connection::State;
use crate::http2::Frames;

/// Reads from the client; writes go to the connection's output.
#[derive(Debug)]
pub(crate) struct Socket {
    state: Rc<State>,
    /// The client has closed its side behind a request, which is about to be given up.
    at_end: bool,
    /// Of HTTP/2.
    frames: Option<Box<Frames>>,
}

/// Bytes that are read at once.
const BLOCK: usize = 8 * 1024;

impl Socket {
    pub(crate) fn new(state: Rc<State>) -> Self {
        Socket {
            state,
            at_end: false,
            frames: None,
        }
    }

    /// All that is read from here on is HTTP/2.
    pub(crate) fn speaks_http2(&mut self) {
        self.frames = Some(Box::new(Frames::new()));
        self.state.speaks_http2();
    }

    /// What has come and nobody has had yet.
    pub(crate) fn first(&self) -> Ref<'_, BytesMut> {
        self.state.buffer.borrow()
    }

    pub(crate) fn skip(&mut self, count: usize) {
        self.state.buffer.borrow_mut().advance(count);
    }

    /// The same, for keeps.
    pub(crate) fn take_first(&mut self) -> Bytes {
        self.state.buffer.borrow_mut().split().freeze()
    }

    /// Nothing has been read since it was taken.
    pub(crate) fn give_back(&mut self, rest: &[u8]) {
        if !rest.is_empty() {
            self.state.buffer.borrow_mut().extend_from_slice(rest);
        }
    }

    /// Adds to what [`Socket::first`] gives; how many bytes.
    pub(crate) fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let state = &self.state;
        state.check_timeout()?;
        let mut buffer = state.buffer.borrow_mut();
        if buffer.capacity() == 0 {
            *buffer = buffers::take();
        }
        buffer.reserve(BLOCK);
        let most = buffer.capacity() - buffer.len();
        let polled = state.transport.poll_read(cx, &mut buffer, most);
        if buffer.is_empty() {
            buffers::give(std::mem::take(&mut buffer));
        }
        match polled {
            Poll::Ready(Ok(1..)) => {
                state.note_first(&buffer);
                state.has_read();
            }
            Poll::Pending => state.turn.begin(),
            _ => {}
        }
        polled
    }

    /// Ready when the client has left while its request is being answered. Who fires and forgets (WordPress its cron)
    /// counts on it that what has just been read is begun: it is given up one turn later.
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // Else its end is found by who reads the body, or by the sweep: behind a request that waits, too.
        if !self.state.reads_heads() || !self.first().is_empty() {
            return Poll::Pending;
        }
        match ready!(self.poll_first(cx)) {
            Ok(1..) => Poll::Pending,
            Ok(0) if !std::mem::replace(&mut self.at_end, true) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Ok(0) | Err(_) => Poll::Ready(()),
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first().is_empty() {
            ready!(self.poll_first(cx))?;
        }
        let this = &mut *self;
        let count = this.first().len().min(buf.remaining());
        if count > 0 {
            buf.put_slice(&this.first()[..count]);
            if let Some(frames) = &mut this.frames {
                let has_ended = frames.read(&this.state.buffer.borrow()[..count]);
                this.state.progress.note_head(frames.is_open(), has_ended);
            }
            this.skip(count);
            if this.first().is_empty() {
                buffers::give(this.state.buffer.take());
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.state.poll_write(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.state.poll_write(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// The connection's task does it, at the end of its turn.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// As above: see [`State::close`].
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
