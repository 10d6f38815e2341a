//! Waiting for events that the event loop cannot watch: other tasks run for a while, and the caller checks again.

use std::{ffi::c_uint, time::Duration};

use super::park_on;

const LONGEST: Duration = Duration::from_millis(10);

/// Lets other tasks run for one to ten milliseconds, longer after more `tries`. False: the request must end.
pub(crate) fn pause(tries: u32) -> bool {
    let time = Duration::from_millis(u64::from(tries) + 1).min(LONGEST);
    park_on(tokio::time::sleep(time)).is_ok()
}

#[no_mangle]
extern "C" fn surus_rs_pause(tries: c_uint) -> bool {
    pause(tries)
}
