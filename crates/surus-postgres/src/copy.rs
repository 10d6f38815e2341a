//! `COPY`, in a transaction: bytes to the server or from it, as fast as both sides go.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::poll_fn,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};

use crate::{
    bound::Bound,
    failure::Failure,
    lane::Lane,
    slot::{Rows, Ticket},
    waiter::Waiter,
};

/// So many bytes wait on their way; then the faster side waits.
const MOST: usize = 256 * 1024;
/// Larger pieces are sent in several: a message has a limit.
const LARGEST: usize = 1 << 20;

/// The server answers it with `ReadyForQuery`: exactly one for each statement.
const SYNC: &[u8] = b"S\0\0\0\x04";

/// Which way the bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// `COPY … FROM STDIN`
    ToServer,
    /// `COPY … TO STDOUT`
    FromServer,
}

/// What the connection's task and the caller share.
#[derive(Default)]
pub(crate) struct Pipe {
    /// Once the server has said so.
    direction: Cell<Option<Direction>>,
    outgoing: RefCell<BytesMut>,
    incoming: RefCell<VecDeque<Bytes>>,
    bytes: Cell<usize>,
    /// The caller has no more; false: it gives up.
    end: Cell<Option<bool>>,
    /// The server has executed it.
    is_complete: Cell<bool>,
    /// Sync was sent, once.
    is_ended: Cell<bool>,
    waiter: Waiter,
}

impl Pipe {
    pub(crate) fn begin(&self, direction: Direction) {
        self.direction.set(Some(direction));
        self.waiter.wake();
    }

    pub(crate) fn complete(&self) {
        self.is_complete.set(true);
    }

    pub(crate) fn receive(&self, bytes: Bytes) {
        self.bytes.set(self.bytes.get() + bytes.len());
        self.incoming.borrow_mut().push_back(bytes);
        self.waiter.wake();
    }

    /// The caller takes what is there before more is read.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.get() >= MOST
    }

    /// What is to be sent next. `failed`: the server has refused something, and reads no more.
    pub(crate) fn send(&self, failed: bool, output: &mut BytesMut) {
        if self.is_ended.get() {
            return;
        }
        if self.direction.get() != Some(Direction::ToServer) {
            // The server needs nothing more to come to its end, or has failed, or is there.
            if self.direction.get().is_some() || failed || self.is_complete.get() {
                self.is_ended.set(true);
                output.extend_from_slice(SYNC);
            }
            return;
        }
        let mut outgoing = self.outgoing.borrow_mut();
        if failed {
            outgoing.clear();
        }
        if !outgoing.is_empty() && output.len() < MOST {
            output.extend_from_slice(&outgoing.split());
            self.waiter.wake();
        }
        let end = if failed { Some(false) } else { self.end.get() };
        if let (Some(is_good), true) = (end, outgoing.is_empty()) {
            self.is_ended.set(true);
            match is_good {
                // CopyDone.
                true => output.extend_from_slice(b"c\0\0\0\x04"),
                // CopyFail, with an empty reason.
                false => output.extend_from_slice(b"f\0\0\0\x05\0"),
            }
            output.extend_from_slice(SYNC);
            self.waiter.wake();
        }
    }
}

/// A `COPY` that runs.
pub struct Copy {
    pipe: Rc<Pipe>,
    lane: Rc<Lane>,
    ticket: RefCell<Option<Ticket>>,
}

impl std::fmt::Debug for Copy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Copy")
    }
}

impl Copy {
    pub(crate) fn new(pipe: Rc<Pipe>, lane: Rc<Lane>, ticket: Ticket) -> Self {
        let ticket = RefCell::new(Some(ticket));
        Copy { pipe, lane, ticket }
    }

    fn is_answered(&self) -> bool {
        let ticket = self.ticket.borrow();
        ticket.as_ref().is_none_or(Ticket::is_answered)
    }

    fn register(&self, cx: &Context<'_>) {
        self.pipe.waiter.register(cx);
        if let Some(ticket) = &*self.ticket.borrow() {
            ticket.register(cx);
        }
    }

    /// Waits until the server is ready for it, or has refused it.
    async fn begun(&self) -> Option<Direction> {
        poll_fn(|cx| {
            let direction = self.pipe.direction.get();
            if direction.is_some() || self.is_answered() {
                return Poll::Ready(direction);
            }
            self.register(cx);
            Poll::Pending
        })
        .await
    }

    /// Sends a piece, when there is room for it. False: the server takes no more, and [`Copy::end`] says why.
    pub async fn put(&self, bytes: &[u8]) -> bool {
        for piece in bytes.chunks(LARGEST) {
            let has_room = poll_fn(|cx| {
                if self.is_answered() || self.pipe.is_ended.get() {
                    return Poll::Ready(false);
                }
                if self.pipe.outgoing.borrow().len() < MOST {
                    return Poll::Ready(true);
                }
                self.register(cx);
                Poll::Pending
            });
            if !has_room.await {
                return false;
            }
            let mut outgoing = self.pipe.outgoing.borrow_mut();
            let size = u32::try_from(piece.len() + 4).unwrap_or(u32::MAX);
            outgoing.extend_from_slice(b"d");
            outgoing.extend_from_slice(&size.to_be_bytes());
            outgoing.extend_from_slice(piece);
            drop(outgoing);
            self.lane.wake();
        }
        true
    }

    /// Waits for pieces of the server's; none: it has sent all, or [`Copy::end`] says why not.
    pub async fn take(&self) -> Vec<Bytes> {
        let pieces = poll_fn(|cx| {
            let pieces = std::mem::take(&mut *self.pipe.incoming.borrow_mut());
            if !pieces.is_empty() || self.is_answered() {
                return Poll::Ready(pieces);
            }
            self.register(cx);
            Poll::Pending
        })
        .await;
        if self.pipe.bytes.replace(0) >= MOST {
            self.lane.wake();
        }
        pieces.into()
    }

    /// Ends it, and waits for how many rows were copied. Not `is_good`: the server undoes it.
    ///
    /// # Errors
    /// What the server has refused.
    pub async fn end(&self, is_good: bool, patience: Duration) -> Result<Rows, Failure> {
        let ticket = self.ticket.take();
        let ticket = ticket.ok_or_else(|| Failure::usage("The COPY has ended"))?;
        if !is_good && self.pipe.direction.get() == Some(Direction::FromServer) {
            // Dropping the ticket closes the connection.
            return Err(Failure::usage("The COPY was left in the middle"));
        }
        self.pipe.end.set(Some(is_good));
        self.lane.wake();
        ticket.answer(patience).await
    }
}

impl Bound {
    /// Begins a `COPY`; its text says so.
    ///
    /// # Errors
    /// The server refuses it, it goes the other way, or the connection is lost.
    pub async fn copy(
        &self,
        text: &str,
        wanted: Direction,
        patience: Duration,
    ) -> Result<Copy, Failure> {
        let copy = self.submit_copy(text)?;
        match copy.begun().await {
            Some(direction) if direction == wanted => Ok(copy),
            // Dropping it closes the connection, as nobody reads what comes.
            Some(_) => Err(Failure::usage(match wanted {
                Direction::ToServer => "This COPY has no FROM STDIN",
                Direction::FromServer => "This COPY has no TO STDOUT",
            })),
            None => {
                copy.end(false, patience).await?;
                Err(Failure::usage(
                    "This COPY is neither FROM STDIN nor TO STDOUT, and was executed",
                ))
            }
        }
    }
}
