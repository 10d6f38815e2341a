//! Inspection of a running server: requests in flight, and the files of its code.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    ffi::{c_void, OsStr},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    time::Duration,
};

use crate::{
    exchange::Exchange,
    ffi::{self, Str},
    serve::task::Task,
};

/// A request that waits, or was interrupted while it computed.
#[derive(Debug, Clone)]
pub struct InFlight {
    /// "GET", "POST", …
    pub method: String,
    /// Path and query string.
    pub uri: String,
    /// Time since it arrived.
    pub age: Duration,
    /// The PHP function that waits and the line that called it; empty if PHP has not started.
    pub place: String,
}

struct Entry {
    exchange: *const Exchange,
    task: *mut ffi::Task,
}

thread_local! {
    /// Tasks that were parked or pre-empted. A task that runs to its end without that is never listed.
    static DRIVEN: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
    /// Files registered by `Surus\watch()`.
    static WATCHED: RefCell<BTreeSet<PathBuf>> = const { RefCell::new(BTreeSet::new()) };
}

/// Lists a task as one in flight, until it is dropped.
pub(crate) struct Driven<'a> {
    exchange: &'a Exchange,
}

impl<'a> Driven<'a> {
    pub(crate) fn begin(task: &Task, exchange: &'a Exchange) -> Self {
        let entry = Entry {
            exchange,
            task: task.raw(),
        };
        DRIVEN.with_borrow_mut(|all| all.push(entry));
        Driven { exchange }
    }
}

impl Drop for Driven<'_> {
    fn drop(&mut self) {
        DRIVEN.with_borrow_mut(|all| {
            if let Some(at) = all
                .iter()
                .position(|each| std::ptr::eq(each.exchange, self.exchange))
            {
                all.swap_remove(at);
            }
        });
    }
}

/// The number of requests in flight that wait, without WebSockets, and at most `limit` of them, the oldest first. On the event loop's stack.
#[must_use]
pub fn in_flight(limit: usize) -> (usize, Vec<InFlight>) {
    DRIVEN.with_borrow(|all| {
        let mut found: Vec<InFlight> = all
            .iter()
            .filter_map(|entry| {
                // SAFETY: it is alive: `Driven` is dropped before what it was made from.
                let exchange = unsafe { &*entry.exchange };
                if exchange.websocket().is_some() {
                    return None;
                }
                // SAFETY: so is the task.
                let place = unsafe { place(entry.task) };
                Some(InFlight {
                    method: exchange.request.method.to_string(),
                    uri: exchange.request.uri.to_string(),
                    age: exchange.started().elapsed(),
                    place,
                })
            })
            .collect();
        found.sort_by_key(|request| std::cmp::Reverse(request.age));
        let count = found.len();
        found.truncate(limit);
        (count, found)
    })
}

/// # Safety
/// The task is alive and does not run.
pub(super) unsafe fn place(task: *mut ffi::Task) -> String {
    let mut text = [0u8; 512];
    // SAFETY: passed on; `text` has room for its size.
    let length = unsafe { ffi::surus_task_place(task, text.as_mut_ptr().cast(), text.len()) };
    String::from_utf8_lossy(&text[..length]).into_owned()
}

/// The files that an isolate has included.
pub(crate) fn files(isolate: *mut ffi::Isolate) -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = Vec::new();
    // SAFETY: called on the event loop's stack with an isolate that is alive; the list outlives the call.
    unsafe { ffi::surus_isolate_files(isolate, std::ptr::from_mut(&mut list).cast()) };
    list
}

/// The files that `Surus\watch()` was called with.
#[must_use]
pub fn watched() -> Vec<PathBuf> {
    WATCHED.with_borrow(|files| files.iter().cloned().collect())
}

fn path(text: Str) -> PathBuf {
    // SAFETY: the text lives for the call.
    let bytes = unsafe { text.bytes() };
    PathBuf::from(OsStr::from_bytes(bytes))
}

#[no_mangle]
unsafe extern "C" fn surus_rs_file(list: *mut c_void, file: Str) {
    // SAFETY: `list` is what `files` has passed.
    unsafe { (*list.cast::<Vec<PathBuf>>()).push(path(file)) };
}

#[no_mangle]
unsafe extern "C" fn surus_rs_watch(file: Str) {
    let file = path(file);
    WATCHED.with_borrow_mut(|files| files.insert(file));
}
