//! What a descriptor is and whether a call on it would wait.

use std::{mem::MaybeUninit, os::fd::RawFd, time::Duration};

/// Sockets, pipes and FIFOs block for others' sake; regular files and terminals do not concern us.
pub(crate) fn is_stream(fd: RawFd) -> bool {
    matches!(kind(fd), libc::S_IFSOCK | libc::S_IFIFO)
}

pub(crate) fn is_pipe(fd: RawFd) -> bool {
    kind(fd) == libc::S_IFIFO
}

/// Zero if it is not open.
fn kind(fd: RawFd) -> libc::mode_t {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `stat` is writable; it is read only after success.
    unsafe {
        if libc::fstat(fd, stat.as_mut_ptr()) != 0 {
            return 0;
        }
        stat.assume_init().st_mode & libc::S_IFMT
    }
}

pub(crate) fn is_nonblocking(fd: RawFd) -> bool {
    // SAFETY: a plain system call.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    flags < 0 || flags & libc::O_NONBLOCK != 0
}

/// `SO_RCVTIMEO` or `SO_SNDTIMEO`; `None` where there is no limit.
pub(crate) fn socket_timeout(fd: RawFd, option: libc::c_int) -> Option<Duration> {
    let mut time = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    let mut size = size_of::<libc::timeval>() as libc::socklen_t;
    // SAFETY: `time` has room for `size` bytes.
    let result = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            option,
            (&raw mut time).cast(),
            &mut size,
        )
    };
    if result != 0 || (time.tv_sec == 0 && time.tv_usec == 0) {
        return None;
    }
    Some(Duration::new(
        time.tv_sec as u64,
        time.tv_usec as u32 * 1000,
    ))
}
