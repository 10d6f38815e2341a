//! Calls that run on a helper thread as a whole, because libc waits in internal system calls, which no hook sees.
//!
//! The thread gets copies of the arguments and does not access PHP.

use std::{ffi::c_uint, mem::MaybeUninit, ptr::null_mut};

use super::{park_on, Cancelled};
use crate::ffi;

/// Does `work` on a helper thread and parks until it is done. If the request must end first, the work continues and its
/// result is dropped.
pub(crate) fn on_helper<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Cancelled> {
    let helper = tokio::task::spawn_blocking(move || {
        block_signals();
        let _reading = EnvironmentRead::begin();
        work()
    });
    match park_on(helper) {
        Ok(Ok(result)) => Ok(result),
        // The event loop ends, or the request must end.
        Ok(Err(_)) | Err(_) => Err(Cancelled),
    }
}

/// While this exists, libc may read the environment: nothing that requests remove from it is freed.
pub(crate) struct EnvironmentRead(c_uint);

impl EnvironmentRead {
    pub(crate) fn begin() -> Self {
        // SAFETY: for every thread.
        EnvironmentRead(unsafe { ffi::surus_env_read_begin() })
    }
}

impl Drop for EnvironmentRead {
    fn drop(&mut self) {
        // SAFETY: ends what `begin` has begun.
        unsafe { ffi::surus_env_read_end(self.0) };
    }
}

/// Only the thread that runs PHP handles signals.
pub(crate) fn block_signals() {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is filled before it is used.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), null_mut());
    }
}
