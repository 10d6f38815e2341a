//! How much may wait for slow clients: bytes of responses in memory, and in files beyond that. One bound of each for all
//! responses of a worker, which is a thread.

use std::{
    cell::{Cell, RefCell},
    path::PathBuf,
};

use bytes::Bytes;

/// Bounds on what waits for slow clients, for a worker.
#[derive(Clone, Debug)]
pub struct ResponseRoom {
    /// Bytes in memory; more go to files.
    pub memory: u64,
    /// Bytes in files; beyond that PHP waits for its client. Zero: no files.
    pub disk: u64,
    /// Where the files are, which have no names.
    pub folder: PathBuf,
}

impl Default for ResponseRoom {
    fn default() -> Self {
        ResponseRoom {
            memory: 64 << 20,
            disk: 4 << 30,
            folder: std::env::temp_dir(),
        }
    }
}

thread_local! {
    static BOUNDS: RefCell<ResponseRoom> = RefCell::default();
    static MEMORY: Cell<u64> = const { Cell::new(0) };
    static DISK: Cell<u64> = const { Cell::new(0) };
}

impl ResponseRoom {
    /// These are the bounds of this thread from now on.
    pub fn enter(self) {
        BOUNDS.set(self);
    }
}

/// True if so many bytes more are too many for memory.
pub(crate) fn is_short_of_memory(more: usize) -> bool {
    let limit = BOUNDS.with_borrow(|bounds| bounds.memory);
    MEMORY.get() + more as u64 > limit
}

pub(crate) fn is_short_of_disk() -> bool {
    let limit = BOUNDS.with_borrow(|bounds| bounds.disk);
    DISK.get() >= limit
}

pub(crate) fn folder() -> PathBuf {
    BOUNDS.with_borrow(|bounds| bounds.folder.clone())
}

pub(crate) fn take_disk(bytes: u64) {
    DISK.set(DISK.get() + bytes);
}

pub(crate) fn give_disk(bytes: u64) {
    DISK.set(DISK.get() - bytes);
}

/// Bytes that count from now until the last part of them is dropped, which is when the client's socket has taken it.
pub(crate) fn counted(bytes: Bytes) -> Bytes {
    MEMORY.set(MEMORY.get() + bytes.len() as u64);
    Bytes::from_owner(Counted(bytes))
}

struct Counted(Bytes);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // At the end of the thread there may be nothing left to count with.
        let _ =
            MEMORY.try_with(|memory| memory.set(memory.get().saturating_sub(self.0.len() as u64)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_as_long_as_a_part_of_them_is_left() {
        let limit = ResponseRoom::default().memory as usize;
        let mut bytes = counted(Bytes::from(vec![0; limit]));
        assert!(is_short_of_memory(1) && !is_short_of_memory(0));
        let part = bytes.split_to(10);
        drop(bytes);
        assert!(is_short_of_memory(1));
        drop(part);
        assert!(!is_short_of_memory(limit));
    }
}
