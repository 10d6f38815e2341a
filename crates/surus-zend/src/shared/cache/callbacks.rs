//! Functions that C calls.

use std::{cell::RefCell, ffi::c_int};

use super::Value;
use crate::ffi::Str;

thread_local! {
    static LAST: RefCell<Option<Value>> = const { RefCell::new(None) };
}

#[no_mangle]
unsafe extern "C" fn surus_rs_cache_read(
    key: Str,
    now: i64,
    value: *mut Str,
    kind: *mut c_int,
) -> bool {
    // SAFETY: C passes readable bytes, and places for the answer, which stays valid until the next call.
    unsafe {
        let found = super::read(key.bytes(), nanoseconds(now));
        LAST.with_borrow_mut(|last| {
            *last = found;
            let Some(found) = last else { return false };
            value.write(Str::new(&found.bytes));
            kind.write(found.kind.into());
            true
        })
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_cache_write(key: Str, value: Str, kind: c_int, until: i64) -> bool {
    // SAFETY: C passes readable bytes.
    unsafe {
        let kind = u8::try_from(kind).unwrap_or(u8::MAX);
        super::write(key.bytes(), kind, value.bytes(), nanoseconds(until))
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_cache_remove(key: Str) -> bool {
    // SAFETY: as above.
    super::remove(unsafe { key.bytes() })
}

#[no_mangle]
unsafe extern "C" fn surus_rs_cache_clear(prefix: Str) -> bool {
    // SAFETY: as above.
    super::clear(unsafe { prefix.bytes() })
}

fn nanoseconds(time: i64) -> u64 {
    u64::try_from(time).unwrap_or(0)
}
