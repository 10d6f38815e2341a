//! Waiting for locks of C libraries that another request of this thread holds: `csrc/task/locks.c` has the hooks.
//!
//! Such a call cannot fail, so the wait continues even if its request must end. The request that holds the lock is
//! cancelled as well when it takes too long, and then releases it.

use tokio::sync::Notify;

use super::park_always;

thread_local! {
    /// Notified when a lock that a task waits for may be free.
    static RELEASED: Notify = const { Notify::const_new() };
}

/// Returns when a lock was released, or the request was cancelled: the caller checks again.
#[no_mangle]
extern "C" fn surus_rs_wait_for_lock() {
    RELEASED.with(|released| park_always(released.notified()));
}

#[no_mangle]
extern "C" fn surus_rs_lock_is_released() {
    RELEASED.with(Notify::notify_waiters);
}
