//! The timeouts of every connection of an edge, judged once a second. Without connections the sweep sleeps for good.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::connection::{Command, Phase, State};
use crate::Limits;

/// The open connections of an edge, and its clock.
#[derive(Debug, Default)]
pub(crate) struct Table {
    slots: RefCell<Vec<Option<Rc<State>>>>,
    free: RefCell<Vec<usize>>,
    open: Cell<usize>,
    clock: Rc<Cell<u32>>,
    /// Signalled when the first connection opens and when the last one closes.
    changed: Notify,
}

impl Table {
    pub(crate) fn clock(&self) -> Rc<Cell<u32>> {
        Rc::clone(&self.clock)
    }

    pub(crate) fn open(&self) -> usize {
        self.open.get()
    }

    pub(crate) fn insert(&self, state: Rc<State>) -> usize {
        let mut slots = self.slots.borrow_mut();
        let key = self.free.borrow_mut().pop().unwrap_or_else(|| {
            slots.push(None);
            slots.len() - 1
        });
        slots[key] = Some(state);
        self.open.set(self.open.get() + 1);
        if self.open.get() == 1 {
            self.changed.notify_waiters();
        }
        key
    }

    pub(crate) fn remove(&self, key: usize) {
        if self.slots.borrow_mut()[key].take().is_some() {
            self.free.borrow_mut().push(key);
            self.open.set(self.open.get() - 1);
            if self.open.get() == 0 {
                self.changed.notify_waiters();
            }
        }
    }

    pub(crate) fn order_all(&self, command: Command) {
        for state in self.slots.borrow().iter().flatten() {
            state.order(command);
        }
    }

    /// Ends when no connection is open.
    pub(crate) async fn closed(&self) {
        loop {
            let changed = self.changed.notified();
            if self.open() == 0 {
                return;
            }
            changed.await;
        }
    }

    /// To be run without tokio's budget for cooperation, which a look at many connections would exhaust.
    pub(crate) async fn sweep(&self, limits: &Limits) {
        let header_timeout = seconds(limits.header_timeout);
        let keep_alive = seconds(limits.keep_alive);
        loop {
            let changed = self.changed.notified();
            if self.open() == 0 {
                changed.await;
                continue;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = self.clock.get().wrapping_add(1);
            self.clock.set(now);
            for state in self.slots.borrow().iter().flatten() {
                judge(state, now, header_timeout, keep_alive);
            }
        }
    }
}

fn judge(state: &State, now: u32, header_timeout: u32, keep_alive: u32) {
    let age = now.wrapping_sub(state.since.get());
    match state.phase.get() {
        Phase::Busy if age > 0 && state.client_has_left() => state.order(Command::Abort),
        Phase::Head if age > header_timeout => state.time_out(),
        // A response that its client does not read keeps a finished connection open: it has had its time twice.
        Phase::Idle if state.finishing.get() && age > keep_alive.saturating_mul(2) => {
            state.order(Command::Abort)
        }
        Phase::Idle if !state.finishing.get() && age > keep_alive => state.order(Command::Finish),
        Phase::Head | Phase::Idle | Phase::Busy => {}
    }
}

fn seconds(duration: Duration) -> u32 {
    // Rounded up: a timeout is never shorter than asked for.
    u32::try_from(duration.as_millis().div_ceil(1000)).unwrap_or(u32::MAX)
}
