//! Where a caller waits for its answer.

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    rc::{Rc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::timeout;

use crate::{
    client::Client,
    failure::{Failure, Kind},
    lane::Lane,
    statement::Statement,
    waiter::Waiter,
};

/// An answer.
#[derive(Debug)]
pub struct Rows {
    /// What has answered: it has the columns.
    pub statement: Rc<Statement>,
    /// The rows as the server sends them, one after another: the number of values in two bytes, then for each its
    /// length in four, negative for NULL, and its bytes.
    pub data: Buffer,
    /// How many rows these are.
    pub count: usize,
    /// How many rows the statement has returned, inserted, updated or deleted.
    pub affected: u64,
    /// It was a COMMIT of a transaction that had failed.
    pub rolled_back: bool,
}

/// Bytes of rows, counted as long as they are there.
pub struct Buffer {
    bytes: Vec<u8>,
    client: Rc<Client>,
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Buffer")
    }
}

impl Buffer {
    pub(crate) fn new(client: Rc<Client>) -> Self {
        let bytes = Vec::new();
        Buffer { bytes, client }
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let held = &self.client.held;
        held.set(held.get() + bytes.len());
    }

    pub(crate) fn clear(&mut self) {
        let held = &self.client.held;
        held.set(held.get() - self.bytes.len());
        self.bytes = Vec::new();
    }
}

impl std::ops::Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.clear();
    }
}

#[derive(Default)]
pub(crate) struct Slot {
    answer: RefCell<Option<Result<Rows, Failure>>>,
    waiter: Waiter,
    /// Nobody waits for it any more.
    left: Cell<bool>,
    is_answered: Cell<bool>,
    /// The connection that has it; none: it waits for one.
    lane: RefCell<Option<Weak<Lane>>>,
}

impl Slot {
    pub(crate) fn has_left(&self) -> bool {
        self.left.get()
    }

    pub(crate) fn place(&self, lane: &Rc<Lane>) {
        *self.lane.borrow_mut() = Some(Rc::downgrade(lane));
        self.waiter.wake();
    }

    /// It waits for a connection again.
    pub(crate) fn displace(&self) {
        *self.lane.borrow_mut() = None;
    }

    pub(crate) fn answer(&self, answer: Result<Rows, Failure>) {
        if !self.left.get() {
            *self.answer.borrow_mut() = Some(answer);
            self.is_answered.set(true);
            self.waiter.wake();
        }
    }

    /// The last that is said about it, whatever else comes.
    pub(crate) fn refuse(&self, failure: Failure) {
        self.answer(Err(failure));
        self.left.set(true);
    }

    fn is_placed(&self) -> bool {
        self.lane.borrow().is_some() || self.answer.borrow().is_some()
    }
}

/// The right to an answer. Dropping it gives the statement up.
pub struct Ticket {
    slot: Rc<Slot>,
    client: Rc<Client>,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ticket")
    }
}

impl Ticket {
    pub(crate) fn new(slot: Rc<Slot>, client: Rc<Client>) -> Self {
        Ticket { slot, client }
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.slot.is_answered.get()
    }

    pub(crate) fn register(&self, cx: &Context<'_>) {
        self.slot.waiter.register(cx);
    }

    /// The answer, if it is there.
    pub fn try_answer(&self) -> Option<Result<Rows, Failure>> {
        self.slot.answer.take()
    }

    /// Waits for the answer; for a connection only so long.
    ///
    /// # Errors
    /// What has gone wrong.
    pub async fn answer(self, patience: Duration) -> Result<Rows, Failure> {
        let slot = &self.slot;
        if !slot.is_placed() {
            let placed = poll_fn(|cx| {
                slot.waiter.register(cx);
                if slot.is_placed() {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            });
            if timeout(patience, placed).await.is_err() {
                return Err(self.client.busy(patience));
            }
        }
        poll_fn(|cx| {
            if let Some(answer) = slot.answer.take() {
                return Poll::Ready(answer);
            }
            slot.waiter.register(cx);
            Poll::Pending
        })
        .await
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.slot.left.set(true);
        if self.slot.is_answered.get() {
            return;
        }
        let lane = self.slot.lane.borrow().as_ref().map(Weak::upgrade);
        match lane {
            // It may be the last that anybody waits for there.
            Some(Some(lane)) if lane.load.get() > 0 => lane.wake(),
            Some(_) => {}
            None => self.client.forget(&self.slot),
        }
    }
}

pub(crate) fn busy(most: usize, patience: Duration) -> Failure {
    let seconds = patience.as_secs_f64();
    Failure::new(
        Kind::Busy,
        format!("None of the {most} connections was free within {seconds} s: raise connections, or look for long statements"),
    )
}
