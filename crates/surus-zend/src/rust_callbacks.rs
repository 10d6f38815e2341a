//! The `surus_rs_*` functions of `csrc/bridge.h`: what C calls on a PHP stack.
//!
//! None of them calls back into Zend, so no `longjmp` can cross them. None holds a borrow of an exchange while it
//! parks. A panic would abort the process at the `extern "C"` boundary; they do not panic.

use std::{
    ffi::{c_char, c_int, c_void},
    future::poll_fn,
    task::Poll,
};

use http::{HeaderName, HeaderValue};

use crate::{
    blocking::{can_park, hand_over, park_on},
    exchange::{collect, Exchange},
    ffi::{self, RequestInfo, Str},
    router::Declared,
};

/// # Safety
/// `raw` comes from the running task's assignment; see [`Exchange::from_raw`].
unsafe fn exchange<'a>(raw: *mut c_void) -> &'a Exchange {
    // SAFETY: passed on.
    unsafe { Exchange::from_raw(raw) }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_request_info(raw: *mut c_void, info: *mut RequestInfo) {
    // SAFETY: C passes its exchange and a place for the answer.
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
    unsafe { store(exchange(raw).variables().get(i), name, value) }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_header(raw: *mut c_void, name: Str, value: *mut Str) -> bool {
    // SAFETY: as above; `name` lives for this call.
    unsafe {
        let found = std::str::from_utf8(name.bytes())
            .ok()
            .and_then(|name| exchange(raw).request.headers.get(name));
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
        let found = exchange(raw).request.headers.iter().nth(i);
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

/// # Safety
/// `name` and `value` are writable.
unsafe fn store(found: Option<(Str, Str)>, name: *mut Str, value: *mut Str) -> bool {
    let Some((n, v)) = found else { return false };
    // SAFETY: the caller's promise.
    unsafe {
        name.write(n);
        value.write(v);
    }
    true
}

#[no_mangle]
unsafe extern "C" fn surus_rs_route(raw: *mut c_void) -> i64 {
    // SAFETY: as above.
    unsafe { exchange(raw).route.get() }
}

/// Where PHP wants bytes.
///
/// # Safety
/// There is room for `size` bytes, which nobody else looks at meanwhile.
unsafe fn room<'a>(buffer: *mut c_char, size: usize) -> &'a mut [u8] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(buffer.cast(), size) }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_read_body(
    raw: *mut c_void,
    buffer: *mut c_char,
    size: usize,
) -> usize {
    // SAFETY: as above; `buffer` has room for `size` bytes.
    let (exchange, buffer) = unsafe { (exchange(raw), room(buffer, size)) };
    if exchange.is_at_block() {
        let _ = park_on(tokio::task::yield_now());
    }
    // A stream says by waiting that others are to have their turn: it has to be asked from the event loop.
    if !exchange.is_at_stream() || !can_park() {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        if let Poll::Ready(size) = exchange.poll_body(&mut context, buffer) {
            return size;
        }
    }
    park_on(poll_fn(|cx| exchange.poll_body(cx, buffer))).unwrap_or(0)
}

/// Waits for the rest of a body, which is to be read as a whole, where PHP does not keep it meanwhile.
#[no_mangle]
unsafe extern "C" fn surus_rs_collect_body(raw: *mut c_void) {
    // SAFETY: as above.
    let exchange = unsafe { exchange(raw) };
    if can_park() {
        let _ = park_on(collect(exchange));
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_take_body_file(raw: *mut c_void, length: *mut u64) -> bool {
    // SAFETY: as above; `length` is writable.
    unsafe {
        let Some(bytes) = exchange(raw).take_body_file() else {
            return false;
        };
        length.write(bytes);
        true
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_read_body_at(
    raw: *mut c_void,
    position: u64,
    buffer: *mut c_char,
    size: usize,
) -> usize {
    // SAFETY: as above; `buffer` has room for `size` bytes.
    let (exchange, buffer) = unsafe { (exchange(raw), room(buffer, size)) };
    if exchange.ends_turn() {
        let _ = park_on(tokio::task::yield_now());
    }
    exchange.read_body_at(position, buffer)
}

#[no_mangle]
unsafe extern "C" fn surus_rs_mark_files(raw: *mut c_void) {
    // SAFETY: as above.
    unsafe { exchange(raw) }.mark_files();
}

#[no_mangle]
unsafe extern "C" fn surus_rs_hand_over_file(
    raw: *mut c_void,
    mark: Str,
    length: *mut u64,
) -> bool {
    // SAFETY: as above; the mark lives for this call.
    unsafe {
        let text = mark.bytes();
        let Some(passing) = exchange(raw).take_marked_file(text) else {
            return false;
        };
        length.write(passing.length);
        hand_over::expect(mark.ptr.cast(), passing);
        true
    }
}

#[no_mangle]
extern "C" fn surus_rs_forget_file() {
    hand_over::forget();
}

#[no_mangle]
unsafe extern "C" fn surus_rs_body_failed(raw: *mut c_void) -> bool {
    // SAFETY: as above.
    unsafe { exchange(raw).body_failed.get() }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_send_head(raw: *mut c_void, status: c_int) {
    // SAFETY: as above.
    unsafe { exchange(raw).set_status(status) };
}

#[no_mangle]
unsafe extern "C" fn surus_rs_interim(raw: *mut c_void, status: c_int, lines: Str) -> bool {
    // SAFETY: as above.
    let sent = unsafe { exchange(raw).send_interim(status, lines.bytes()) };
    if sent {
        // The event loop sends while PHP is parked: let it have a turn.
        let _ = park_on(tokio::task::yield_now());
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
    let _ = park_on(tokio::task::yield_now());
    !exchange.has_client_left()
}

#[no_mangle]
unsafe extern "C" fn surus_rs_finish(raw: *mut c_void) {
    // SAFETY: as above.
    unsafe { exchange(raw).finish() };
}

#[no_mangle]
unsafe extern "C" fn surus_rs_add_route(
    raw: *mut c_void,
    methods: Str,
    pattern: Str,
    host: Str,
    headers: Str,
    about: Str,
    origin: Str,
    index: i64,
) {
    // SAFETY: as above.
    unsafe {
        let text = |s: Str| String::from_utf8_lossy(s.bytes()).into_owned();
        exchange(raw).routes.borrow_mut().push(Declared {
            methods: text(methods),
            pattern: text(pattern),
            host: text(host),
            headers: text(headers),
            about: text(about),
            origin: text(origin),
            index,
        });
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_take_tokens(
    key: Str,
    rate: f64,
    burst: f64,
    cost: f64,
    taken: *mut crate::ffi::Taken,
) {
    // SAFETY: C passes readable bytes and a place for the answer.
    unsafe {
        let found = crate::rate::take(key.bytes(), rate, burst, cost);
        taken.write(crate::ffi::Taken {
            allowed: found.allowed,
            remaining: i64::try_from(found.remaining).unwrap_or(i64::MAX),
            retry_after: found.retry_after.as_secs_f64(),
            reset_after: found.reset_after.as_secs_f64(),
        });
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_is_dev(raw: *mut c_void) -> bool {
    // SAFETY: as above.
    unsafe { exchange(raw).dev }
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
        crate::answers::answer_exception(
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

#[no_mangle]
unsafe extern "C" fn surus_rs_class_source(
    class_name: Str,
    file_name: *mut Str,
    source: *mut Str,
) -> bool {
    // SAFETY: as above.
    unsafe {
        let found = crate::php_classes::source(class_name.bytes());
        store(
            found.map(|(file, text)| (Str::new(file.as_bytes()), Str::new(text.as_bytes()))),
            file_name,
            source,
        )
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_log(level: c_int, message: Str) {
    // SAFETY: as above.
    let message = unsafe { String::from_utf8_lossy(message.bytes()) };
    if level <= 3 {
        // SAFETY: reads which task runs; only the address is used.
        let exchange = unsafe { ffi::surus_current_exchange() };
        if crate::refresh::keep_boot_error(exchange.cast(), &message) {
            return;
        }
    }
    match level {
        0..=3 => tracing::error!(target: "php", "{message}"),
        4 => tracing::warn!(target: "php", "{message}"),
        5 | 6 => tracing::info!(target: "php", "{message}"),
        _ => tracing::debug!(target: "php", "{message}"),
    }
}
