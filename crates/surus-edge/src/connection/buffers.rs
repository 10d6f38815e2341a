//! The buffer pool of a thread: buffers and header maps for reading from clients and writing to them, shared by its
//! connections. A connection that waits for its client holds none.

use std::cell::{Cell, RefCell};

use bytes::BytesMut;
use http::HeaderMap;

/// A map with room for more headers than this does not go back to the pool.
const MOST_HEADERS: usize = 64;

/// The most pooled buffers of each kind: the number of connections that usually have work at once.
const MOST: usize = 64;

/// A buffer that has grown beyond this does not go back to the pool.
const LARGEST: usize = 64 * 1024;

thread_local! {
    static IDLE: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
    static OUTPUTS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static KEPT: Cell<bool> = const { Cell::new(false) };
    static HEADERS: Cell<Option<HeaderMap>> = const { Cell::new(None) };
}

/// An empty buffer.
pub(crate) fn take() -> BytesMut {
    IDLE.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Puts a buffer into the pool. Its contents are discarded.
pub(crate) fn give(mut buffer: BytesMut) {
    buffer.clear();
    IDLE.with_borrow_mut(|idle| {
        if idle.len() < MOST && (1..=LARGEST).contains(&buffer.capacity()) {
            idle.push(buffer);
        }
    });
}

/// Whether the last request has waited: the next ones, too, may keep for long what was read of them.
#[inline(always)]
pub(crate) fn are_kept() -> bool {
    KEPT.get()
}

/// After a request was answered at once, or began to wait.
#[inline(always)]
pub(crate) fn note_kept(waits: bool) {
    KEPT.set(waits);
}

/// An empty buffer for output.
pub(crate) fn take_output() -> Vec<u8> {
    OUTPUTS.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Puts an output buffer into the pool.
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

/// Keeps a map for the next request. Its contents are discarded.
pub(crate) fn give_headers(mut headers: HeaderMap) {
    headers.clear();
    if headers.capacity() <= MOST_HEADERS {
        HEADERS.set(Some(headers));
    }
}
