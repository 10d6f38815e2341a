//! Memory that a master and its workers share.

use std::{io, ptr, slice, sync::atomic::AtomicU64};

/// Zeroed memory that processes forked from this one share with it. It is never unmapped. The kernel allocates pages on
/// first use.
pub(crate) fn zeros(bytes: usize) -> io::Result<*mut u8> {
    // SAFETY: a new anonymous mapping.
    let memory = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(memory.cast())
}

/// Counters in such memory.
pub fn shared_counters(count: usize) -> io::Result<&'static [AtomicU64]> {
    let memory = zeros(count.max(1) * size_of::<AtomicU64>())?;
    // SAFETY: page-aligned, zeroed, of that size and never unmapped; only atomic operations reach it.
    Ok(unsafe { slice::from_raw_parts(memory.cast(), count) })
}
