//! Moves the server's own descriptors above those that PHP may get.
//!
//! `select` accepts only descriptors below 1024, and many functions of PHP use it: `stream_select()`, `mysqli_poll()`,
//! `socket_select()`. The kernel assigns the lowest free number, so descriptors that the server keeps open for long
//! (connections, files that are sent or written) are moved up as soon as they are open: two system calls, 0.2 µs.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::fcntl_dupfd_cloexec;

/// `FD_SETSIZE`: `select` cannot handle descriptors from here on.
const BASE: i32 = 1024;

/// Moves an open file to a high number, if the limit of open files has room for it.
pub(crate) fn lifted<T: From<OwnedFd> + AsFd>(low: T) -> T {
    match fcntl_dupfd_cloexec(low.as_fd(), BASE) {
        Ok(high) => T::from(high),
        Err(_) => low,
    }
}

/// A second descriptor of the same open file, with a high number if there is room.
///
/// # Errors
/// There is no descriptor left.
pub(crate) fn copied(file: impl AsFd) -> std::io::Result<OwnedFd> {
    match fcntl_dupfd_cloexec(&file, BASE) {
        Ok(high) => Ok(high),
        Err(_) => file.as_fd().try_clone_to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn the_same_file_has_a_high_number() -> std::io::Result<()> {
        let mut file = tempfile::tempfile()?;
        let low = file.as_raw_fd();
        file.write_all(b"written before")?;
        file.rewind()?;
        let mut file = lifted(file);
        let copy = copied(&file)?;
        for fd in [file.as_raw_fd(), copy.as_raw_fd()] {
            // A limit of 1024 files leaves no room above.
            assert!(fd >= BASE || fd != low, "{fd}");
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        assert_eq!(text, "written before");
        drop(File::from(copy));
        Ok(())
    }
}
