//! What a request holds, by number: it ends with the request.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

thread_local! {
    /// Numbers are the process's: one that outlives its request is that of nothing else.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

pub(crate) struct Held<T>(RefCell<Vec<(u64, T)>>);

impl<T> Default for Held<T> {
    fn default() -> Self {
        Held(RefCell::default())
    }
}

impl<T> Held<T> {
    /// Its number, by which it is found and let go.
    pub(crate) fn add(&self, what: T) -> u64 {
        let number = LAST.get() + 1;
        LAST.set(number);
        self.0.borrow_mut().push((number, what));
        number
    }

    /// None: it was not held.
    pub(crate) fn take(&self, number: u64) -> Option<T> {
        let mut held = self.0.borrow_mut();
        let at = held.iter().position(|(each, _)| *each == number)?;
        Some(held.swap_remove(at).1)
    }

    pub(crate) fn release(&self) {
        self.0.take();
    }
}

impl<T> Held<Rc<T>> {
    pub(crate) fn find(&self, number: u64) -> Option<Rc<T>> {
        let held = self.0.borrow();
        let found = held.iter().find(|(each, _)| *each == number);
        found.map(|(_, what)| what.clone())
    }
}
