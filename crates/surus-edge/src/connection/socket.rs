//! The client's socket, and the bytes that were read from it and that nobody has taken yet.

use std::cell::Ref;
use std::io;
use std::rc::Rc;
use std::task::{ready, Context, Poll};

use bytes::{Buf, Bytes, BytesMut};

use crate::connection::buffers;
use crate::connection::State;

/// Reads from the client.
#[derive(Debug)]
pub(crate) struct Socket {
    state: Rc<State>,
    /// The client has closed its side after a request, which is cancelled in the next turn.
    at_end: bool,
}

/// Bytes that are read at once.
const BLOCK: usize = 8 * 1024;

/// Usual heads of one request are shorter.
const SHORT: usize = 2 * 1024;

impl Socket {
    pub(crate) fn new(state: Rc<State>) -> Self {
        Socket {
            state,
            at_end: false,
        }
    }

    pub(crate) fn state(&self) -> &Rc<State> {
        &self.state
    }

    /// The received bytes that nobody has taken yet.
    pub(crate) fn first(&self) -> Ref<'_, BytesMut> {
        self.state.buffer.borrow()
    }

    pub(crate) fn skip(&mut self, count: usize) {
        self.state.buffer.borrow_mut().advance(count);
    }

    /// Takes these bytes. A request that waits keeps them, and would keep a whole block: where requests wait, few bytes are
    /// copied.
    pub(crate) fn take_first(&mut self) -> Bytes {
        let mut buffer = self.state.buffer.borrow_mut();
        if buffer.len() > SHORT || !buffers::are_kept() {
            return buffer.split().freeze();
        }
        let few = Bytes::copy_from_slice(&buffer);
        buffer.clear();
        few
    }

    /// Puts back the rest of what was taken. Nothing has been read since.
    pub(crate) fn give_back(&mut self, rest: &[u8]) {
        if !rest.is_empty() {
            self.state.buffer.borrow_mut().extend_from_slice(rest);
        }
    }

    /// Reads and appends to [`Socket::first`]. Returns the number of bytes.
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

    /// Ready when the client has disconnected while its request is being answered. Clients that do not wait for the
    /// response (such as WordPress's cron) rely on it that a request that was received is started: it is cancelled one
    /// turn later.
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // Otherwise the reader of the body or the sweep finds the end of input, also when a pipelined request waits.
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
