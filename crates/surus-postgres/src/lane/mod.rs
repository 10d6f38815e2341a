//! One connection: the task that owns it, and what others see of it.
//!
//! Answers come in the order of what was sent, each ended by `ReadyForQuery`; `sent` is that order. A caller that leaves
//! changes nothing in it: what comes for it is read and dropped.
//!
//! When all that is under way was given up, its time is not worth waiting for: the server is asked to cancel, and the
//! connection is dropped. Never otherwise, as the server cancels what it runs when it hears of it, which may be the next
//! statement, and another caller's.

mod answers;
mod driver;
mod requests;

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc,
    task::Waker,
    time::{Duration, Instant},
};

use crate::{copy::Pipe, known::Known, slot::Slot, value::Parameter};

pub(crate) use driver::run;

/// So many statements are under way at a time.
pub(crate) const DEPTH: usize = 64;
/// A connection whose oldest statement takes longer gets no more.
const SLOW: Duration = Duration::from_millis(20);

/// A statement with its parameters.
pub(crate) struct Job {
    known: Rc<Known>,
    parameters: Vec<Parameter>,
    limit: usize,
    pub(crate) slot: Rc<Slot>,
    /// It is a transaction's: a second try would not be the same.
    is_bound: bool,
    is_second: bool,
    /// How many connections were lost that had it.
    moves: u32,
    /// Nothing may be sent behind it.
    is_last: bool,
    /// Of a COPY.
    pipe: Option<Rc<Pipe>>,
}

impl Job {
    pub(crate) fn new(
        known: Rc<Known>,
        parameters: Vec<Parameter>,
        limit: usize,
        slot: Rc<Slot>,
        is_bound: bool,
    ) -> Self {
        Job {
            known,
            parameters,
            limit,
            slot,
            is_bound,
            is_second: false,
            moves: 0,
            is_last: false,
            pipe: None,
        }
    }

    pub(crate) fn with_pipe(mut self, pipe: Rc<Pipe>) -> Self {
        self.pipe = Some(pipe);
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Opening,
    Shared,
    /// A transaction gets it when it has finished what it has to do.
    Reserved,
    /// A transaction's.
    Bound,
    Closed,
}

/// What others see of a connection.
pub(crate) struct Lane {
    inbox: RefCell<VecDeque<Job>>,
    /// Statements that it was given and has not answered.
    pub(crate) load: Cell<usize>,
    /// Those of them behind which nothing may be sent.
    lasts: Cell<usize>,
    pub(crate) state: Cell<State>,
    /// The server has said so, after the last statement.
    pub(crate) in_transaction: Cell<bool>,
    /// Since when the oldest statement is under way.
    since: Cell<Instant>,
    cut: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Lane {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Lane {
            inbox: RefCell::default(),
            load: Cell::new(0),
            lasts: Cell::new(0),
            state: Cell::new(State::Opening),
            in_transaction: Cell::new(false),
            since: Cell::new(Instant::now()),
            cut: Cell::new(false),
            waker: RefCell::default(),
        })
    }

    pub(crate) fn place(self: &Rc<Self>, mut job: Job) {
        job.is_last = !job.known.is_quick();
        self.lasts.set(self.lasts.get() + usize::from(job.is_last));
        job.slot.place(self);
        let load = self.load.get();
        if load == 0 {
            self.since.set(Instant::now());
        }
        self.load.set(load + 1);
        self.inbox.borrow_mut().push_back(job);
        self.wake();
    }

    pub(crate) fn takes_more(&self) -> bool {
        let load = self.load.get();
        self.state.get() == State::Shared
            && load < DEPTH
            && (load == 0 || self.lasts.get() == 0 && self.since.get().elapsed() < SLOW)
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// It is for everybody again.
    pub(crate) fn release(&self) {
        if self.state.get() == State::Bound {
            self.state.set(State::Shared);
            self.wake();
        }
    }

    /// Ends it, whatever it does.
    pub(crate) fn cut(&self) {
        self.cut.set(true);
        self.wake();
    }
}
