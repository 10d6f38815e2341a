//! `getaddrinfo`, for connections to a name. glibc queries name servers with internal calls: so it runs on a helper
//! thread.
//!
//! (libcurl has its own resolver, and waits for it in `poll`.)

use std::{
    ffi::{c_char, c_int, CStr, CString},
    mem::MaybeUninit,
    net::IpAddr,
    ptr::{null, null_mut},
};

use libc::addrinfo;

use super::{
    can_park,
    helper::{on_helper, EnvironmentRead},
    real::{errno, real, set_errno},
    Cancelled,
};

type Lookup = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const addrinfo,
    *mut *mut addrinfo,
) -> c_int;

/// The fields of the caller's `hints` that are used.
#[derive(Clone, Copy)]
struct Hints {
    flags: c_int,
    family: c_int,
    kind: c_int,
    protocol: c_int,
}

/// An answer; its list is freed unless it is taken.
struct LookupResult {
    result: c_int,
    errno: c_int,
    list: *mut addrinfo,
}

// SAFETY: the list is memory of libc, owned by this value, on any thread.
unsafe impl Send for LookupResult {}

impl Drop for LookupResult {
    fn drop(&mut self) {
        if !self.list.is_null() {
            // SAFETY: a list that getaddrinfo has made and nobody has taken.
            unsafe { libc::freeaddrinfo(self.list) };
        }
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
        // Libraries call this from their own threads.
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
    match on_helper(move || ask(real, &node, service.as_ref(), hints)) {
        Ok(mut answer) => {
            set_errno(answer.errno);
            // SAFETY: the caller's place for the list.
            unsafe { *list = std::mem::replace(&mut answer.list, null_mut()) };
            answer.result
        }
        Err(Cancelled) => libc::EAI_AGAIN,
    }
}

/// Whether it is an IP address, which needs no name server.
pub(super) fn is_address(node: &CStr) -> bool {
    node.to_str()
        .is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

/// On a helper thread.
fn ask(
    real: Lookup,
    node: &CString,
    service: Option<&CString>,
    hints: Option<Hints>,
) -> LookupResult {
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
    LookupResult {
        result,
        errno: errno(),
        list,
    }
}
