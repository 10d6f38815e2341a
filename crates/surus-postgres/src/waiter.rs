//! One who waits, and is woken once.

use std::{
    cell::RefCell,
    task::{Context, Waker},
};

#[derive(Default)]
pub(crate) struct Waiter(RefCell<Option<Waker>>);

impl Waiter {
    pub(crate) fn register(&self, cx: &Context<'_>) {
        *self.0.borrow_mut() = Some(cx.waker().clone());
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = self.0.take() {
            waker.wake();
        }
    }
}
