//! Locks by name for PHP: `csrc/state/lock.c`.

use std::{
    ffi::{c_int, c_void},
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use super::exchange;
use crate::{
    blocking::{can_park, park_on},
    ffi::{self, Str},
    shared::locks::{Lock, NoClaim},
};

/// About ten years; more is no time for a timer.
const LONGEST: f64 = 3e8;

#[no_mangle]
unsafe extern "C" fn surus_rs_lock(
    raw: *mut c_void,
    name: Str,
    seconds: f64,
    number: *mut u64,
) -> c_int {
    // SAFETY: C passes readable bytes.
    let name = unsafe { name.bytes() };
    let seconds = if seconds > 0.0 {
        seconds.min(LONGEST)
    } else {
        0.0
    };
    let take = Lock::take(name, Duration::ZERO);
    let mut taken = at_once(take);
    if seconds > 0.0 && matches!(taken, Ok(None)) {
        if !can_park() {
            return ffi::LOCK_CANNOT_WAIT;
        }
        taken = match park_on(Lock::take(name, Duration::from_secs_f64(seconds))) {
            Ok(taken) => taken,
            Err(_) => return ffi::LOCK_CUT,
        };
    }
    match taken {
        Ok(Some(lock)) => {
            // SAFETY: C passes the running task's exchange, and a place for the answer.
            unsafe { number.write(exchange(raw).locks.add(lock)) };
            ffi::LOCK_TAKEN
        }
        Ok(None) => ffi::LOCK_BUSY,
        Err(NoClaim::TooMany) => ffi::LOCK_TOO_MANY,
        Err(NoClaim::Unavailable) => ffi::LOCK_UNAVAILABLE,
    }
}

/// A future that does not wait.
fn at_once<T>(
    future: impl Future<Output = Result<Option<T>, NoClaim>>,
) -> Result<Option<T>, NoClaim> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Ok(None),
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_unlock(raw: *mut c_void, number: u64) -> bool {
    // SAFETY: C passes the running task's exchange.
    unsafe { exchange(raw) }.locks.take(number).is_some()
}
