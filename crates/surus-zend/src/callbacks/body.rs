//! Bytes of the request's body for PHP; waits until they arrive.

use std::{
    ffi::{c_char, c_void},
    future::poll_fn,
    task::{Context, Poll, Waker},
};

use tokio::task::yield_now;

use super::exchange;
use crate::{
    blocking::{can_park, park_on},
    body::hand_over,
    exchange::{collect, Exchange},
    ffi::Str,
};

/// The buffer of PHP for bytes.
///
/// # Safety
/// There is room for `size` bytes, which nobody else accesses meanwhile.
unsafe fn room<'a>(buffer: *mut c_char, size: usize) -> &'a mut [u8] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(buffer.cast(), size) }
}

/// One job of a request reads its body at a time: PHP keeps what was read, in this order.
struct ReadingTurn<'a>(&'a Exchange);

impl<'a> ReadingTurn<'a> {
    /// `None`: the request must end.
    fn wait(exchange: &'a Exchange) -> Option<Self> {
        while exchange.is_being_read.get() {
            park_on(exchange.was_read.notified()).ok()?;
        }
        exchange.is_being_read.set(true);
        Some(ReadingTurn(exchange))
    }
}

impl Drop for ReadingTurn<'_> {
    fn drop(&mut self) {
        self.0.is_being_read.set(false);
        self.0.was_read.notify_one();
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_read_body(
    raw: *mut c_void,
    buffer: *mut c_char,
    size: usize,
) -> usize {
    // SAFETY: C passes the running task's exchange, and a buffer with room for `size` bytes.
    let (exchange, buffer) = unsafe { (exchange(raw), room(buffer, size)) };
    let Some(_turn) = ReadingTurn::wait(exchange) else {
        return 0;
    };
    if exchange.is_at_block() {
        let _ = park_on(yield_now());
    }
    // A stream may be pending only to let other tasks run: it must be polled from the event loop.
    if !exchange.is_at_stream() || !can_park() {
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(size) = exchange.poll_body(&mut context, buffer) {
            return size;
        }
    }
    park_on(poll_fn(|cx| exchange.poll_body(cx, buffer))).unwrap_or(0)
}

/// Receives the rest of a body that will be read as a whole, without using PHP's memory for it.
#[no_mangle]
unsafe extern "C" fn surus_rs_collect_body(raw: *mut c_void) {
    // SAFETY: as above.
    let exchange = unsafe { exchange(raw) };
    if can_park() {
        if let Some(_turn) = ReadingTurn::wait(exchange) {
            let _ = park_on(collect(exchange));
        }
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
        let _ = park_on(yield_now());
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
