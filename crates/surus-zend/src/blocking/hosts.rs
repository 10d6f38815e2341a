//! `gethostbyname_r` and `getnameinfo`, with which PHP's own functions look up hosts, on a helper thread.

use std::{
    ffi::{c_char, c_int, CStr, CString},
    mem::{size_of, MaybeUninit},
    ptr::{copy_nonoverlapping, null_mut},
};

use libc::{hostent, sockaddr, socklen_t};

use super::{
    can_park,
    helper::{on_helper, EnvironmentRead},
    names::is_address,
    real::{errno, real, set_errno},
    Cancelled,
};

type ByName = unsafe extern "C" fn(
    *const c_char,
    *mut hostent,
    *mut c_char,
    usize,
    *mut *mut hostent,
    *mut c_int,
) -> c_int;

type NameInfo = unsafe extern "C" fn(
    *const sockaddr,
    socklen_t,
    *mut c_char,
    socklen_t,
    *mut c_char,
    socklen_t,
    c_int,
) -> c_int;

/// `TRY_AGAIN` of netdb.h: the lookup may be repeated.
const TRY_AGAIN: c_int = 2;
/// More bytes than the names and addresses of any host need.
const LARGEST_ANSWER: usize = 1 << 20;

/// A host, as plain bytes.
struct Host {
    name: CString,
    aliases: Vec<CString>,
    kind: c_int,
    /// Bytes of each address.
    length: usize,
    addresses: Vec<Vec<u8>>,
}

struct LookupResult {
    result: c_int,
    host_error: c_int,
    host: Option<Host>,
}

#[no_mangle]
unsafe extern "C" fn gethostbyname_r(
    name: *const c_char,
    host: *mut hostent,
    buffer: *mut c_char,
    size: usize,
    found: *mut *mut hostent,
    host_error: *mut c_int,
) -> c_int {
    let real = real!(gethostbyname_r: ByName);
    // SAFETY: the caller's string.
    if is_address(unsafe { CStr::from_ptr(name) }) || !can_park() {
        let _reading = EnvironmentRead::begin();
        // SAFETY: the caller's arguments.
        return unsafe { real(name, host, buffer, size, found, host_error) };
    }
    // SAFETY: the caller's string.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    let answer = on_helper(move || ask_by_name(real, &name)).unwrap_or(LookupResult {
        result: libc::EAGAIN,
        host_error: TRY_AGAIN,
        host: None,
    });
    let mut result = answer.result;
    // SAFETY: the caller's places for the answer, and `size` bytes for what it points to.
    unsafe {
        *found = null_mut();
        *host_error = answer.host_error;
        if let Some(known) = answer.host {
            result = if store(&known, host, buffer, size) {
                *found = host;
                0
            } else {
                libc::ERANGE
            };
        }
    }
    result
}

/// On a helper thread.
fn ask_by_name(real: ByName, name: &CStr) -> LookupResult {
    let mut room = 4096;
    loop {
        let mut buffer = vec![0 as c_char; room];
        let mut host = MaybeUninit::<hostent>::uninit();
        let (mut found, mut host_error) = (null_mut(), 0);
        // SAFETY: a string and places of the sizes that libc requires.
        let result = unsafe {
            real(
                name.as_ptr(),
                host.as_mut_ptr(),
                buffer.as_mut_ptr(),
                room,
                &mut found,
                &mut host_error,
            )
        };
        if result == libc::ERANGE && room < LARGEST_ANSWER {
            room *= 2;
            continue;
        }
        return LookupResult {
            result,
            host_error,
            // SAFETY: NULL, or what libc has filled; its pointers lead into `buffer`.
            host: unsafe { found.as_ref().map(|it| read(it)) },
        };
    }
}

/// # Safety
/// `host` was filled by libc.
unsafe fn read(host: &hostent) -> Host {
    let length = host.h_length as usize;
    // SAFETY: the caller's promise: a string, and two lists that end with NULL.
    unsafe {
        Host {
            name: CStr::from_ptr(host.h_name).to_owned(),
            aliases: list(host.h_aliases)
                .map(|it| CStr::from_ptr(it).to_owned())
                .collect(),
            kind: host.h_addrtype,
            length,
            addresses: list(host.h_addr_list)
                .map(|it| std::slice::from_raw_parts(it.cast::<u8>(), length).to_vec())
                .collect(),
        }
    }
}

/// # Safety
/// `first` is NULL or a list that ends with NULL, and stays as long as the iterator.
unsafe fn list(first: *mut *mut c_char) -> impl Iterator<Item = *mut c_char> {
    (0..)
        // SAFETY: the caller's promise; the iterator ends with the list.
        .map(move |at| unsafe {
            if first.is_null() {
                null_mut()
            } else {
                *first.add(at)
            }
        })
        .take_while(|it| !it.is_null())
}

/// Writes a host as libc does: the structure, and the data that it points to in `buffer`. False if that is too short.
///
/// # Safety
/// `host` and `size` bytes at `buffer` are writable.
unsafe fn store(known: &Host, host: *mut hostent, buffer: *mut c_char, size: usize) -> bool {
    let pointers = known.aliases.len() + 1 + known.addresses.len() + 1;
    let texts = std::iter::once(&known.name).chain(&known.aliases);
    let bytes = known.addresses.len() * known.length
        + texts.map(|it| it.as_bytes_with_nul().len()).sum::<usize>();
    let start = buffer.align_offset(align_of::<*mut c_char>());
    if start + pointers * size_of::<*mut c_char>() + bytes > size {
        return false;
    }
    // SAFETY: everything that is written was counted above and fits: first the two lists, then the data that they point
    // to. Addresses come before strings, so that they are aligned.
    unsafe {
        let aliases = buffer.add(start).cast::<*mut c_char>();
        let addresses = aliases.add(known.aliases.len() + 1);
        let mut next = aliases.add(pointers).cast::<c_char>();
        let mut place = |bytes: &[u8]| {
            let at = next;
            copy_nonoverlapping(bytes.as_ptr(), at.cast(), bytes.len());
            next = at.add(bytes.len());
            at
        };
        for (at, address) in known.addresses.iter().enumerate() {
            addresses.add(at).write(place(address));
        }
        addresses.add(known.addresses.len()).write(null_mut());
        let name = place(known.name.as_bytes_with_nul());
        for (at, alias) in known.aliases.iter().enumerate() {
            aliases.add(at).write(place(alias.as_bytes_with_nul()));
        }
        aliases.add(known.aliases.len()).write(null_mut());
        host.write(hostent {
            h_name: name,
            h_aliases: aliases,
            h_addrtype: known.kind,
            h_length: known.length as c_int,
            h_addr_list: addresses,
        });
    }
    true
}

#[no_mangle]
unsafe extern "C" fn getnameinfo(
    address: *const sockaddr,
    size: socklen_t,
    host: *mut c_char,
    host_size: socklen_t,
    service: *mut c_char,
    service_size: socklen_t,
    flags: c_int,
) -> c_int {
    let real = real!(getnameinfo: NameInfo);
    let asks_nobody = host.is_null() || host_size == 0 || flags & libc::NI_NUMERICHOST != 0;
    if asks_nobody || address.is_null() || !can_park() {
        let _reading = EnvironmentRead::begin();
        // SAFETY: the caller's arguments.
        return unsafe { real(address, size, host, host_size, service, service_size, flags) };
    }
    // SAFETY: the caller's address of `size` bytes.
    let address =
        unsafe { std::slice::from_raw_parts(address.cast::<u8>(), size as usize) }.to_vec();
    let service_room = if service.is_null() { 0 } else { service_size };
    let answer = on_helper(move || {
        // Aligned as every sockaddr is.
        let mut aligned = vec![0_u64; address.len().div_ceil(8)];
        let mut texts = (
            vec![0_u8; host_size as usize],
            vec![0_u8; service_room as usize],
        );
        // SAFETY: copies of the caller's arguments, each as long as it is said to be.
        let result = unsafe {
            copy_nonoverlapping(address.as_ptr(), aligned.as_mut_ptr().cast(), address.len());
            real(
                aligned.as_ptr().cast(),
                size,
                texts.0.as_mut_ptr().cast(),
                host_size,
                if service_room == 0 {
                    null_mut()
                } else {
                    texts.1.as_mut_ptr().cast()
                },
                service_room,
                flags,
            )
        };
        (result, errno(), texts)
    });
    match answer {
        Ok((result, error, texts)) => {
            if result == 0 {
                // SAFETY: the caller's places, which are as long as the copies.
                unsafe {
                    copy_nonoverlapping(texts.0.as_ptr(), host.cast(), texts.0.len());
                    if service_room > 0 {
                        copy_nonoverlapping(texts.1.as_ptr(), service.cast(), texts.1.len());
                    }
                }
            } else if result == libc::EAI_SYSTEM {
                set_errno(error);
            }
            result
        }
        Err(Cancelled) => libc::EAI_AGAIN,
    }
}
