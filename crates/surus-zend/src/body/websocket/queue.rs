//! Messages that wait, each direction of a WebSocket for itself; and all of a thread together.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    task::{Context, Waker},
    thread::LocalKey,
};

use super::SocketMessage;

/// Bytes of messages that wait for PHP, or for the client. One more message is taken, whatever its size.
pub(super) const HIGH_WATER: usize = 64 * 1024;

/// Bytes that wait in one direction in all WebSockets of this thread. Beyond that nothing more is taken of clients, and each of
/// PHP's messages waits until the one before is on its way.
pub(super) const TOGETHER: usize = 64 * 1024 * 1024;

/// What a waiting message costs besides its bytes.
const OVERHEAD: usize = 64;

thread_local! {
    pub(super) static INBOUND: Total = const { Total::new() };
    pub(super) static OUTBOUND: Total = const { Total::new() };
}

/// Bytes of all queues of one direction, and who waits until they are less.
pub(super) struct Total {
    pub(super) bytes: Cell<usize>,
    waiting: RefCell<Vec<Waker>>,
    /// How often they were woken.
    round: Cell<u64>,
}

impl Total {
    const fn new() -> Total {
        Total {
            bytes: Cell::new(0),
            waiting: RefCell::new(Vec::new()),
            round: Cell::new(1),
        }
    }

    pub(super) fn is_high(&self) -> bool {
        self.bytes.get() > TOGETHER
    }

    fn add(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes);
    }

    fn remove(&self, bytes: usize) {
        let was_high = self.is_high();
        self.bytes.set(self.bytes.get() - bytes);
        if was_high && !self.is_high() {
            self.round.set(self.round.get() + 1);
            self.waiting.take().into_iter().for_each(Waker::wake);
        }
    }

    /// `round`: that in which the caller has waited last.
    pub(super) fn wait(&self, round: &Cell<u64>, cx: &Context<'_>) {
        if round.replace(self.round.get()) != self.round.get() {
            self.waiting.borrow_mut().push(cx.waker().clone());
        }
    }
}

/// Messages that wait, and their bytes.
pub(super) struct Queue {
    messages: VecDeque<SocketMessage>,
    pub(super) bytes: usize,
    total: &'static LocalKey<Total>,
}

impl Queue {
    pub(super) fn new(total: &'static LocalKey<Total>) -> RefCell<Self> {
        RefCell::new(Queue {
            messages: VecDeque::new(),
            bytes: 0,
            total,
        })
    }

    pub(super) fn push(&mut self, message: SocketMessage) {
        let bytes = message.data.len() + OVERHEAD;
        self.bytes += bytes;
        self.total.with(|total| total.add(bytes));
        self.messages.push_back(message);
    }

    pub(super) fn pop(&mut self) -> Option<SocketMessage> {
        let message = self.messages.pop_front()?;
        let bytes = message.data.len() + OVERHEAD;
        self.bytes -= bytes;
        self.total.with(|total| total.remove(bytes));
        Some(message)
    }

    pub(super) fn clear(&mut self) {
        self.messages = VecDeque::new();
        let bytes = std::mem::take(&mut self.bytes);
        // The thread may end: then nobody waits.
        let _ = self.total.try_with(|total| total.remove(bytes));
    }

    /// Keeps no room for messages that may come.
    pub(super) fn shrink(&mut self) {
        if self.messages.is_empty() && self.messages.capacity() > 0 {
            self.messages = VecDeque::new();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Bytes of its own are enough.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= HIGH_WATER
    }

    /// Those of all are too many.
    pub(super) fn is_high(&self) -> bool {
        self.total.with(Total::is_high)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.clear();
    }
}
