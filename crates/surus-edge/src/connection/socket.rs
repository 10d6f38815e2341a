//! The client's socket: what has been read of it and is nobody's yet.

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
    /// The client has closed its side behind a request, which is about to be given up.
    at_end: bool,
}

/// Bytes that are read at once.
const BLOCK: usize = 8 * 1024;

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
