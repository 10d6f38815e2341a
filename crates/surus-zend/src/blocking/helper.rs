//! Calls that go to a helper thread as a whole, because libc waits in system calls of its own, which no hook sees.
//!
//! The thread sees copies of the arguments and nothing of PHP.

use std::{ffi::c_uint, mem::MaybeUninit, ptr::null_mut};

use super::{park_on, Cancelled};
use crate::ffi;

/// Does `work` on a helper thread and parks until it is done. If the request is to end first, the work goes on and its
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
        // The event loop ends, or the request is to.
        Ok(Err(_)) | Err(_) => Err(Cancelled),
    }
}

/// libc looks into the environment, which requests change: nothing of it is freed meanwhile.
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

/// Signals are for the thread that runs PHP.
pub(crate) fn block_signals() {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is filled before it is used.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), null_mut());
    }
}
