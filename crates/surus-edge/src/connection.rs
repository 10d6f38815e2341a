//! One client connection.
//!
//! ```text
//!            first byte             headers complete          response body dropped
//!   Idle ───────────────► Head ───────────────────────► Busy ───────────────────────► Idle
//!    │ keep_alive          │ header_timeout
//!    ▼                     ▼
//!  closed                 408, closed
//! ```
//!
//! The phases are noted here with plain cells and judged once a second by [`crate::sweep`]: a timer of its own for each
//! request would cost an allocation and two visits to the timer wheel.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::Connection;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle,
    Head,
    Busy,
}

/// What the connection's task is asked to do when it is next polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Finish the request in flight, then close; close at once if there is none.
    Finish,
    /// Give up: drop the connection and the request in flight.
    Abort,
}

/// Shared by a connection's task, its socket, its bodies and the sweep. Single-threaded: plain cells.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) addresses: Connection,
    pub(crate) phase: Cell<Phase>,
    /// When `phase` was entered, in ticks of the sweep's clock (seconds).
    pub(crate) since: Cell<u32>,
    /// Set by a request body that passed its bound, read when the response is there.
    pub(crate) body_too_large: Cell<bool>,
    /// Some of the request will stay unread (413): read on for a moment after the response, since closing with unread
    /// data makes the kernel reset the connection, and the client may lose the response it has not read yet.
    pub(crate) linger: Cell<bool>,
    /// `Finish` has been passed on to hyper.
    pub(crate) finishing: Cell<bool>,
    header_timed_out: Cell<bool>,
    command: Cell<Option<Command>>,
    task: RefCell<Option<Waker>>,
    clock: Rc<Cell<u32>>,
}

impl State {
    pub(crate) fn new(addresses: Connection, clock: Rc<Cell<u32>>) -> Rc<Self> {
        Rc::new(State {
            addresses,
            phase: Cell::new(Phase::Idle),
            since: Cell::new(clock.get()),
            body_too_large: Cell::new(false),
            linger: Cell::new(false),
            finishing: Cell::new(false),
            header_timed_out: Cell::new(false),
            command: Cell::new(None),
            task: RefCell::new(None),
            clock,
        })
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.since.set(self.clock.get());
    }

    pub(crate) fn order(&self, command: Command) {
        self.command.set(Some(command));
        self.wake();
    }

    /// Answers 408 and closes, from within the next read.
    pub(crate) fn time_out(&self) {
        self.header_timed_out.set(true);
        self.wake();
    }

    /// The order given since the last poll, if any. Notes whom to wake for the next one.
    pub(crate) fn poll_order(&self, cx: &Context<'_>) -> Option<Command> {
        let mut task = self.task.borrow_mut();
        if !task
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            *task = Some(cx.waker().clone());
        }
        self.command.take()
    }

    fn wake(&self) {
        if let Some(waker) = self.task.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }
}

/// The client's socket as hyper sees it.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    state: Rc<State>,
    /// Bytes that lingering may still read and throw away.
    linger_budget: usize,
    write_closed: bool,
}

/// Bounds how much of a refused upload is read for the sake of the client that is still sending it.
const LINGER_BYTES: usize = 64 * 1024 * 1024;

const REQUEST_TIMEOUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

impl Socket {
    pub(crate) fn new(stream: TcpStream, state: Rc<State>) -> Self {
        Socket {
            stream,
            state,
            linger_budget: LINGER_BYTES,
            write_closed: false,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.state.header_timed_out.get() {
            // Best effort: a client that fills its receive window while sending a slow header gets no answer.
            let _ = self.stream.try_write(REQUEST_TIMEOUT);
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before && self.state.phase.get() == Phase::Idle {
            self.state.enter(Phase::Head);
        }
        polled
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Closes the sending side; with `linger`, reads on until the client has closed its own, the sweep loses patience
    /// (it sees an idle connection) or the budget is spent.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.write_closed {
            std::task::ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.write_closed = true;
        }
        if !self.state.linger.get() {
            return Poll::Ready(Ok(()));
        }
        let mut scratch = [0u8; 16 * 1024];
        while self.linger_budget > 0 {
            let mut buf = ReadBuf::new(&mut scratch);
            std::task::ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf))?;
            if buf.filled().is_empty() {
                break;
            }
            self.linger_budget = self.linger_budget.saturating_sub(buf.filled().len());
        }
        Poll::Ready(Ok(()))
    }
}
