//! Locks that a request holds: they end with it.

use std::cell::{Cell, RefCell};

use super::Exchange;
use crate::shared::locks::Lock;

thread_local! {
    /// Numbers are the process's: one that outlives its request is that of no other lock.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

#[derive(Default)]
pub(crate) struct HeldLocks(RefCell<Vec<(u64, Lock)>>);

impl HeldLocks {
    pub(crate) fn release(&mut self) {
        self.0.get_mut().clear();
    }
}

impl Exchange {
    /// The number of the lock, by which it is let go.
    pub(crate) fn hold(&self, lock: Lock) -> u64 {
        let number = LAST.get() + 1;
        LAST.set(number);
        self.locks.0.borrow_mut().push((number, lock));
        number
    }

    /// Whether it was held.
    pub(crate) fn let_go(&self, number: u64) -> bool {
        let mut held = self.locks.0.borrow_mut();
        let found = held.iter().position(|(each, _)| *each == number);
        let lock = found.map(|at| held.swap_remove(at));
        drop(held);
        lock.is_some()
    }
}
