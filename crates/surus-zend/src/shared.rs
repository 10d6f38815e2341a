//! Numbers that a master and its workers share.

use std::{io, sync::atomic::AtomicU64};

/// Zeroed counters in memory that processes forked from this one share with it, for as long as the process lives.
pub fn shared_counters(count: usize) -> io::Result<&'static [AtomicU64]> {
    let size = count.max(1) * std::mem::size_of::<AtomicU64>();
    // SAFETY: a new mapping of our own.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: page-aligned, zeroed, of that size and never unmapped; only atomic operations reach it.
    Ok(unsafe { std::slice::from_raw_parts(memory.cast(), count) })
}
