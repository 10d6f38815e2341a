//! `res_nsearch`, with which PHP's `dns_get_record()`, `checkdnsrr()` and `getmxrr()` query name servers, on a helper
//! thread.
//!
//! A resolver's state has sockets and is in lists of libc: the thread makes a state of its own, with the caller's
//! settings (`csrc/os/resolver.c`).

use std::{
    ffi::{c_char, c_int, c_uchar, c_void, CStr},
    mem::MaybeUninit,
    ptr::copy_nonoverlapping,
};

use super::{
    can_park,
    helper::{on_helper, EnvironmentRead},
    real::{errno, real, set_errno},
};
use crate::ffi;

/// `TRY_AGAIN` of netdb.h: the lookup may be repeated.
const TRY_AGAIN: c_int = 2;

#[no_mangle]
unsafe extern "C" fn res_nsearch(
    state: *mut c_void,
    name: *const c_char,
    class: c_int,
    kind: c_int,
    answer: *mut c_uchar,
    size: c_int,
) -> c_int {
    let real = real!(res_nsearch: ffi::ResolverCall);
    if !can_park() {
        let _reading = EnvironmentRead::begin();
        // SAFETY: the caller's arguments.
        return unsafe { real(state, name, class, kind, answer, size) };
    }
    let mut settings = MaybeUninit::uninit();
    // SAFETY: the caller's state and string.
    let (settings, name) = unsafe {
        ffi::surus_resolver_settings(state, settings.as_mut_ptr());
        (settings.assume_init(), CStr::from_ptr(name).to_owned())
    };
    let room = usize::try_from(size).unwrap_or(0);
    let found = on_helper(move || {
        let mut bytes = vec![0_u8; room];
        let mut host_error = 0;
        // SAFETY: copies, and a place of `size` bytes.
        let length = unsafe {
            ffi::surus_resolver_search(
                real,
                &settings,
                name.as_ptr(),
                class,
                kind,
                bytes.as_mut_ptr(),
                size,
                &mut host_error,
            )
        };
        (length, bytes, host_error, errno())
    });
    let (length, bytes, host_error, error) =
        found.unwrap_or((-1, Vec::new(), TRY_AGAIN, libc::ECANCELED));
    // A longer answer is cut off, and its whole length returned.
    let written = usize::try_from(length).unwrap_or(0).min(bytes.len());
    // SAFETY: `size` bytes are the caller's; the state is, too.
    unsafe {
        copy_nonoverlapping(bytes.as_ptr(), answer, written);
        ffi::surus_resolver_tell(state, host_error);
    }
    if length < 0 {
        set_errno(error);
    }
    length
}
