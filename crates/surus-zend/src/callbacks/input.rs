//! Passes validated input to PHP.

use std::{
    cell::RefCell,
    ffi::{c_char, c_int, c_void},
};

use crate::{
    exchange::Exchange,
    ffi::{write_message, Input, Refusal, Str},
};

#[no_mangle]
unsafe extern "C" fn surus_rs_add_input(
    raw: *mut c_void,
    route: i64,
    from: c_int,
    description: Str,
    error: *mut c_char,
    error_size: usize,
) -> c_int {
    // SAFETY: C passes the running task's exchange, text that lives for this call, and room for a message.
    let (exchange, description, message) = unsafe {
        (
            Exchange::from_raw(raw),
            String::from_utf8_lossy(description.bytes()),
            std::slice::from_raw_parts_mut(error.cast::<u8>(), error_size),
        )
    };
    match exchange.add_input(route, from, &description) {
        Ok(slot) => slot,
        Err(reason) => {
            write_message(message, &reason);
            -1
        }
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_add_messages(raw: *mut c_void, json: Str) -> bool {
    // SAFETY: as above.
    let (exchange, json) = unsafe {
        (
            Exchange::from_raw(raw),
            String::from_utf8_lossy(json.bytes()),
        )
    };
    let added = exchange.add_messages(&json);
    if let Err(error) = &added {
        tracing::error!(%error, "what Surus\\Schema\\Messages has");
    }
    added.is_ok()
}

#[no_mangle]
unsafe extern "C" fn surus_rs_input(raw: *mut c_void, slot: u32, to: *mut Input) -> bool {
    // SAFETY: as above. The memory behind the pointers belongs to the exchange and does not change any more.
    unsafe {
        let found = Exchange::from_raw(raw).input(slot);
        if let Some(input) = found {
            to.write(Input {
                cells: input.cells().as_ptr(),
                text: [input.body().as_ptr().cast(), input.arena().as_ptr().cast()],
            });
        }
        found.is_some()
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_guard_route(raw: *mut c_void, route: i64) {
    // SAFETY: as above.
    unsafe { Exchange::from_raw(raw) }.guard_route(route);
}

#[no_mangle]
unsafe extern "C" fn surus_rs_refuse_input(raw: *mut c_void, slot: u32, violations: Str) {
    // SAFETY: as above.
    unsafe {
        let violations = String::from_utf8_lossy(violations.bytes());
        Exchange::from_raw(raw).refuse_input(slot, &violations);
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_refusal(raw: *mut c_void, to: *mut Refusal) -> bool {
    // SAFETY: as above. The texts belong to the exchange and do not change any more.
    unsafe {
        let found = Exchange::from_raw(raw).refusal();
        if let Some(refusal) = found {
            to.write(Refusal {
                status: c_int::from(refusal.status),
                text: Str::new(refusal.text.as_bytes()),
                accepted: Str::new(refusal.accepted.as_bytes()),
            });
        }
        found.is_some()
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_openapi(routes: Str, text: *mut Str) -> bool {
    thread_local! {
        static LAST: RefCell<String> = const { RefCell::new(String::new()) };
    }
    // SAFETY: C passes text that lives for this call, and a place for the answer.
    let built = unsafe {
        let routes = String::from_utf8_lossy(routes.bytes());
        surus_schema::openapi::build(&routes)
    };
    let good = built.is_ok();
    LAST.with_borrow_mut(|last| {
        *last = built.unwrap_or_else(|error| error);
        // SAFETY: as above; the text stays until the next call.
        unsafe { text.write(Str::new(last.as_bytes())) };
    });
    good
}

#[no_mangle]
extern "C" fn surus_rs_openapi_page() -> Str {
    Str::new(surus_schema::page::PAGE.as_bytes())
}

#[no_mangle]
unsafe extern "C" fn surus_rs_wants_openapi(raw: *mut c_void) -> bool {
    // SAFETY: as above.
    unsafe { Exchange::from_raw(raw) }.wants_openapi()
}

#[no_mangle]
unsafe extern "C" fn surus_rs_take_openapi(raw: *mut c_void, document: Str) {
    // SAFETY: as above.
    unsafe {
        let document = String::from_utf8_lossy(document.bytes()).into_owned();
        Exchange::from_raw(raw).set_openapi(document);
    }
}
