//! `connect`, `accept`, `accept4`.

use std::{ffi::c_int, os::fd::RawFd};

use super::{
    asking::{at_once, until_done, Asking},
    can_park,
    descriptor::{is_nonblocking, option},
    real::{errno, real, set_errno},
    registered::forget,
    sever::is_over,
};

type Connect = unsafe extern "C" fn(c_int, *const libc::sockaddr, libc::socklen_t) -> c_int;

#[no_mangle]
unsafe extern "C" fn connect(
    fd: c_int,
    address: *const libc::sockaddr,
    size: libc::socklen_t,
) -> c_int {
    let real = real!(connect: Connect);
    forget(fd);
    if is_over() {
        set_errno(libc::ECONNABORTED);
        return -1;
    }
    if !can_park() || is_nonblocking(fd) {
        // SAFETY: the caller's arguments.
        return unsafe { real(fd, address, size) };
    }
    let mut asking = Asking::to_write(fd);
    let mut began = false;
    loop {
        // SAFETY: the caller's arguments; does not wait.
        let mut result = at_once(fd, || unsafe { real(fd, address, size) });
        if result != 0 && began && errno() == libc::EISCONN {
            result = 0;
        }
        if result == 0 {
            return asking.succeed(0) as c_int;
        }
        let is_on_its_way = matches!(errno(), libc::EINPROGRESS | libc::EALREADY);
        // EAGAIN: a Unix socket whose backlog is full.
        if !is_on_its_way && errno() != libc::EAGAIN {
            return -1;
        }
        began |= is_on_its_way;
        let timeout = if is_on_its_way {
            libc::EINPROGRESS
        } else {
            libc::EAGAIN
        };
        let goes_on = asking.park(timeout);
        if is_over() {
            set_errno(libc::ECONNABORTED);
            return -1;
        }
        if !goes_on {
            return -1;
        }
        if is_on_its_way && !tells_by_connect(fd) {
            return match option(fd, libc::SOL_SOCKET, libc::SO_ERROR) {
                Some(0) => asking.succeed(0) as c_int,
                Some(error) => {
                    set_errno(error);
                    -1
                }
                None => -1,
            };
        }
    }
}

/// Whether a second connect() returns the result of the first one, and leaves the socket as a blocking call does: after
/// a refusal it can be tried again. Other protocols would start a new attempt.
fn tells_by_connect(fd: RawFd) -> bool {
    option(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL) == Some(libc::IPPROTO_TCP)
}

/// Programs that PHP starts, perhaps for another request, do not inherit the connection.
#[no_mangle]
unsafe extern "C" fn accept(
    fd: c_int,
    address: *mut libc::sockaddr,
    size: *mut libc::socklen_t,
) -> c_int {
    let real = real!(accept4: Accept4);
    // SAFETY: the caller's arguments.
    let attempt = || unsafe { real(fd, address, size, libc::SOCK_CLOEXEC) };
    accept_with(fd, attempt)
}

type Accept4 =
    unsafe extern "C" fn(c_int, *mut libc::sockaddr, *mut libc::socklen_t, c_int) -> c_int;

#[no_mangle]
unsafe extern "C" fn accept4(
    fd: c_int,
    address: *mut libc::sockaddr,
    size: *mut libc::socklen_t,
    flags: c_int,
) -> c_int {
    let real = real!(accept4: Accept4);
    // SAFETY: the caller's arguments.
    let attempt = || unsafe { real(fd, address, size, flags) };
    accept_with(fd, attempt)
}

/// Another request, or a process that shares the socket, may accept the connection first.
fn accept_with(fd: RawFd, attempt: impl Fn() -> c_int) -> c_int {
    let accepted = if !can_park() || is_nonblocking(fd) {
        attempt()
    } else {
        until_done(Asking::to_read(fd), || at_once(fd, &attempt) as isize) as c_int
    };
    forget(accepted);
    accepted
}
