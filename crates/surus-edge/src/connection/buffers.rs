//! Room for what is read from clients and written to them, shared by the connections of a thread: one that waits for its
//! client keeps none.

use std::cell::{Cell, RefCell};

use bytes::BytesMut;
use http::HeaderMap;

/// Room for more headers than this is not kept.
const MOST_HEADERS: usize = 64;

/// As many as connections usually have work at once.
const MOST: usize = 64;

/// One that has grown beyond this is not kept.
const LARGEST: usize = 64 * 1024;

thread_local! {
    static IDLE: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
    static OUTPUTS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static HEADERS: Cell<Option<HeaderMap>> = const { Cell::new(None) };
}

/// An empty buffer.
pub(crate) fn take() -> BytesMut {
    IDLE.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Takes back a buffer, whose contents are forgotten.
pub(crate) fn give(mut buffer: BytesMut) {
    buffer.clear();
    IDLE.with_borrow_mut(|idle| {
        if idle.len() < MOST && (1..=LARGEST).contains(&buffer.capacity()) {
            idle.push(buffer);
        }
    });
}

/// An empty buffer for what is written.
pub(crate) fn take_output() -> Vec<u8> {
    OUTPUTS.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Takes it back.
pub(crate) fn give_output(mut buffer: Vec<u8>) {
    buffer.clear();
    OUTPUTS.with_borrow_mut(|idle| {
        if idle.len() < MOST && (1..=LARGEST).contains(&buffer.capacity()) {
            idle.push(buffer);
        }
    });
}

/// An empty map of headers.
pub(crate) fn take_headers() -> HeaderMap {
    HEADERS.take().unwrap_or_default()
}

/// Takes back a map, whose contents are forgotten.
pub(crate) fn give_headers(mut headers: HeaderMap) {
    headers.clear();
    if headers.capacity() <= MOST_HEADERS {
        HEADERS.set(Some(headers));
    }
}
