//! Data of a request for C.

use std::ffi::{c_int, c_void};

use http::{HeaderName, HeaderValue};

use super::{exchange, store};
use crate::ffi::{RequestInfo, Str};

#[no_mangle]
unsafe extern "C" fn surus_rs_request_info(raw: *mut c_void, info: *mut RequestInfo) {
    // SAFETY: C passes the running task's exchange and a place for the answer.
    unsafe { info.write(exchange(raw).info()) };
}

#[no_mangle]
unsafe extern "C" fn surus_rs_server_variable(
    raw: *mut c_void,
    i: usize,
    name: *mut Str,
    value: *mut Str,
) -> bool {
    // SAFETY: as above.
    unsafe { store(exchange(raw).variable(i), name, value) }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_header(raw: *mut c_void, name: Str, value: *mut Str) -> bool {
    // SAFETY: as above; `name` lives for this call.
    unsafe {
        let headers = exchange(raw).headers.get();
        let name = std::str::from_utf8(name.bytes()).ok();
        let found = name.and_then(|name| headers.get(name));
        if let Some(found) = found {
            value.write(Str::new(found.as_bytes()));
        }
        found.is_some()
    }
}

fn texts((name, value): (&HeaderName, &HeaderValue)) -> (Str, Str) {
    (
        Str::new(name.as_str().as_bytes()),
        Str::new(value.as_bytes()),
    )
}

#[no_mangle]
unsafe extern "C" fn surus_rs_header_at(
    raw: *mut c_void,
    i: usize,
    name: *mut Str,
    value: *mut Str,
) -> bool {
    // SAFETY: as above.
    unsafe {
        let headers = exchange(raw).headers.get();
        let found = headers.iter().nth(i);
        store(found.map(texts), name, value)
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_trailer_at(
    raw: *mut c_void,
    i: usize,
    name: *mut Str,
    value: *mut Str,
) -> bool {
    // SAFETY: as above.
    unsafe {
        let found = exchange(raw).trailer(i);
        store(found.map(texts), name, value)
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_path_parameter(
    raw: *mut c_void,
    i: usize,
    name: *mut Str,
    value: *mut Str,
) -> bool {
    // SAFETY: as above; parameters do not change while PHP runs.
    unsafe {
        let parameters = exchange(raw).parameters.borrow();
        store(
            parameters
                .get(i)
                .map(|(n, v)| (Str::new(n.as_bytes()), Str::new(v))),
            name,
            value,
        )
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_timer(raw: *mut c_void, run: *mut c_int) -> i64 {
    // SAFETY: as above; and a place for the answer.
    unsafe {
        let Some((number, how)) = exchange(raw).timers.running.get() else {
            return -1;
        };
        run.write(how as c_int);
        i64::try_from(number).unwrap_or(-1)
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_timer_next(raw: *mut c_void, at: f64) {
    // SAFETY: as above.
    unsafe { exchange(raw) }.timers.next.set(Some(at));
}

#[no_mangle]
unsafe extern "C" fn surus_rs_route(raw: *mut c_void) -> i64 {
    // SAFETY: as above.
    unsafe { exchange(raw).route.get() }
}
