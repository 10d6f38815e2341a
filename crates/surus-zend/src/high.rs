//! Surus's own files get high descriptors, which `select` cannot use, so that the low ones are left for PHP.

use std::{
    fs::File,
    os::fd::{AsRawFd, FromRawFd},
};

/// `FD_SETSIZE`: PHP's own descriptors stay below.
pub(crate) const BASE: libc::c_int = libc::FD_SETSIZE as libc::c_int;

/// The same open file with a high descriptor; unchanged if the limit of open files does not allow that.
pub(crate) fn lifted(low: File) -> File {
    // SAFETY: a plain system call; the result is checked.
    let high = unsafe { libc::fcntl(low.as_raw_fd(), libc::F_DUPFD_CLOEXEC, BASE) };
    if high < 0 {
        return low;
    }
    // SAFETY: a new descriptor that nobody else owns.
    unsafe { File::from_raw_fd(high) }
}
