//! Work that no client waits for: what requests have deferred, and runs of timers. The end of a worker waits for it longer than
//! for requests that go on without their clients.

use std::cell::Cell;

thread_local! {
    static OWED: Cell<usize> = const { Cell::new(0) };
}

/// Counts a piece of such work until it is dropped.
#[derive(Debug)]
pub(crate) struct Owed(());

impl Owed {
    pub(crate) fn begin() -> Owed {
        OWED.set(OWED.get() + 1);
        Owed(())
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        OWED.set(OWED.get() - 1);
    }
}

/// Pieces of work of this thread that no client waits for.
#[must_use]
pub fn owed() -> usize {
    OWED.get()
}
