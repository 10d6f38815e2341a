//! `read`, `readv`, `write`, `writev` on sockets, pipes, FIFOs, and descriptors of the kernel without a file
//! (`eventfd`, `inotify`). Calls on regular files block until the disk has done its work.

use std::{
    ffi::{c_int, c_void},
    os::fd::RawFd,
};

use super::{
    asking::{at_once, state, until_done, until_sent, Asking},
    can_park,
    descriptor::{is_nonblocking, kind_of, Kind, Vectors},
    real::{errno, real, set_errno},
    receive::read_socket,
    send::write_socket,
};

type ReadMany = unsafe extern "C" fn(c_int, *const libc::iovec, c_int) -> isize;

/// Whether errno says that the kernel cannot read or write such a descriptor without waiting, or forbids the call.
fn is_unable() -> bool {
    matches!(
        errno(),
        libc::EOPNOTSUPP | libc::ENOSYS | libc::EPERM | libc::EINVAL
    )
}

/// Reads without waiting. Linux supports the flag for pipes since 6.4.
fn read_once(fd: RawFd, buffers: &[libc::iovec]) -> isize {
    let count = buffers.len() as c_int;
    // SAFETY: buffers of the caller's.
    let now = unsafe { libc::preadv2(fd, buffers.as_ptr(), count, -1, libc::RWF_NOWAIT) };
    if now < 0 && is_unable() {
        return read_once_by_flag(fd, buffers);
    }
    now
}

fn read_once_by_flag(fd: RawFd, buffers: &[libc::iovec]) -> isize {
    let real = real!(readv: ReadMany);
    if state(fd, libc::POLLIN) == 0 {
        set_errno(libc::EAGAIN);
        return -1;
    }
    // Non-blocking: another process may read the bytes first.
    // SAFETY: buffers of the caller's.
    at_once(fd, || unsafe {
        real(fd, buffers.as_ptr(), buffers.len() as c_int)
    })
}

fn read_some(fd: RawFd, buffers: &Vectors) -> isize {
    let all = buffers.behind(0);
    until_done(Asking::to_read(fd), || read_once(fd, &all))
}

/// The number of bytes that a writable pipe accepts without waiting (PIPE_BUF).
const PIECE: usize = 4096;

fn write_once(fd: RawFd, buffers: &[libc::iovec]) -> isize {
    let count = buffers.len() as c_int;
    // SAFETY: buffers of the caller's, which are only read.
    let now = unsafe { libc::pwritev2(fd, buffers.as_ptr(), count, -1, libc::RWF_NOWAIT) };
    if now < 0 && is_unable() {
        return write_piece(fd, buffers);
    }
    now
}

/// Does not set `O_NONBLOCK`: other processes share standard error, and would see the flag.
fn write_piece(fd: RawFd, buffers: &[libc::iovec]) -> isize {
    let real = real!(write: unsafe extern "C" fn(c_int, *const c_void, usize) -> isize);
    if state(fd, libc::POLLOUT) == 0 {
        set_errno(libc::EAGAIN);
        return -1;
    }
    match buffers.iter().find(|each| each.iov_len > 0) {
        // SAFETY: the beginning of a buffer of the caller's.
        Some(first) => unsafe { real(fd, first.iov_base, first.iov_len.min(PIECE)) },
        None => 0,
    }
}

#[no_mangle]
unsafe extern "C" fn read(fd: c_int, buffer: *mut c_void, size: usize) -> isize {
    if size > 0 && can_park() {
        let one = libc::iovec {
            iov_base: buffer,
            iov_len: size,
        };
        // SAFETY: one buffer of the caller's.
        let buffers = unsafe { Vectors::new(&one, 1) };
        match kind_of(fd) {
            Kind::Socket => return read_socket(fd, &buffers),
            Kind::Pipe | Kind::Events => return read_some(fd, &buffers),
            Kind::Other => {}
        }
    }
    let real = real!(read: unsafe extern "C" fn(c_int, *mut c_void, usize) -> isize);
    // SAFETY: the caller's arguments.
    unsafe { real(fd, buffer, size) }
}

#[no_mangle]
unsafe extern "C" fn __read_chk(fd: c_int, buffer: *mut c_void, size: usize, room: usize) -> isize {
    assert!(size <= room, "buffer overflow in read");
    // SAFETY: the caller's arguments.
    unsafe { read(fd, buffer, size) }
}

#[no_mangle]
unsafe extern "C" fn readv(fd: c_int, list: *const libc::iovec, count: c_int) -> isize {
    if Vectors::is_usual(list, count) && can_park() {
        // SAFETY: `count` buffers, as libc requires.
        let buffers = unsafe { Vectors::new(list, count as usize) };
        match kind_of(fd) {
            Kind::Socket if buffers.size() > 0 => return read_socket(fd, &buffers),
            Kind::Pipe | Kind::Events if buffers.size() > 0 => return read_some(fd, &buffers),
            _ => {}
        }
    }
    let real = real!(readv: ReadMany);
    // SAFETY: the caller's arguments.
    unsafe { real(fd, list, count) }
}

/// What `write` does on a descriptor that may be full; `None`: it is another kind, and the call is passed to libc.
fn write_waiting(fd: RawFd, buffers: &Vectors) -> Option<isize> {
    if buffers.size() == 0 {
        return None;
    }
    match kind_of(fd) {
        Kind::Socket => Some(write_socket(fd, buffers)),
        Kind::Pipe if !is_nonblocking(fd) => Some(until_sent(fd, buffers.size(), |done| {
            write_once(fd, &buffers.behind(done))
        })),
        _ => None,
    }
}

/// `write`, except for the special call of `hand_over`, which has the hook.
///
/// # Safety
/// The arguments are those of write(2).
pub(crate) unsafe fn write_any(fd: c_int, buffer: *const c_void, size: usize) -> isize {
    if size > 0 && can_park() {
        let one = libc::iovec {
            iov_base: buffer.cast_mut(),
            iov_len: size,
        };
        // SAFETY: one buffer of the caller's, which is only read.
        let buffers = unsafe { Vectors::new(&one, 1) };
        if let Some(result) = write_waiting(fd, &buffers) {
            return result;
        }
    }
    let real = real!(write: unsafe extern "C" fn(c_int, *const c_void, usize) -> isize);
    // SAFETY: the caller's arguments.
    unsafe { real(fd, buffer, size) }
}

#[no_mangle]
unsafe extern "C" fn writev(fd: c_int, list: *const libc::iovec, count: c_int) -> isize {
    if Vectors::is_usual(list, count) && can_park() {
        // SAFETY: `count` buffers, as libc requires, which are only read.
        let buffers = unsafe { Vectors::new(list, count as usize) };
        if let Some(result) = write_waiting(fd, &buffers) {
            return result;
        }
    }
    let real = real!(writev: ReadMany);
    // SAFETY: the caller's arguments.
    unsafe { real(fd, list, count) }
}

#[cfg(test)]
mod tests {
    use std::{
        ffi::c_void,
        io::{self, Read, Write},
        os::fd::AsRawFd,
    };

    use super::{read_once_by_flag, write_piece};
    use crate::blocking::{descriptor::is_nonblocking, real::errno};

    fn buffer(bytes: &mut [u8]) -> [libc::iovec; 1] {
        [libc::iovec {
            iov_base: bytes.as_mut_ptr().cast::<c_void>(),
            iov_len: bytes.len(),
        }]
    }

    /// Before Linux 6.4.
    #[test]
    fn a_pipe_is_read_without_waiting_by_its_flag() -> io::Result<()> {
        let (reader, mut writer) = io::pipe()?;
        let mut text = [0; 8];
        assert_eq!(
            read_once_by_flag(reader.as_raw_fd(), &buffer(&mut text)),
            -1
        );
        assert_eq!(errno(), libc::EAGAIN);
        writer.write_all(b"some")?;
        assert_eq!(read_once_by_flag(reader.as_raw_fd(), &buffer(&mut text)), 4);
        assert_eq!(&text[..4], b"some");
        assert!(!is_nonblocking(reader.as_raw_fd()));
        drop(writer);
        assert_eq!(read_once_by_flag(reader.as_raw_fd(), &buffer(&mut text)), 0);
        Ok(())
    }

    #[test]
    fn a_pipe_is_filled_piece_by_piece() -> io::Result<()> {
        let (mut reader, writer) = io::pipe()?;
        let mut text = vec![b'x'; 100_000];
        let mut written = 0;
        loop {
            let now = write_piece(writer.as_raw_fd(), &buffer(&mut text[written..]));
            match usize::try_from(now) {
                Ok(count) => written += count,
                Err(_) => break,
            }
        }
        assert_eq!(errno(), libc::EAGAIN);
        assert!(written >= 4096 && written % 4096 == 0, "{written}");
        drop(writer);
        let mut got = Vec::new();
        assert_eq!(reader.read_to_end(&mut got)?, written);
        Ok(())
    }
}
