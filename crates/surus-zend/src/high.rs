//! Files of Surus's own keep out of PHP's way: above the descriptors that `select` can see.

use std::{
    fs::File,
    os::fd::{AsRawFd, FromRawFd},
};

/// `FD_SETSIZE`: PHP's own descriptors stay below.
pub(crate) const BASE: libc::c_int = libc::FD_SETSIZE as libc::c_int;

/// The same open file under a high number. Where the limit of open files has no room for it, as it was.
pub(crate) fn lifted(low: File) -> File {
    // SAFETY: a plain system call; the result is checked.
    let high = unsafe { libc::fcntl(low.as_raw_fd(), libc::F_DUPFD_CLOEXEC, BASE) };
    if high < 0 {
        return low;
    }
    // SAFETY: a new descriptor that nobody else owns.
    unsafe { File::from_raw_fd(high) }
}
