//! Bytes of long messages that have not come to their end, of all clients of a worker: each may send one as slowly as it wants.

use std::cell::Cell;

/// Together they may keep so much memory.
const MOST: usize = 64 * 1024 * 1024;

/// Shorter ones are not counted.
const UNCOUNTED: usize = 8 * 1024;

thread_local! {
    static TOTAL: Cell<usize> = const { Cell::new(0) };
}

/// What one message keeps, until this is dropped.
#[derive(Debug, Default)]
pub(super) struct Held(usize);

impl Held {
    /// It will keep so many bytes. False: there is no room for them.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        if bytes <= UNCOUNTED.max(self.0) {
            return true;
        }
        let total = TOTAL.get() - self.0 + bytes;
        if total > MOST {
            return false;
        }
        TOTAL.set(total);
        self.0 = bytes;
        true
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        TOTAL.set(TOTAL.get() - self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_share_the_room() {
        let mut small = Held::default();
        assert!(small.grow(UNCOUNTED));
        assert_eq!(TOTAL.get(), 0);
        let mut first = Held::default();
        assert!(first.grow(MOST / 2) && first.grow(MOST - 1));
        assert!(!Held::default().grow(UNCOUNTED + 1));
        assert!(!small.grow(UNCOUNTED + 1));
        assert!(small.grow(UNCOUNTED));
        assert_eq!(TOTAL.get(), MOST - 1);
        drop(first);
        assert_eq!(TOTAL.get(), 0);
        assert!(small.grow(MOST));
        drop(small);
        assert_eq!(TOTAL.get(), 0);
    }
}
