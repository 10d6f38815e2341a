//! `recv`, `recvfrom`, `recvmsg`, `recvmmsg`, and what `read` does on sockets.

use std::{
    ffi::{c_int, c_uint, c_void},
    os::fd::RawFd,
    ptr::null_mut,
    time::{Duration, Instant},
};

use super::{
    asking::{state, until_done, Asking},
    can_park,
    descriptor::{is_byte_stream, option, Vectors},
    park_on,
    ready::pause,
    real::{errno, real, set_errno},
    registered::has_received,
};

/// Whether the real call never waits. (Unix sockets ignore `MSG_ERRQUEUE`.)
fn is_at_once(fd: RawFd, flags: c_int) -> bool {
    let is_unix = || option(fd, libc::SOL_SOCKET, libc::SO_DOMAIN) == Some(libc::AF_UNIX);
    flags & (libc::MSG_DONTWAIT | libc::MSG_OOB) != 0
        || (flags & libc::MSG_ERRQUEUE != 0 && !is_unix())
}

/// Receives up to `size` bytes; `attempt` gets the number of bytes received so far, and the flags. With `MSG_WAITALL` a
/// stream waits for all of them, or the end.
pub(super) fn until_received(
    fd: RawFd,
    flags: c_int,
    size: usize,
    mut attempt: impl FnMut(usize, c_int) -> isize,
) -> isize {
    let mut asking = Asking::to_read(fd);
    let flags = flags | libc::MSG_DONTWAIT;
    if flags & libc::MSG_WAITALL == 0 || !is_byte_stream(fd) {
        return until_done(asking, || attempt(0, flags));
    }
    let peeks = flags & libc::MSG_PEEK != 0;
    let mut done = 0;
    loop {
        match usize::try_from(attempt(if peeks { 0 } else { done }, flags)) {
            Ok(count) => {
                done = if peeks { count } else { done + count };
                asking.has_got_on();
                // If this call has received bytes, the next one returns the error.
                let over = libc::POLLERR | libc::POLLHUP | if peeks { libc::POLLRDHUP } else { 0 };
                if count == 0 || done >= size || !asking.waits() || state(fd, over) & over != 0 {
                    break;
                }
                // A peek leaves bytes in the socket, so it is always ready: pause instead.
                if peeks && park_on(pause(None)).is_err() {
                    break;
                }
            }
            Err(_) if asking.wait() => {}
            Err(_) if done > 0 => break,
            Err(_) => return -1,
        }
    }
    asking.succeed(done as isize)
}

#[no_mangle]
unsafe extern "C" fn recv(fd: c_int, buffer: *mut c_void, size: usize, flags: c_int) -> isize {
    let real = real!(recv: unsafe extern "C" fn(c_int, *mut c_void, usize, c_int) -> isize);
    if is_at_once(fd, flags) || !can_park() {
        // SAFETY: the caller's arguments.
        let result = unsafe { real(fd, buffer, size, flags) };
        return has_received(fd, size, flags, result);
    }
    until_received(fd, flags, size, |done, flags| {
        // SAFETY: inside of the caller's buffer; does not wait.
        let result = unsafe { real(fd, buffer.byte_add(done), size - done, flags) };
        has_received(fd, size - done, flags, result)
    })
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

type RecvFrom = unsafe extern "C" fn(
    c_int,
    *mut c_void,
    usize,
    c_int,
    *mut libc::sockaddr,
    *mut libc::socklen_t,
) -> isize;

#[no_mangle]
unsafe extern "C" fn recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    size: usize,
    flags: c_int,
    from: *mut libc::sockaddr,
    from_size: *mut libc::socklen_t,
) -> isize {
    let real = real!(recvfrom: RecvFrom);
    if is_at_once(fd, flags) || !can_park() {
        // SAFETY: the caller's arguments.
        let result = unsafe { real(fd, buffer, size, flags, from, from_size) };
        return has_received(fd, size, flags, result);
    }
    until_received(fd, flags, size, |done, flags| {
        let (from, from_size) = match done {
            0 => (from, from_size),
            _ => (null_mut(), null_mut()), // it has been told
        };
        // SAFETY: inside of the caller's buffer, and its place for the address; does not wait.
        let result = unsafe {
            real(
                fd,
                buffer.byte_add(done),
                size - done,
                flags,
                from,
                from_size,
            )
        };
        has_received(fd, size - done, flags, result)
    })
}

#[no_mangle]
unsafe extern "C" fn __recvfrom_chk(
    fd: c_int,
    buffer: *mut c_void,
    size: usize,
    room: usize,
    flags: c_int,
    from: *mut libc::sockaddr,
    from_size: *mut libc::socklen_t,
) -> isize {
    assert!(size <= room, "buffer overflow in recvfrom");
    // SAFETY: the caller's arguments.
    unsafe { recvfrom(fd, buffer, size, flags, from, from_size) }
}

type RecvMsg = unsafe extern "C" fn(c_int, *mut libc::msghdr, c_int) -> isize;

#[no_mangle]
unsafe extern "C" fn recvmsg(fd: c_int, message: *mut libc::msghdr, flags: c_int) -> isize {
    let real = real!(recvmsg: RecvMsg);
    if is_at_once(fd, flags) || message.is_null() || !can_park() {
        // SAFETY: the caller's arguments.
        let result = unsafe { real(fd, message, flags) };
        return has_received(fd, 0, flags, result);
    }
    // SAFETY: a message with `msg_iovlen` buffers, as libc requires. The kernel changes it only if it receives
    // something.
    let buffers = unsafe { Vectors::new((*message).msg_iov, (*message).msg_iovlen) };
    let size = buffers.size();
    // SAFETY: as above.
    let (room, name_room) = unsafe { ((*message).msg_controllen, (*message).msg_namelen) };
    until_received(fd, flags, size, |done, flags| {
        if done == 0 {
            // SAFETY: the caller's arguments; does not wait. The lengths are reset, since a peek repeats this call.
            let result = unsafe {
                (*message).msg_controllen = room;
                (*message).msg_namelen = name_room;
                real(fd, message, flags)
            };
            return has_received(fd, 0, flags, result);
        }
        // SAFETY: the caller's message.
        let first = unsafe { *message };
        if first.msg_controllen > 0 {
            return 0; // descriptors came with what has come: the kernel stops there as well
        }
        let mut rest = buffers.behind(done);
        let mut next = libc::msghdr {
            msg_name: null_mut(),
            msg_namelen: 0,
            msg_iov: rest.as_mut_ptr(),
            msg_iovlen: rest.len(),
            msg_controllen: room,
            ..first
        };
        // SAFETY: the rest of the caller's buffers, and its room for control data, which is unused; does not wait.
        let count = unsafe { real(fd, &mut next, flags) };
        has_received(fd, 0, flags, count);
        if count >= 0 {
            // SAFETY: the caller's message.
            unsafe {
                (*message).msg_controllen = next.msg_controllen;
                (*message).msg_flags |= next.msg_flags;
            }
        }
        count
    })
}

/// What `read` does on a socket.
pub(super) fn read_socket(fd: RawFd, buffers: &Vectors) -> isize {
    let real = real!(recvmsg: RecvMsg);
    let mut all = buffers.behind(0);
    until_received(fd, 0, buffers.size(), |_, flags| {
        let mut message = message_of(&mut all);
        // SAFETY: the caller's buffers; does not wait.
        let result = unsafe { real(fd, &mut message, flags) };
        has_received(fd, buffers.size(), flags, result)
    })
}

/// A message without address and control data.
pub(super) fn message_of(buffers: &mut [libc::iovec]) -> libc::msghdr {
    libc::msghdr {
        msg_name: null_mut(),
        msg_namelen: 0,
        msg_iov: buffers.as_mut_ptr(),
        msg_iovlen: buffers.len(),
        msg_control: null_mut(),
        msg_controllen: 0,
        msg_flags: 0,
    }
}

type RecvMany =
    unsafe extern "C" fn(c_int, *mut libc::mmsghdr, c_uint, c_int, *mut libc::timespec) -> c_int;

#[no_mangle]
unsafe extern "C" fn recvmmsg(
    fd: c_int,
    messages: *mut libc::mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut libc::timespec,
) -> c_int {
    let real = real!(recvmmsg: RecvMany);
    if is_at_once(fd, flags) || !can_park() {
        // SAFETY: the caller's arguments.
        return unsafe { real(fd, messages, count, flags, timeout) };
    }
    // SAFETY: NULL or a time, as libc requires. It is checked between messages only.
    let until = unsafe { timeout.as_ref() }.map(|time| {
        let time = Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
        Instant::now() + time
    });
    let (mut flags, before) = (flags, errno());
    for number in 0..count {
        // SAFETY: one of the caller's messages.
        let got = unsafe {
            let each = messages.add(number as usize);
            let got = recvmsg(fd, &raw mut (*each).msg_hdr, flags & !libc::MSG_WAITFORONE);
            if got >= 0 {
                (*each).msg_len = got as c_uint;
            }
            got
        };
        if got < 0 && number == 0 {
            return -1;
        }
        if got < 0 {
            set_errno(before);
            return number as c_int;
        }
        if flags & libc::MSG_WAITFORONE != 0 {
            flags |= libc::MSG_DONTWAIT;
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            return number as c_int + 1;
        }
    }
    count as c_int
}
