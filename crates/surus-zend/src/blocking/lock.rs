//! `flock`: sessions in files, and PHP's own `flock()` and `LOCK_EX`. Also the wait of `fcntl(F_SETLKW)` by libraries
//! that lock files, whose hook is in `csrc/hidden/opcache_locks.c`.
//!
//! The lock may be held by a parked request of this thread: a wait in the kernel would never end. Nothing notifies when
//! a lock becomes free, so a parked task tries again at growing intervals. (POSIX locks by `fcntl` belong to the
//! process: requests of one process never wait for each other there.)

use std::{
    ffi::{c_int, c_uint},
    time::Duration,
};

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
    for tries in 0.. {
        // SAFETY: no pointers.
        let result = unsafe { real(fd, operation | libc::LOCK_NB) };
        if result == 0 || errno() != libc::EWOULDBLOCK {
            return result;
        }
        if !nap(tries) {
            break;
        }
    }
    // Not EINTR: callers would try again, but the request must end.
    set_errno(libc::ENOLCK);
    -1
}

/// Waits between two tries; false if the request must end.
fn nap(tries: u32) -> bool {
    let delay = FIRST_DELAY * 2u32.pow(tries.min(8));
    park_on(tokio::time::sleep(delay.min(LONGEST_DELAY))).is_ok()
}

#[no_mangle]
extern "C" fn surus_rs_nap_for_lock(tries: c_uint) -> bool {
    nap(tries)
}
