//! `flock`: sessions in files, and PHP's own `flock()` and `LOCK_EX`.
//!
//! Who holds the lock may be a parked request of this very thread: to wait for it in the kernel would be to wait for
//! ever. Nothing tells when a lock becomes free, so a parked task asks again, at growing intervals.
//! (POSIX locks by `fcntl` are the process's: requests of one process never wait for each other there.)

use std::{ffi::c_int, time::Duration};

use super::{
    can_park, park_on,
    real::{errno, real, set_errno},
};

/// Intervals between two tries: short for the usual lock of a few milliseconds, long enough to cost nothing.
const FIRST_DELAY: Duration = Duration::from_millis(1);
const LONGEST_DELAY: Duration = Duration::from_millis(20);

#[no_mangle]
unsafe extern "C" fn flock(fd: c_int, operation: c_int) -> c_int {
    let real = real!(flock: unsafe extern "C" fn(c_int, c_int) -> c_int);
    if operation & (libc::LOCK_NB | libc::LOCK_UN) != 0 || !can_park() {
        // SAFETY: no pointers.
        return unsafe { real(fd, operation) };
    }
    let mut delay = FIRST_DELAY;
    loop {
        // SAFETY: no pointers.
        let result = unsafe { real(fd, operation | libc::LOCK_NB) };
        if result == 0 || errno() != libc::EWOULDBLOCK {
            return result;
        }
        if park_on(tokio::time::sleep(delay)).is_err() {
            // Not EINTR: callers would try again, and the request is to end.
            set_errno(libc::ENOLCK);
            return -1;
        }
        delay = (delay * 2).min(LONGEST_DELAY);
    }
}
