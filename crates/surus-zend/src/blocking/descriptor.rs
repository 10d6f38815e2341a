//! The kind of a descriptor, and whether a call on it would wait.

use std::{ffi::c_int, mem::MaybeUninit, os::fd::RawFd, time::Duration};

/// Kinds of descriptors on which a call may wait for a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Socket,
    /// Or a FIFO.
    Pipe,
    /// Descriptors of the kernel without a file: `eventfd`, `timerfd`, `inotify`.
    Events,
    /// Files and terminals, which are not hooked.
    Other,
}

pub(super) fn kind_of(fd: RawFd) -> Kind {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `stat` is writable; it is read only after success.
    let mode = unsafe {
        if libc::fstat(fd, stat.as_mut_ptr()) != 0 {
            return Kind::Other;
        }
        stat.assume_init().st_mode & libc::S_IFMT
    };
    match mode {
        libc::S_IFSOCK => Kind::Socket,
        libc::S_IFIFO => Kind::Pipe,
        0 => Kind::Events,
        _ => Kind::Other,
    }
}

/// Whether it is a stream of bytes, of which a call may return a part.
pub(super) fn is_byte_stream(fd: RawFd) -> bool {
    option(fd, libc::SOL_SOCKET, libc::SO_TYPE) == Some(libc::SOCK_STREAM)
}

/// The value of a numeric socket option.
pub(super) fn option(fd: RawFd, level: c_int, name: c_int) -> Option<c_int> {
    let mut value: c_int = 0;
    let mut size = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: `value` has room for `size` bytes.
    let result = unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &mut size) };
    (result == 0).then_some(value)
}

pub(crate) fn is_nonblocking(fd: RawFd) -> bool {
    // SAFETY: a plain system call.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    flags < 0 || flags & libc::O_NONBLOCK != 0
}

/// `SO_RCVTIMEO` or `SO_SNDTIMEO`; `None` where there is no limit.
pub(crate) fn socket_timeout(fd: RawFd, option: c_int) -> Option<Duration> {
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

/// The buffers of one call.
#[derive(Clone, Copy)]
pub(super) struct Vectors<'a>(&'a [libc::iovec]);

impl Vectors<'_> {
    /// Whether the kernel accepts this number of buffers (`IOV_MAX`); it refuses others.
    pub(super) fn is_usual(list: *const libc::iovec, count: c_int) -> bool {
        !list.is_null() && (1..=1024).contains(&count)
    }

    /// # Safety
    /// `list` has `count` buffers, unless that is 0, and lives as long as the value.
    pub(super) unsafe fn new<'a>(list: *const libc::iovec, count: usize) -> Vectors<'a> {
        if count == 0 || list.is_null() {
            return Vectors(&[]);
        }
        // SAFETY: the caller's promise.
        Vectors(unsafe { std::slice::from_raw_parts(list, count) })
    }

    /// The size of all buffers together, in bytes.
    pub(super) fn size(&self) -> usize {
        self.0
            .iter()
            .fold(0, |size, each| size.saturating_add(each.iov_len))
    }

    /// The buffers after the first `done` bytes, without empty ones.
    pub(super) fn behind(&self, mut done: usize) -> Vec<libc::iovec> {
        let mut rest = Vec::with_capacity(self.0.len());
        for each in self.0 {
            let skipped = done.min(each.iov_len);
            done -= skipped;
            if skipped < each.iov_len {
                rest.push(libc::iovec {
                    iov_base: each.iov_base.wrapping_byte_add(skipped),
                    iov_len: each.iov_len - skipped,
                });
            }
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;

    use super::Vectors;

    #[test]
    fn what_is_left_of_buffers() {
        let text = *b"abcdefgh";
        let buffer = |at: usize, length: usize| libc::iovec {
            iov_base: text[at..].as_ptr().cast_mut().cast::<c_void>(),
            iov_len: length,
        };
        let list = [buffer(0, 3), buffer(3, 0), buffer(3, 5)];
        // SAFETY: three buffers, which live longer.
        let buffers = unsafe { Vectors::new(list.as_ptr(), list.len()) };
        assert_eq!(buffers.size(), 8);
        let lengths = |done| -> Vec<usize> {
            let rest = buffers.behind(done);
            rest.iter().map(|each| each.iov_len).collect()
        };
        assert_eq!(lengths(0), [3, 5]);
        assert_eq!(lengths(2), [1, 5]);
        assert_eq!(lengths(3), [5]);
        assert_eq!(lengths(7), [1]);
        assert_eq!(
            buffers.behind(7)[0].iov_base,
            list[2].iov_base.wrapping_byte_add(4)
        );
    }
}
