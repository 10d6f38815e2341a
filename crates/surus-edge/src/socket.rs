//! The client's socket as the lane and hyper read and write it.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{pin, Pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::tcp::OwnedReadHalf;

use crate::buffers;
use crate::connection::{Phase, Reader, State};
use crate::http2::Frames;

/// Reads from the client; writes go to the connection's output.
#[derive(Debug)]
pub(crate) struct Socket {
    input: OwnedReadHalf,
    state: Rc<State>,
    /// The client has closed its side behind a request; hyper is about to be told.
    at_end: bool,
    /// What was read and is not hyper's yet.
    first: BytesMut,
    /// Bytes that a head may have.
    most: usize,
    /// Of HTTP/2.
    frames: Option<Box<Frames>>,
}

/// Bytes that are read at once of what comes first.
const FIRST: usize = 8 * 1024;

impl Socket {
    /// `most`: bytes that a head may have.
    pub(crate) fn new(input: OwnedReadHalf, state: Rc<State>, most: usize) -> Self {
        Socket {
            input,
            state,
            at_end: false,
            first: BytesMut::new(),
            most,
            frames: None,
        }
    }

    /// All that is read from here on is HTTP/2.
    pub(crate) fn speaks_http2(&mut self) {
        self.frames = Some(Box::new(Frames::new()));
        self.state.speaks_http2();
    }

    /// What has come and nobody has had yet.
    pub(crate) fn first(&self) -> &[u8] {
        &self.first
    }

    pub(crate) fn skip(&mut self, count: usize) {
        self.first.advance(count);
    }

    /// The same, for keeps.
    pub(crate) fn take_first(&mut self) -> Bytes {
        self.first.split().freeze()
    }

    /// Nothing has been read since it was taken.
    pub(crate) fn give_back(&mut self, rest: &[u8]) {
        self.first.extend_from_slice(rest);
    }

    /// Adds to what [`Socket::first`] gives; how many bytes.
    pub(crate) fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.state.check_timeout()?;
        if self.first.capacity() == 0 {
            self.first = buffers::take();
        }
        self.first.reserve(FIRST);
        let polled = pin!(self.input.read_buf(&mut self.first)).poll(cx);
        if self.first.is_empty() {
            buffers::give(std::mem::take(&mut self.first));
        }
        match polled {
            Poll::Ready(Ok(1..)) => {
                self.state.note_first(&self.first);
                self.state.has_read();
            }
            Poll::Pending => self.state.turn.begin(),
            _ => {}
        }
        polled
    }

    /// hyper has one bound for a head and for what it reads of a body at once. Here heads have their own: no more is read
    /// of one that has had it. One that comes in a single piece is judged when it is whole.
    fn poll_bounded(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let is_head = !self.state.is_http2() && self.state.phase.get() != Phase::Busy;
        let had = self.state.head.get();
        if is_head && had >= self.most {
            return Poll::Ready(Err(self.state.refuse_head()));
        }
        let before = buf.filled().len();
        let polled = self.poll_input(cx, buf);
        if is_head {
            self.state.head.set(had + buf.filled().len() - before);
        }
        polled
    }

    fn poll_input(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.state.check_timeout()?;
        if !self.first.is_empty() {
            let count = self.first.len().min(buf.remaining());
            buf.put_slice(&self.first[..count]);
            self.skip(count);
            if self.first.is_empty() {
                buffers::give(std::mem::take(&mut self.first));
            }
            if count > 0 {
                return Poll::Ready(Ok(()));
            }
        }
        if self.state.reader() != Reader::Usual {
            // Its end wakes the connection's task.
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.input).poll_read(cx, buf);
        if buf.filled().len() == before
            && !self.state.is_http2()
            && matches!(polled, Poll::Ready(Ok(())))
            && !self.state.phase.get().is_between()
            && !std::mem::replace(&mut self.at_end, true)
        {
            // hyper drops a request whose client has left, also one that it has just read and not begun. One turn
            // later it has: who fires and forgets (WordPress its cron) counts on that.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        polled
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = self.poll_bounded(cx, buf);
        if buf.filled().len() > before {
            if self.state.phase.get() != Phase::Busy {
                self.state.note_first(&buf.filled()[before..]);
            }
            self.state.has_read();
            let this = &mut *self;
            if let Some(frames) = &mut this.frames {
                let has_ended = frames.read(&buf.filled()[before..]);
                this.state.notes_head(frames.is_open(), has_ended);
            }
        } else if polled.is_pending() && !self.state.is_http2() {
            self.state.turn.begin();
        }
        polled
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

    /// The connection's task does it, at the end of its turn. hyper calls this when it has written all that it has.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.state.has_written_all();
        Poll::Ready(Ok(()))
    }

    /// As above: see [`State::close`].
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
