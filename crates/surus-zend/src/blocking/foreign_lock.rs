//! Waiting for locks of C libraries that another request of this thread holds: `csrc/task/locks.c` has the hooks.
//!
//! Such a call cannot fail, so the wait goes on when its request is to end. Who holds the lock is told to end as well when
//! it takes too long, and gives it back.

use std::pin::pin;

use tokio::sync::Notify;

use super::{Waiting, PARKED};
use crate::ffi;

thread_local! {
    /// Some lock that somebody waits for may have become free.
    static RELEASED: Notify = const { Notify::const_new() };
}

/// Returns when something was released, or the request was told to end: the caller looks again.
#[no_mangle]
extern "C" fn surus_rs_wait_for_lock() {
    RELEASED.with(|released| {
        let mut waiting = pin!(released.notified());
        let mut waiting = pin!(async { waiting.as_mut().await });
        let pointer: *mut Waiting<'_> = std::ptr::from_mut(unsafe {
            // SAFETY: the future is not moved; only a pinned reference is made from the pointer.
            waiting.as_mut().get_unchecked_mut()
        });
        // SAFETY: only the lifetime changes. The future lives on the parked stack until the task is resumed.
        PARKED.set(Some(unsafe {
            std::mem::transmute::<*mut Waiting<'_>, *mut Waiting<'static>>(pointer)
        }));
        // SAFETY: the caller has asked whether the engine may be left. A parked task is always resumed, or its stack is
        // given up, whose waiting future then is not polled again: what `Notify` knows of it stays where it is.
        unsafe { ffi::surus_park_for_lock() };
        PARKED.set(None);
    });
}

#[no_mangle]
extern "C" fn surus_rs_lock_is_released() {
    RELEASED.with(Notify::notify_waiters);
}
