//! The `surus_rs_*` functions of `csrc/bridge.h`, which C calls on a PHP stack. Those for a single part of the server
//! are in that part: [`crate::serve`], [`crate::shared`], [`crate::blocking`].
//!
//! None of them calls back into Zend, so no `longjmp` can cross them. None holds a borrow of an exchange while it
//! parks. A panic would abort the process at the `extern "C"` boundary; they do not panic.

mod application;
mod body;
mod channels;
mod copies;
mod input;
mod locks;
mod log;
mod notifications;
pub(crate) mod pools;
mod postgres;
mod request;
mod response;
mod signatures;
mod websocket;

use std::ffi::c_void;

use crate::{exchange::Exchange, ffi::Str};

/// # Safety
/// `raw` comes from the running task's assignment; see [`Exchange::from_raw`].
unsafe fn exchange<'a>(raw: *mut c_void) -> &'a Exchange {
    // SAFETY: passed on.
    unsafe { Exchange::from_raw(raw) }
}

/// # Safety
/// `name` and `value` are writable.
unsafe fn store(found: Option<(Str, Str)>, name: *mut Str, value: *mut Str) -> bool {
    let Some((n, v)) = found else { return false };
    // SAFETY: the caller's promise.
    unsafe {
        name.write(n);
        value.write(v);
    }
    true
}
