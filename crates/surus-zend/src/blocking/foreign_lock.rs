//! Waiting for locks of C libraries that another request of this thread holds: `csrc/task/locks.c` has the hooks.
//!
//! Such a call cannot fail, so the wait continues even if its request must end. The request that holds the lock is
//! cancelled as well when it takes too long, and then releases it.

use std::pin::pin;

use tokio::sync::Notify;

use super::{Waiting, PARKED};
use crate::ffi;

thread_local! {
    /// Notified when a lock that a task waits for may be free.
    static RELEASED: Notify = const { Notify::const_new() };
}

/// Returns when a lock was released, or the request was cancelled: the caller checks again.
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
        // SAFETY: the caller has checked that the task may park. A parked task is always resumed before its stack is freed
        // (`Task::drive_watched`): the future leaves the list of `Notify` when it is dropped below.
        unsafe { ffi::surus_park_for_lock() };
        PARKED.set(None);
    });
}

#[no_mangle]
extern "C" fn surus_rs_lock_is_released() {
    RELEASED.with(Notify::notify_waiters);
}
