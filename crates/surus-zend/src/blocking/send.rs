//! `send`, `sendto`, `sendmsg`, `sendmmsg`, and what `write` does on sockets.

use std::{
    ffi::{c_int, c_uint, c_void},
    os::fd::RawFd,
    ptr::null_mut,
};

use super::{
    asking::until_sent,
    can_park,
    descriptor::Vectors,
    real::{errno, real, set_errno},
    receive::message_of,
    sessions::sends,
};

#[no_mangle]
unsafe extern "C" fn send(fd: c_int, buffer: *const c_void, size: usize, flags: c_int) -> isize {
    let real = real!(send: unsafe extern "C" fn(c_int, *const c_void, usize, c_int) -> isize);
    if !buffer.is_null() {
        // SAFETY: the caller's buffer.
        sends(fd, unsafe {
            std::slice::from_raw_parts(buffer.cast(), size)
        });
    }
    if flags & libc::MSG_DONTWAIT != 0 || !can_park() {
        // SAFETY: the caller's arguments.
        return unsafe { real(fd, buffer, size, flags) };
    }
    until_sent(fd, size, |done| {
        // SAFETY: inside of the caller's buffer; does not wait.
        unsafe {
            real(
                fd,
                buffer.byte_add(done),
                size - done,
                flags | libc::MSG_DONTWAIT,
            )
        }
    })
}

type SendTo = unsafe extern "C" fn(
    c_int,
    *const c_void,
    usize,
    c_int,
    *const libc::sockaddr,
    libc::socklen_t,
) -> isize;

#[no_mangle]
unsafe extern "C" fn sendto(
    fd: c_int,
    buffer: *const c_void,
    size: usize,
    flags: c_int,
    to: *const libc::sockaddr,
    to_size: libc::socklen_t,
) -> isize {
    let real = real!(sendto: SendTo);
    if flags & libc::MSG_DONTWAIT != 0 || !can_park() {
        // SAFETY: the caller's arguments.
        return unsafe { real(fd, buffer, size, flags, to, to_size) };
    }
    until_sent(fd, size, |done| {
        let flags = flags | libc::MSG_DONTWAIT;
        // SAFETY: inside of the caller's buffer, and its address; does not wait.
        unsafe { real(fd, buffer.byte_add(done), size - done, flags, to, to_size) }
    })
}

type SendMsg = unsafe extern "C" fn(c_int, *const libc::msghdr, c_int) -> isize;

#[no_mangle]
unsafe extern "C" fn sendmsg(fd: c_int, message: *const libc::msghdr, flags: c_int) -> isize {
    let real = real!(sendmsg: SendMsg);
    if flags & libc::MSG_DONTWAIT != 0 || message.is_null() || !can_park() {
        // SAFETY: the caller's arguments.
        return unsafe { real(fd, message, flags) };
    }
    // SAFETY: a message with `msg_iovlen` buffers, as libc requires.
    let (first, buffers) = unsafe {
        let first = *message;
        (first, Vectors::new(first.msg_iov, first.msg_iovlen))
    };
    until_sent(fd, buffers.size(), |done| {
        let flags = flags | libc::MSG_DONTWAIT;
        if done == 0 {
            // SAFETY: the caller's arguments; does not wait.
            return unsafe { real(fd, message, flags) };
        }
        // Descriptors were sent with the first byte.
        let mut rest = buffers.behind(done);
        let next = libc::msghdr {
            msg_iov: rest.as_mut_ptr(),
            msg_iovlen: rest.len(),
            msg_control: null_mut(),
            msg_controllen: 0,
            ..first
        };
        // SAFETY: the rest of the caller's buffers; does not wait.
        unsafe { real(fd, &next, flags) }
    })
}

/// What `write` does on a socket.
pub(super) fn write_socket(fd: RawFd, buffers: &Vectors) -> isize {
    let real = real!(sendmsg: SendMsg);
    until_sent(fd, buffers.size(), |done| {
        let mut rest = buffers.behind(done);
        let message = message_of(&mut rest);
        // SAFETY: the rest of the caller's buffers, which are only read; does not wait.
        unsafe { real(fd, &message, libc::MSG_DONTWAIT) }
    })
}

type SendMany = unsafe extern "C" fn(c_int, *mut libc::mmsghdr, c_uint, c_int) -> c_int;

#[no_mangle]
unsafe extern "C" fn sendmmsg(
    fd: c_int,
    messages: *mut libc::mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    let real = real!(sendmmsg: SendMany);
    if flags & libc::MSG_DONTWAIT != 0 || !can_park() {
        // SAFETY: the caller's arguments.
        return unsafe { real(fd, messages, count, flags) };
    }
    let before = errno();
    for number in 0..count {
        // SAFETY: one of the caller's messages.
        let sent = unsafe {
            let each = messages.add(number as usize);
            let sent = sendmsg(fd, &raw const (*each).msg_hdr, flags);
            if sent >= 0 {
                (*each).msg_len = sent as c_uint;
            }
            sent
        };
        if sent < 0 && number == 0 {
            return -1;
        }
        if sent < 0 {
            set_errno(before);
            return number as c_int;
        }
    }
    count as c_int
}
