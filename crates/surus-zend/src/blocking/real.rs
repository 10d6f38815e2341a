//! The functions of libc that our hooks replace.

use std::{
    ffi::{c_int, CStr},
    sync::atomic::{AtomicPtr, Ordering},
};

/// A function of libc by name, looked up once.
pub(crate) struct Real {
    name: &'static CStr,
    address: AtomicPtr<libc::c_void>,
}

impl Real {
    pub(crate) const fn new(name: &'static CStr) -> Real {
        Real {
            name,
            address: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// The next definition of the name after the executable's.
    pub(crate) fn address(&self) -> *mut libc::c_void {
        let mut address = self.address.load(Ordering::Relaxed);
        if address.is_null() {
            // SAFETY: a NUL-terminated name.
            address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
            self.address.store(address, Ordering::Relaxed);
        }
        address
    }
}

/// `real!(name: fn(types) -> type)(arguments)` calls libc's function.
macro_rules! real {
    ($name:ident : $type:ty) => {{
        static REAL: $crate::blocking::real::Real = $crate::blocking::real::Real::new(
            // SAFETY: concat! ends the name with a NUL and has none inside.
            unsafe {
                std::ffi::CStr::from_bytes_with_nul_unchecked(
                    concat!(stringify!($name), "\0").as_bytes(),
                )
            },
        );
        // SAFETY: the name and the type belong together; every name is in libc.
        unsafe { std::mem::transmute::<*mut libc::c_void, $type>(REAL.address()) }
    }};
}
pub(crate) use real;

pub(crate) fn errno() -> c_int {
    // SAFETY: the calling thread's errno. Never cached over a switch.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn set_errno(value: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value };
}
