//! `poll` and `select`.

use std::{
    ffi::c_int,
    os::fd::RawFd,
    time::{Duration, Instant},
};

use super::{
    can_park, park_on,
    ready::{ready_or_pause, Waited},
    real::{errno, real, set_errno},
    registered::{has_bytes, is_empty_now, is_quiet},
    sever::sever_all,
};
use crate::ffi;

type PollFn = unsafe extern "C" fn(*mut libc::pollfd, libc::nfds_t, c_int) -> c_int;

#[no_mangle]
unsafe extern "C" fn poll(fds: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int) -> c_int {
    let real = real!(poll: PollFn);
    if timeout == 0 || !can_park() {
        // SAFETY: the caller's arguments.
        return unsafe { real(fds, count, timeout) };
    }
    let before = errno();
    let until = u64::try_from(timeout)
        .ok()
        .map(|ms| Instant::now() + Duration::from_millis(ms));
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let is_over = left == Some(Duration::ZERO);
        // SAFETY: poll takes `count` structures.
        let known = known_events(unsafe { set_of(fds, count) }).filter(|_| !is_over);
        let now = match known {
            // SAFETY: the caller's arguments; does not wait.
            None => unsafe { real(fds, count, 0) },
            Some(0) => 0,
            Some(events) => {
                // SAFETY: it is the only structure.
                unsafe { (*fds).revents = events };
                1
            }
        };
        if now != 0 {
            if now > 0 {
                set_errno(before);
            }
            return now;
        }
        if is_over {
            set_errno(before);
            return 0;
        }
        // SAFETY: as above; nobody writes to them while the task is parked.
        let set = unsafe { set_of(fds, count) };
        for one in set.iter().filter(|one| one.events & libc::POLLIN != 0) {
            is_empty_now(one.fd);
        }
        let wanted = set.iter().filter(|p| p.fd >= 0).map(|p| {
            let write = p.events & (libc::POLLOUT | libc::POLLWRNORM) != 0;
            (
                p.fd,
                p.events & (libc::POLLIN | libc::POLLPRI | libc::POLLRDNORM) != 0 || !write,
                write,
            )
        });
        let waited = park_on(ready_or_pause(wanted, left));
        if let Ok(Waited::Closed(fd)) = waited {
            // The kernel is not asked again: the number may be another one's.
            set_errno(before);
            // SAFETY: poll takes `count` structures.
            return unsafe { tell_closed(fds, count, fd) };
        }
        if waited.is_err() {
            if sever_all(set.iter().map(|p| p.fd).filter(|fd| *fd >= 0)) {
                // SAFETY: the caller's arguments; does not wait, and finds that the connection has ended.
                let now = unsafe { real(fds, count, 0) };
                if now != 0 {
                    return now;
                }
            }
            // Not EINTR: callers would try again.
            set_errno(libc::ECANCELED);
            return -1;
        }
    }
}

/// # Safety
/// `fds` has `count` structures.
unsafe fn set_of<'a>(fds: *mut libc::pollfd, count: libc::nfds_t) -> &'a [libc::pollfd] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(fds, count as usize) }
}

/// The events of a kept connection, where these are known: 0 if it is quiet. It must be the only one that is waited for,
/// and only for something to read.
fn known_events(set: &[libc::pollfd]) -> Option<i16> {
    let [one] = set else { return None };
    if !is_only_to_read(one) {
        None
    } else if has_bytes(one.fd) {
        Some(libc::POLLIN | one.events & libc::POLLRDNORM)
    } else {
        is_quiet(one.fd).then_some(0)
    }
}

fn is_only_to_read(one: &libc::pollfd) -> bool {
    const READING: i16 = libc::POLLIN | libc::POLLRDNORM | libc::POLLERR | libc::POLLHUP;
    one.events & libc::POLLIN != 0 && one.events & !READING == 0
}

/// The result of poll where nothing is ready and one descriptor is closed.
///
/// # Safety
/// `fds` has `count` structures.
unsafe fn tell_closed(fds: *mut libc::pollfd, count: libc::nfds_t, closed: RawFd) -> c_int {
    // SAFETY: the caller's promise; it is waited for, so there is at least one.
    let set = unsafe { std::slice::from_raw_parts_mut(fds, count as usize) };
    let mut found = 0;
    for one in set {
        one.revents = if one.fd == closed { libc::POLLNVAL } else { 0 };
        found += c_int::from(one.fd == closed);
    }
    found
}

/// Fortified builds call this one.
#[no_mangle]
unsafe extern "C" fn __poll_chk(
    fds: *mut libc::pollfd,
    count: libc::nfds_t,
    timeout: c_int,
    size: usize,
) -> c_int {
    assert!(
        size / size_of::<libc::pollfd>() >= count as usize,
        "buffer overflow in poll"
    );
    // SAFETY: the caller's arguments.
    unsafe { poll(fds, count, timeout) }
}

#[no_mangle]
unsafe extern "C" fn select(
    count: c_int,
    read: *mut libc::fd_set,
    write: *mut libc::fd_set,
    except: *mut libc::fd_set,
    timeout: *mut libc::timeval,
) -> c_int {
    type SelectFn = unsafe extern "C" fn(
        c_int,
        *mut libc::fd_set,
        *mut libc::fd_set,
        *mut libc::fd_set,
        *mut libc::timeval,
    ) -> c_int;
    let real = real!(select: SelectFn);
    // SAFETY: reads the engine's state.
    if unsafe { ffi::surus_select_is_refused() } {
        for set in [read, write, except] {
            // SAFETY: NULL or a set, as libc requires.
            if let Some(set) = unsafe { set.as_mut() } {
                // SAFETY: a set that is there.
                unsafe { libc::FD_ZERO(set) };
            }
        }
        return 0;
    }
    // SAFETY: NULL or a timeval, as libc requires.
    let limit = unsafe { timeout.as_ref() };
    // A timeout of zero, or an invalid one.
    let at_once =
        |t: &libc::timeval| t.tv_sec < 0 || t.tv_usec < 0 || (t.tv_sec == 0 && t.tv_usec == 0);
    if limit.is_some_and(at_once) || !can_park() {
        // SAFETY: the caller's arguments.
        return unsafe { real(count, read, write, except, timeout) };
    }
    let before = errno();
    let until = limit.map(|t| {
        Instant::now()
            + Duration::from_secs(t.tv_sec as u64)
            + Duration::from_micros(t.tv_usec as u64)
    });
    // SAFETY: each is NULL or a set, as libc requires. Copied, since select overwrites them.
    let wanted = unsafe {
        (
            read.as_ref().copied(),
            write.as_ref().copied(),
            except.as_ref().copied(),
        )
    };
    loop {
        let mut now = libc::timeval {
            tv_sec: 0,
            tv_usec: 0,
        };
        // SAFETY: the caller's sets, with the requested descriptors; does not wait.
        let result = unsafe { real(count, read, write, except, &mut now) };
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if result != 0 || left == Some(Duration::ZERO) {
            if result >= 0 {
                set_errno(before);
            }
            if !timeout.is_null() {
                let left = left.unwrap_or_default();
                // SAFETY: the caller's timeval; Linux stores what is left.
                unsafe {
                    timeout.write(libc::timeval {
                        tv_sec: left.as_secs() as i64,
                        tv_usec: i64::from(left.subsec_micros()),
                    })
                };
            }
            return result;
        }
        let has = |set: &Option<libc::fd_set>, fd: RawFd| {
            // SAFETY: `fd` is below FD_SETSIZE, as `count` is.
            set.as_ref()
                .is_some_and(|set| unsafe { libc::FD_ISSET(fd, set) })
        };
        for (target, source) in [(read, wanted.0), (write, wanted.1), (except, wanted.2)] {
            if let Some(source) = source {
                // SAFETY: not NULL, since there was a set in it.
                unsafe { target.write(source) };
            }
        }
        let descriptors = || {
            (0..count.min(libc::FD_SETSIZE as c_int)).filter_map(|fd| {
                let (r, w, e) = (has(&wanted.0, fd), has(&wanted.1, fd), has(&wanted.2, fd));
                (r || w || e).then_some((fd, r || e, w))
            })
        };
        for (fd, ..) in descriptors().filter(|(fd, ..)| has(&wanted.0, *fd)) {
            is_empty_now(fd);
        }
        let waited = park_on(ready_or_pause(descriptors(), left));
        if let Ok(Waited::Closed(_)) = waited {
            set_errno(libc::EBADF);
            return -1;
        }
        if waited.is_err() {
            if sever_all(descriptors().map(|(fd, ..)| fd)) {
                // SAFETY: the caller's sets, with the requested descriptors; does not wait, and finds that the
                // connection has ended.
                let now = unsafe { real(count, read, write, except, &mut now) };
                if now != 0 {
                    return now;
                }
            }
            // Not EINTR: callers would try again.
            set_errno(libc::ECANCELED);
            return -1;
        }
    }
}
