//! The response of PHP. PHP waits if the client does not read its bytes.

use std::{
    ffi::{c_char, c_int, c_void},
    future::poll_fn,
};

use tokio::task::yield_now;

use super::exchange;
use crate::{
    blocking::park_on,
    exchange::{answers::answer_exception, owed::Owed},
    ffi::Str,
};

#[no_mangle]
unsafe extern "C" fn surus_rs_send_head(raw: *mut c_void, status: c_int) {
    // SAFETY: C passes the running task's exchange; texts live for their call.
    unsafe { exchange(raw).set_status(status) };
}

#[no_mangle]
unsafe extern "C" fn surus_rs_interim(raw: *mut c_void, status: c_int, lines: Str) -> bool {
    // SAFETY: as above.
    let sent = unsafe { exchange(raw).send_interim(status, lines.bytes()) };
    if sent {
        // The event loop sends while PHP is parked: let it have a turn.
        let _ = park_on(yield_now());
    }
    sent
}

#[no_mangle]
unsafe extern "C" fn surus_rs_add_header(raw: *mut c_void, name: Str, value: Str) -> bool {
    // SAFETY: as above.
    unsafe { exchange(raw).add_header(name.bytes(), value.bytes()) }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_note_left_out(raw: *mut c_void, name: Str, place: Str) {
    // SAFETY: as above.
    unsafe {
        let [name, place] = [name, place].map(|text| String::from_utf8_lossy(text.bytes()));
        exchange(raw).note_left_out(&name, &place);
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_add_trailer(raw: *mut c_void, name: Str, value: Str) -> bool {
    // SAFETY: as above.
    unsafe { exchange(raw).add_trailer(name.bytes(), value.bytes()) }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_content_type(raw: *mut c_void, value: Str) -> bool {
    // SAFETY: as above.
    unsafe { exchange(raw).add_content_type(value.bytes()) }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_write(raw: *mut c_void, data: *const c_char, size: usize) -> bool {
    // SAFETY: as above.
    let exchange = unsafe { exchange(raw) };
    let data = Str {
        ptr: data,
        len: size,
    };
    // SAFETY: C passes `size` readable bytes.
    let mut rest = unsafe { data.bytes() };
    while !rest.is_empty() {
        if exchange.is_full() {
            let _ = park_on(poll_fn(|cx| exchange.poll_space(cx)));
            if exchange.has_client_left() {
                return false;
            }
        }
        let (piece, others) = rest.split_at(rest.len().min(exchange.most_at_once()));
        if !exchange.write(piece) {
            return false;
        }
        rest = others;
    }
    !exchange.has_client_left()
}

#[no_mangle]
unsafe extern "C" fn surus_rs_flush(raw: *mut c_void) -> bool {
    // SAFETY: as above.
    let exchange = unsafe { exchange(raw) };
    if exchange.is_answered() {
        return !exchange.has_client_left();
    }
    exchange.start_streaming();
    // The event loop sends while PHP is parked: let it have a turn.
    let _ = park_on(yield_now());
    !exchange.has_client_left()
}

#[no_mangle]
unsafe extern "C" fn surus_rs_flush_item(raw: *mut c_void) -> bool {
    // SAFETY: as above.
    let exchange = unsafe { exchange(raw) };
    if exchange.is_answered() {
        return !exchange.has_client_left();
    }
    exchange.start_streaming();
    if exchange.is_item_due() {
        let _ = park_on(yield_now());
    }
    !exchange.has_client_left()
}

#[no_mangle]
unsafe extern "C" fn surus_rs_write_item(
    raw: *mut c_void,
    data: *const c_char,
    size: usize,
) -> bool {
    let item = Str {
        ptr: data,
        len: size,
    };
    // SAFETY: as above; C passes `size` readable bytes.
    unsafe {
        if exchange(raw).add_item(item.bytes()) {
            return true;
        }
        surus_rs_write(raw, data, size) && surus_rs_flush_item(raw)
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_open_stream(raw: *mut c_void) {
    // SAFETY: as above.
    unsafe { exchange(raw) }.open_stream();
}

#[no_mangle]
unsafe extern "C" fn surus_rs_finish(raw: *mut c_void) {
    // SAFETY: as above.
    unsafe { exchange(raw).finish() };
}

#[no_mangle]
unsafe extern "C" fn surus_rs_defer(raw: *mut c_void) {
    // SAFETY: as above.
    let exchange = unsafe { exchange(raw) };
    // A WebSocket goes on: what one of its events has deferred has no response that would have to be complete.
    if exchange.conversation.socket().is_none() {
        exchange.finish();
    }
    exchange.times.begin_deferred();
    exchange.owed.set(Some(Owed::begin()));
    // The event loop sends while PHP is parked: let it have a turn.
    let _ = park_on(yield_now());
}

#[no_mangle]
unsafe extern "C" fn surus_rs_deferred(raw: *mut c_void) {
    // SAFETY: as above.
    unsafe { exchange(raw) }.owed.take();
}

#[no_mangle]
unsafe extern "C" fn surus_rs_exception(
    raw: *mut c_void,
    status: c_int,
    class: Str,
    message: Str,
    trace: Str,
) {
    // SAFETY: as above.
    unsafe {
        let text = |s: Str| String::from_utf8_lossy(s.bytes()).into_owned();
        answer_exception(
            exchange(raw),
            status,
            &text(class),
            &text(message),
            &text(trace),
        );
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_cut_off(raw: *mut c_void) {
    // SAFETY: as above.
    unsafe { exchange(raw) }.cut_off();
}
