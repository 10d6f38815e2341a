//! The few bodies that are read in long blocks. With each read the kernel tells the client how much more it may send,
//! and so gets the next bytes: fewer reads take a fifth less CPU time. But a block is in memory until its reader has
//! taken all of it, so only a few bodies have long ones.

use std::cell::Cell;

/// The size of such a block.
pub(super) const LONG_BLOCK: usize = 256 * 1024;

/// Bodies of a thread that are read in such blocks at a time.
const MOST: usize = 16;

thread_local! {
    static TAKEN: Cell<usize> = const { Cell::new(0) };
}

/// One of these bodies, until it is dropped.
#[derive(Debug)]
pub(super) struct LongBlocks(());

impl LongBlocks {
    /// `None` if there are too many.
    pub(super) fn take() -> Option<Self> {
        let taken = TAKEN.get();
        (taken < MOST).then(|| {
            TAKEN.set(taken + 1);
            LongBlocks(())
        })
    }
}

impl Drop for LongBlocks {
    fn drop(&mut self) {
        // A thread that exits counts no more.
        let _ = TAKEN.try_with(|taken| taken.set(taken.get() - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_have_them_at_a_time() {
        let mut all: Vec<LongBlocks> = (0..MOST).filter_map(|_| LongBlocks::take()).collect();
        assert_eq!(all.len(), MOST);
        assert!(LongBlocks::take().is_none());
        all.pop();
        let another = LongBlocks::take();
        assert!(another.is_some() && LongBlocks::take().is_none());
        drop((all, another));
        assert_eq!(TAKEN.get(), 0);
    }
}
