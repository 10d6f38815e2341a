//! Waiting for what the event loop knows nothing of: others run for a while, and the caller looks again.

use std::{ffi::c_uint, time::Duration};

use super::park_on;

const LONGEST: Duration = Duration::from_millis(10);

/// Lets others run for one to ten milliseconds, the longer the more `tries` there were. False: the request is to end.
pub(crate) fn pause(tries: u32) -> bool {
    let time = Duration::from_millis(u64::from(tries) + 1).min(LONGEST);
    park_on(tokio::time::sleep(time)).is_ok()
}

#[no_mangle]
extern "C" fn surus_rs_pause(tries: c_uint) -> bool {
    pause(tries)
}
