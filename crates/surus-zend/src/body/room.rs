//! Bounds on pending bytes: of responses for slow clients, in memory, and in files beyond that; of bodies that handlers
//! wait for, in files. Each bound is for all requests of a worker, which is a thread.

use std::{
    cell::{Cell, RefCell},
    path::PathBuf,
    rc::Rc,
};

use bytes::Bytes;

use crate::body::relief;

/// Bounds on pending bytes, for a worker.
#[derive(Clone, Debug)]
pub struct Room {
    /// Bytes of responses in memory; more go to files.
    pub memory: u64,
    /// Bytes of responses in files; beyond that PHP waits for its client. Zero: no files.
    pub disk: u64,
    /// Bytes of request bodies in files, those of the server included; beyond that handlers read as clients send.
    pub bodies: u64,
    /// The folder of the files, which have no names.
    pub folder: PathBuf,
}

impl Default for Room {
    fn default() -> Self {
        Room {
            memory: 64 << 20,
            disk: 4 << 30,
            bodies: 4 << 30,
            folder: std::env::temp_dir(),
        }
    }
}

/// The most unused blocks of [`Gathered`].
const MOST_BLOCKS: usize = 32;

thread_local! {
    static BLOCKS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static BOUNDS: RefCell<Room> = RefCell::default();
    static MEMORY: Cell<u64> = const { Cell::new(0) };
    static RESPONSES: Rc<Cell<u64>> = Rc::default();
    static BODIES: Rc<Cell<u64>> = Rc::default();
}

impl Room {
    /// Sets the bounds of this thread.
    pub fn enter(self) {
        BOUNDS.set(self);
    }
}

/// Counts the bytes of request bodies in files of this thread; the server, which writes some of these files, counts
/// too.
#[must_use]
pub fn bodies_on_disk() -> Rc<Cell<u64>> {
    BODIES.with(Rc::clone)
}

/// Lets the allocator keep some free memory (mallopt(3)), before there are threads. By default it returns each 128 KB to
/// the system, and gets them again for the next response: a fifth of the CPU time of a stream of 64 KB. It returns
/// what is more than that, and all of it in [`give_back_memory`].
pub(crate) fn keep_some_memory() {
    const KEPT: [(libc::c_int, libc::c_int); 3] = [
        (libc::M_TRIM_THRESHOLD, 4 << 20),
        (libc::M_TOP_PAD, 512 << 10),
        (libc::M_MMAP_THRESHOLD, 1 << 20),
    ];
    for (parameter, bytes) in KEPT {
        // SAFETY: sets a number; the caller has no other threads.
        unsafe { libc::mallopt(parameter, bytes) };
    }
}

/// Returns free memory of the allocator to the system, also below memory that is in use.
pub fn give_back_memory() {
    BLOCKS.take();
    // SAFETY: it takes the allocator's own locks, and moves nothing that is in use.
    unsafe { libc::malloc_trim(0) };
}

/// True if `more` bytes would exceed the bound on memory.
pub(crate) fn is_short_of_memory(more: usize) -> bool {
    let limit = BOUNDS.with_borrow(|bounds| bounds.memory);
    MEMORY.get() + more as u64 > limit
}

/// True if `more` bytes of a response fit neither into memory nor into files.
pub(crate) fn is_short(more: usize) -> bool {
    is_short_of_memory(more) && Disk::Responses.is_short()
}

pub(crate) fn folder() -> PathBuf {
    BOUNDS.with_borrow(|bounds| bounds.folder.clone())
}

/// The bound that the bytes of a file count for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Disk {
    #[default]
    Responses,
    Bodies,
}

impl Disk {
    pub(crate) fn is_short(self) -> bool {
        let limit = self.limit();
        self.used().is_none_or(|used| used.get() >= limit)
    }

    /// False if little is left: room that was just freed should not be gone with the next byte.
    pub(crate) fn has_some(self) -> bool {
        let limit = self.limit();
        limit == 0
            || self
                .used()
                .is_some_and(|used| used.get() <= limit - limit / 8)
    }

    fn limit(self) -> u64 {
        BOUNDS.with_borrow(|bounds| match self {
            Disk::Responses => bounds.disk,
            Disk::Bodies => bounds.bodies,
        })
    }

    pub(crate) fn take(self, bytes: u64) {
        if let Some(used) = self.used() {
            used.set(used.get() + bytes);
        }
    }

    pub(crate) fn give(self, bytes: u64) {
        if let Some(used) = self.used() {
            let limit = self.limit();
            let was_short = used.get() >= limit;
            used.set(used.get() - bytes);
            if was_short && used.get() < limit && self == Disk::Responses {
                relief::has_room();
            }
        }
    }

    /// `None` at the end of the thread.
    fn used(self) -> Option<Rc<Cell<u64>>> {
        let used = match self {
            Disk::Responses => &RESPONSES,
            Disk::Bodies => &BODIES,
        };
        used.try_with(Rc::clone).ok()
    }
}

/// Bytes that count until the last part of them is dropped, which is when they were written to the client's socket.
pub(crate) fn counted(bytes: Bytes) -> Bytes {
    take_memory(bytes.len());
    Bytes::from_owner(Counted(bytes))
}

fn take_memory(size: usize) {
    MEMORY.set(MEMORY.get() + size as u64);
}

fn give_memory(size: usize) {
    // A thread that exits may have no counter any more.
    let _ = MEMORY.try_with(|memory| memory.set(memory.get().saturating_sub(size as u64)));
}

struct Counted(Bytes);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        give_memory(self.0.len());
    }
}

/// Small pieces that are collected in one buffer, and count: an allocation for each would take many times its bytes.
/// The buffer has room for a few, then it is a block, which are used again.
#[derive(Default)]
pub(crate) struct Gathered(Vec<u8>);

impl Gathered {
    /// A piece of at least this length gets an allocation of its own.
    pub(crate) const PIECE: usize = 4 * 1024;

    /// From this number of bytes on they should be taken.
    pub(crate) const ENOUGH: usize = 16 * 1024;

    /// The size of a block: as large as it can get before it is taken.
    pub(crate) const BLOCK: usize = Self::ENOUGH + Self::PIECE;

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let before = self.0.capacity();
        let length = self.0.len() + bytes.len();
        if length > before {
            self.grow(length);
            take_memory(self.0.capacity() - before);
        }
        self.0.extend_from_slice(bytes);
    }

    fn grow(&mut self, length: usize) {
        if self.0.is_empty() {
            self.0.reserve_exact(length);
        } else if length <= Self::PIECE {
            self.0.reserve_exact(Self::PIECE - self.0.len());
        } else {
            let mut block = BLOCKS.with_borrow_mut(Vec::pop).unwrap_or_default();
            block.reserve_exact(length.max(Self::BLOCK));
            block.extend_from_slice(&self.0);
            self.0 = block;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes all bytes, which still count.
    pub(crate) fn take(&mut self) -> Bytes {
        Bytes::from_owner(Taken(std::mem::take(&mut self.0)))
    }
}

/// What was gathered; a block is kept for the next ones.
struct Taken(Vec<u8>);

impl AsRef<[u8]> for Taken {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_memory(self.0.capacity());
        if self.0.capacity() == Gathered::BLOCK {
            let mut block = std::mem::take(&mut self.0);
            block.clear();
            // A thread that exits keeps none.
            let _ = BLOCKS.try_with(|blocks| {
                let mut blocks = blocks.borrow_mut();
                if blocks.len() < MOST_BLOCKS {
                    blocks.push(block);
                }
            });
        }
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        give_memory(self.0.capacity());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_as_long_as_a_part_of_them_is_left() {
        let limit = Room::default().memory as usize;
        let mut bytes = counted(Bytes::from(vec![0; limit]));
        assert!(is_short_of_memory(1) && !is_short_of_memory(0));
        let part = bytes.split_to(10);
        drop(bytes);
        assert!(is_short_of_memory(1));
        drop(part);
        assert!(!is_short_of_memory(limit));
    }

    #[test]
    fn what_is_gathered_counts_until_it_is_gone() {
        let limit = Room::default().memory as usize;
        let mut gathered = Gathered::default();
        for _ in 0..1000 {
            gathered.add(b"ten bytes ");
        }
        assert!(is_short_of_memory(limit - 9999));
        let bytes = gathered.take();
        assert_eq!((bytes.len(), gathered.len()), (10_000, 0));
        assert!(is_short_of_memory(limit - 9999));
        drop(bytes);
        assert!(!is_short_of_memory(limit));
        gathered.add(b"more");
        assert!(is_short_of_memory(limit));
        drop(gathered);
        assert!(!is_short_of_memory(limit));
    }
}
