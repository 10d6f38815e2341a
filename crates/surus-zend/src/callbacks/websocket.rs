//! WebSockets for PHP: `csrc/app/websocket.c`.

use std::{
    cell::{Cell, RefCell},
    ffi::{c_int, c_void},
    future::poll_fn,
    time::Duration,
};

use bytes::Bytes;

use super::exchange;
use crate::{
    blocking::{can_park, park_on},
    body::websocket::{
        are_possible, extension, may_be_sent, Received, SocketClose, SocketMessage, WebSocket,
    },
    ffi::{self, Str},
};

/// The longest reason for a close: a control frame has 125 bytes, and two are the code.
const LONGEST_REASON: usize = 123;

thread_local! {
    /// What C copies after the call that has returned it.
    static RECEIVED: Cell<Bytes> = const { Cell::new(Bytes::new()) };
    static LAST_TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

#[no_mangle]
extern "C" fn surus_rs_has_websockets() -> bool {
    are_possible()
}

#[no_mangle]
unsafe extern "C" fn surus_rs_websocket_extensions(offers: Str, answer: *mut Str) -> bool {
    // SAFETY: the text lives for this call.
    let offers = unsafe { offers.bytes() };
    let agreed = std::str::from_utf8(offers).ok().and_then(extension::agree);
    let Some(agreed) = agreed else {
        return false;
    };
    LAST_TEXT.with_borrow_mut(|last| {
        *last = agreed;
        // SAFETY: it is writable. The text stays until the next call.
        unsafe { answer.write(Str::new(last.as_bytes())) };
    });
    true
}

#[no_mangle]
unsafe extern "C" fn surus_rs_websocket_accept(raw: *mut c_void, max_message: usize) -> u64 {
    // SAFETY: C passes the running task's exchange.
    let exchange = unsafe { exchange(raw) };
    let socket = exchange.accept_websocket(max_message);
    socket.map_or(0, |socket| socket.number())
}

#[no_mangle]
unsafe extern "C" fn surus_rs_websocket_converse(raw: *mut c_void, number: u64) -> bool {
    // SAFETY: C passes the running task's exchange.
    let exchange = unsafe { exchange(raw) };
    let socket = exchange.websocket();
    let own = socket.filter(|socket| socket.number() == number);
    own.is_some_and(|socket| exchange.conversation.begin(socket))
}

#[no_mangle]
unsafe extern "C" fn surus_rs_conversation(raw: *mut c_void, event: *mut c_int) -> u64 {
    // SAFETY: C passes the running task's exchange.
    let conversation = unsafe { &exchange(raw).conversation };
    let Some(socket) = conversation.socket() else {
        return 0;
    };
    // SAFETY: it is writable.
    unsafe { event.write(conversation.enter() as c_int) };
    socket.number()
}

#[no_mangle]
unsafe extern "C" fn surus_rs_websocket_next(
    number: u64,
    binary: *mut bool,
    message: *mut Str,
) -> bool {
    let socket = WebSocket::find(number);
    let Some(Received::Message(received)) = socket.and_then(|socket| socket.try_receive()) else {
        return false;
    };
    // SAFETY: both are writable.
    unsafe { give(received, binary, message) };
    true
}

/// # Safety
/// `binary` and `message` are writable. C copies the text before it calls again.
unsafe fn give(received: SocketMessage, binary: *mut bool, message: *mut Str) {
    // SAFETY: the caller's promise.
    unsafe {
        binary.write(received.binary);
        message.write(Str::new(&received.data));
    }
    RECEIVED.set(received.data);
}

#[no_mangle]
unsafe extern "C" fn surus_rs_websocket_receive(
    number: u64,
    seconds: f64,
    binary: *mut bool,
    message: *mut Str,
) -> c_int {
    let Some(socket) = WebSocket::find(number) else {
        return ffi::WEBSOCKET_OVER;
    };
    let received = match socket.try_receive() {
        Some(received) => received,
        None if !can_park() => return ffi::CANNOT_WAIT,
        None => {
            let receiving = poll_fn(|cx| socket.poll_receive(cx));
            let waited = match Duration::try_from_secs_f64(seconds) {
                Ok(time) => park_on(async { tokio::time::timeout(time, receiving).await.ok() }),
                Err(_) => park_on(async { Some(receiving.await) }),
            };
            match waited {
                Ok(Some(received)) => received,
                Ok(None) => return ffi::TIME_OVER,
                Err(_) => return ffi::MUST_END,
            }
        }
    };
    let Received::Message(received) = received else {
        return ffi::WEBSOCKET_OVER;
    };
    // SAFETY: both are writable.
    unsafe { give(received, binary, message) };
    ffi::WOKEN
}

#[no_mangle]
unsafe extern "C" fn surus_rs_websocket_send(number: u64, message: Str, binary: bool) -> c_int {
    // SAFETY: the text lives for this call.
    let data = unsafe { message.bytes() };
    if !binary && std::str::from_utf8(data).is_err() {
        return ffi::NOT_TEXT;
    }
    let Some(socket) = WebSocket::find(number) else {
        return ffi::WEBSOCKET_OVER;
    };
    if socket.is_full() {
        if !can_park() {
            return ffi::CANNOT_WAIT;
        }
        if park_on(poll_fn(|cx| socket.poll_room(cx))).is_err() {
            return ffi::MUST_END;
        }
    }
    let data = Bytes::copy_from_slice(data);
    let message = SocketMessage {
        binary,
        data,
        shared: None,
    };
    match socket.send(message) {
        true => ffi::WOKEN,
        false => ffi::WEBSOCKET_OVER,
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_websocket_close(number: u64, code: i64, reason: Str) -> bool {
    // SAFETY: the text lives for this call.
    let reason = unsafe { reason.bytes() };
    let code = u16::try_from(code).ok().filter(|&code| may_be_sent(code));
    let reason = std::str::from_utf8(reason).ok();
    let reason = reason.filter(|reason| reason.len() <= LONGEST_REASON);
    let (Some(code), Some(reason)) = (code, reason) else {
        return false;
    };
    if let Some(socket) = WebSocket::find(number) {
        let reason = reason.to_owned();
        socket.close(SocketClose { code, reason });
    }
    true
}

#[no_mangle]
unsafe extern "C" fn surus_rs_websocket_end(
    number: u64,
    code: *mut c_int,
    reason: *mut Str,
) -> bool {
    let socket = WebSocket::find(number);
    let Some(end) = socket.map_or(Some(SocketClose::gone()), |socket| socket.end()) else {
        return false;
    };
    // SAFETY: both are writable.
    unsafe { code.write(c_int::from(end.code)) };
    LAST_TEXT.with_borrow_mut(|last| {
        *last = end.reason;
        // SAFETY: as above. It stays until the next call.
        unsafe { reason.write(Str::new(last.as_bytes())) };
    });
    true
}
