//! `connect`, `recv`, `read` on sockets and pipes.

use std::{
    ffi::{c_int, c_void},
    os::fd::RawFd,
};

use super::{
    can_park,
    descriptor::{is_nonblocking, is_pipe, is_stream, socket_timeout},
    park_on,
    ready::{fd_ready, Waited},
    real::{errno, real, set_errno},
    sever::{is_over, sever},
};

/// Waits until a descriptor is ready, or severed: then the real call says what it says of such a one. False, with errno
/// set, when the caller must return an error.
fn wait(fd: RawFd, read: bool, timeout_errno: c_int) -> bool {
    let timeout = socket_timeout(
        fd,
        if read {
            libc::SO_RCVTIMEO
        } else {
            libc::SO_SNDTIMEO
        },
    );
    match park_on(fd_ready(fd, read, timeout)) {
        // A descriptor that cannot be watched is left to the real call.
        Ok(Ok(Waited::Ready) | Err(_)) => true,
        Ok(Ok(Waited::TimedOut)) => {
            set_errno(timeout_errno);
            false
        }
        Err(_) => {
            let severed = sever(fd);
            set_errno(libc::ECONNABORTED);
            severed
        }
    }
}

#[no_mangle]
unsafe extern "C" fn recv(fd: c_int, buffer: *mut c_void, size: usize, flags: c_int) -> isize {
    let real = real!(recv: unsafe extern "C" fn(c_int, *mut c_void, usize, c_int) -> isize);
    if flags & libc::MSG_DONTWAIT != 0 || !can_park() {
        // SAFETY: the caller's arguments.
        return unsafe { real(fd, buffer, size, flags) };
    }
    let before = errno();
    // SAFETY: the caller's arguments; asks without waiting.
    let now = unsafe { real(fd, buffer, size, flags | libc::MSG_DONTWAIT) };
    if now >= 0 || errno() != libc::EAGAIN || is_nonblocking(fd) {
        return now;
    }
    if !wait(fd, true, libc::EAGAIN) {
        return -1;
    }
    set_errno(before);
    // SAFETY: the caller's arguments.
    unsafe { real(fd, buffer, size, flags) }
}

#[no_mangle]
unsafe extern "C" fn __recv_chk(
    fd: c_int,
    buffer: *mut c_void,
    size: usize,
    room: usize,
    flags: c_int,
) -> isize {
    assert!(size <= room, "buffer overflow in recv");
    // SAFETY: the caller's arguments.
    unsafe { recv(fd, buffer, size, flags) }
}

#[no_mangle]
unsafe extern "C" fn read(fd: c_int, buffer: *mut c_void, size: usize) -> isize {
    let real = real!(read: unsafe extern "C" fn(c_int, *mut c_void, usize) -> isize);
    if can_park() && size > 0 && is_stream(fd) && !is_nonblocking(fd) {
        let before = errno();
        let mut state = libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let poll =
            real!(poll: unsafe extern "C" fn(*mut libc::pollfd, libc::nfds_t, c_int) -> c_int);
        // SAFETY: one structure; asks without waiting.
        if unsafe { poll(&mut state, 1, 0) } == 0 && !wait(fd, true, libc::EAGAIN) {
            return -1;
        }
        set_errno(before);
    }
    // SAFETY: the caller's arguments.
    unsafe { real(fd, buffer, size) }
}

/// What a pipe with any room takes without waiting (PIPE_BUF).
const PIECE: usize = 4096;

/// `write`: to a pipe that is full, piece by piece as it gets room. Standard error may be one, which nobody reads.
///
/// # Safety
/// The arguments are those of write(2).
pub(super) unsafe fn write_waiting(fd: c_int, buffer: *const c_void, size: usize) -> isize {
    let real = real!(write: unsafe extern "C" fn(c_int, *const c_void, usize) -> isize);
    if size == 0 || !can_park() || !is_pipe(fd) || is_nonblocking(fd) {
        // SAFETY: the caller's arguments.
        return unsafe { real(fd, buffer, size) };
    }
    let poll = real!(poll: unsafe extern "C" fn(*mut libc::pollfd, libc::nfds_t, c_int) -> c_int);
    let mut done = 0;
    while done < size {
        let mut state = libc::pollfd {
            fd,
            events: libc::POLLOUT,
            revents: 0,
        };
        // SAFETY: one structure; asks without waiting.
        if unsafe { poll(&mut state, 1, 0) } == 0 && !wait(fd, false, libc::EAGAIN) {
            return if done > 0 { done as isize } else { -1 };
        }
        let piece = PIECE.min(size - done);
        // SAFETY: inside of what the caller passes.
        let written = unsafe { real(fd, buffer.cast::<u8>().add(done).cast(), piece) };
        if written < 0 {
            return if done > 0 { done as isize } else { -1 };
        }
        done += written as usize;
    }
    done as isize
}

#[no_mangle]
unsafe extern "C" fn __read_chk(fd: c_int, buffer: *mut c_void, size: usize, room: usize) -> isize {
    assert!(size <= room, "buffer overflow in read");
    // SAFETY: the caller's arguments.
    unsafe { read(fd, buffer, size) }
}

#[no_mangle]
unsafe extern "C" fn connect(
    fd: c_int,
    address: *const libc::sockaddr,
    size: libc::socklen_t,
) -> c_int {
    let real = real!(connect: unsafe extern "C" fn(c_int, *const libc::sockaddr, libc::socklen_t) -> c_int);
    if is_over() {
        set_errno(libc::ECONNABORTED);
        return -1;
    }
    if !can_park() || is_nonblocking(fd) {
        // SAFETY: the caller's arguments.
        return unsafe { real(fd, address, size) };
    }
    let before = errno();
    let switch = |on: bool| {
        // SAFETY: plain system calls on the caller's descriptor.
        unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFL);
            libc::fcntl(
                fd,
                libc::F_SETFL,
                if on {
                    flags | libc::O_NONBLOCK
                } else {
                    flags & !libc::O_NONBLOCK
                },
            );
        }
    };
    switch(true);
    // SAFETY: the caller's arguments.
    let mut result = unsafe { real(fd, address, size) };
    let mut error = errno();
    if result != 0 && error == libc::EAGAIN {
        // A Unix socket whose backlog is full has no readiness to wait for.
        while result != 0 && error == libc::EAGAIN {
            if park_on(tokio::time::sleep(std::time::Duration::from_millis(2))).is_err() {
                error = libc::ECONNABORTED;
                break;
            }
            // SAFETY: the caller's arguments.
            result = unsafe { real(fd, address, size) };
            error = errno();
        }
    } else if result != 0 && error == libc::EINPROGRESS {
        let waited = wait(fd, false, libc::EINPROGRESS);
        if is_over() {
            error = libc::ECONNABORTED;
        } else if waited {
            let mut length = size_of::<c_int>() as libc::socklen_t;
            let mut status: c_int = 0;
            // SAFETY: `status` has room for `length` bytes.
            unsafe {
                libc::getsockopt(
                    fd,
                    libc::SOL_SOCKET,
                    libc::SO_ERROR,
                    (&raw mut status).cast(),
                    &mut length,
                )
            };
            result = if status == 0 { 0 } else { -1 };
            error = status;
        } else {
            error = errno();
        }
    }
    switch(false);
    set_errno(if result == 0 { before } else { error });
    result
}
