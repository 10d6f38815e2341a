//! `getaddrinfo`: who connects to a name. glibc asks name servers with calls of its own, which no hook sees, so the whole
//! lookup goes to a helper thread. It sees copies of the arguments and nothing of PHP.
//!
//! (libcurl has a resolver of its own kind, and waits for it in `poll`.)

use std::{
    ffi::{c_char, c_int, c_uint, CStr, CString},
    mem::MaybeUninit,
    net::IpAddr,
    ptr::{null, null_mut},
};

use libc::addrinfo;

use crate::ffi;

use super::{
    can_park, park_on,
    real::{errno, real, set_errno},
};

type Lookup = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const addrinfo,
    *mut *mut addrinfo,
) -> c_int;

/// What a caller wants to be told: the fields of `hints` that count.
#[derive(Clone, Copy)]
struct Hints {
    flags: c_int,
    family: c_int,
    kind: c_int,
    protocol: c_int,
}

/// An answer; its list is freed unless somebody takes it.
struct Answer {
    result: c_int,
    errno: c_int,
    list: *mut addrinfo,
}

// SAFETY: the list is memory of libc's, which belongs to who holds it, whatever the thread.
unsafe impl Send for Answer {}

impl Drop for Answer {
    fn drop(&mut self) {
        if !self.list.is_null() {
            // SAFETY: a list that getaddrinfo has made and nobody has taken.
            unsafe { libc::freeaddrinfo(self.list) };
        }
    }
}

/// A lookup looks into the environment, which requests change: nothing of it is freed meanwhile.
struct EnvironmentRead(c_uint);

impl EnvironmentRead {
    fn begin() -> Self {
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

#[no_mangle]
unsafe extern "C" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    list: *mut *mut addrinfo,
) -> c_int {
    let real = real!(getaddrinfo: Lookup);
    // SAFETY: the caller's arguments: a string or NULL.
    if node.is_null() || is_address(unsafe { CStr::from_ptr(node) }) || !can_park() {
        // Libraries call from threads of their own.
        let _reading = EnvironmentRead::begin();
        // SAFETY: the caller's arguments.
        return unsafe { real(node, service, hints, list) };
    }
    // SAFETY: the caller's arguments: strings, and a structure or NULL.
    let (node, service, hints) = unsafe {
        (
            CStr::from_ptr(node).to_owned(),
            (!service.is_null()).then(|| CStr::from_ptr(service).to_owned()),
            hints.as_ref().map(|hints| Hints {
                flags: hints.ai_flags,
                family: hints.ai_family,
                kind: hints.ai_socktype,
                protocol: hints.ai_protocol,
            }),
        )
    };
    let lookup = tokio::task::spawn_blocking(move || ask(real, &node, service.as_ref(), hints));
    match park_on(lookup) {
        Ok(Ok(mut answer)) => {
            set_errno(answer.errno);
            // SAFETY: the caller's place for the list.
            unsafe { *list = std::mem::replace(&mut answer.list, null_mut()) };
            answer.result
        }
        // The request is to end, or the event loop does.
        Ok(Err(_)) | Err(_) => libc::EAI_AGAIN,
    }
}

/// What needs no name server.
fn is_address(node: &CStr) -> bool {
    node.to_str()
        .is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

/// On a helper thread.
fn ask(real: Lookup, node: &CString, service: Option<&CString>, hints: Option<Hints>) -> Answer {
    block_signals();
    let _reading = EnvironmentRead::begin();
    let mut list = null_mut();
    // SAFETY: an addrinfo of zeros is a valid one, without any hint.
    let mut wanted: addrinfo = unsafe { MaybeUninit::zeroed().assume_init() };
    if let Some(hints) = hints {
        wanted.ai_flags = hints.flags;
        wanted.ai_family = hints.family;
        wanted.ai_socktype = hints.kind;
        wanted.ai_protocol = hints.protocol;
    }
    // SAFETY: NUL-terminated strings or NULL, a structure or NULL, and a place for the list.
    let result = unsafe {
        real(
            node.as_ptr(),
            service.map_or(null(), |service| service.as_ptr()),
            hints.as_ref().map_or(null(), |_| &raw const wanted),
            &mut list,
        )
    };
    Answer {
        result,
        errno: errno(),
        list,
    }
}

/// Signals are for the thread that runs PHP.
fn block_signals() {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is filled before it is used.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), null_mut());
    }
}
