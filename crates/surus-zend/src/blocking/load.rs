//! `dlopen`: PHP loads extensions with `RTLD_DEEPBIND`, which would hide the executable's symbols from them and from
//! their dependencies. Without the flag they find our hooks.

use std::ffi::{c_char, c_int, c_void};

use super::real::real;

#[no_mangle]
unsafe extern "C" fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void {
    let dlopen = real!(dlopen: unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void);
    // SAFETY: the caller's arguments, less one flag.
    unsafe { dlopen(file, flags & !libc::RTLD_DEEPBIND) }
}
