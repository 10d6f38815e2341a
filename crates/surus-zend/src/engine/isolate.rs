//! A whole PHP: its memory, tables and settings.

use std::{
    cell::{Cell, RefCell},
    ffi::{CStr, CString},
    rc::Rc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use crate::{
    engine::{
        process::{BootError, Engine},
        queue::Queue,
    },
    ffi,
};

/// Owns an isolate. Its tasks hold a reference, so that it outlives them.
pub(crate) struct Isolate {
    raw: *mut ffi::Isolate,
    /// False after a failure that left its heap in an unknown state.
    clean: Cell<bool>,
    /// The fiber that was pre-empted: it holds the isolate until it parks or ends.
    holder: Cell<*mut ffi::Task>,
    /// Tasks that wait until no task holds the isolate. Later tasks join the end of the queue.
    waiting: RefCell<Queue>,
    made: Instant,
    /// Requests that it has served.
    served: Cell<u64>,
}

/// Limits at which an isolate is replaced by a new one. The default is never.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IsolateLimits {
    /// Requests that it has served.
    pub requests: Option<u64>,
    /// Bytes that it has allocated from the system.
    pub memory: Option<u64>,
    /// Time since it was created.
    pub age: Option<Duration>,
}

impl IsolateLimits {
    /// Whether the isolate has reached a limit. Between two requests.
    pub(crate) fn are_passed_by(&self, isolate: &Isolate) -> bool {
        self.requests
            .is_some_and(|limit| isolate.served.get() >= limit)
            || self
                .age
                .is_some_and(|limit| isolate.made.elapsed() >= limit)
            || self
                .memory
                .is_some_and(|limit| isolate.memory_held() >= limit)
    }
}

impl Isolate {
    pub(crate) fn new(memory_limit: Option<&str>) -> Result<Rc<Isolate>, BootError> {
        Isolate::make(memory_limit, false)
    }

    /// One whose memory can be put back: after its boot, [`ffi::RUN_SNAPSHOT`] follows.
    pub(crate) fn for_snapshots(memory_limit: Option<&str>) -> Result<Rc<Isolate>, BootError> {
        Isolate::make(memory_limit, true)
    }

    fn make(memory_limit: Option<&str>, for_snapshots: bool) -> Result<Rc<Isolate>, BootError> {
        let limit = memory_limit.map(|text| CString::new(text).unwrap_or_default());
        let limit = limit
            .as_ref()
            .map_or(std::ptr::null(), |limit| limit.as_ptr());
        let mut error = std::ptr::null();
        // SAFETY: the engine has started (an `Engine` was needed to get here); no PHP code is running on this stack.
        let raw = unsafe { ffi::surus_isolate_new(limit, for_snapshots, &raw mut error) };
        if raw.is_null() {
            // SAFETY: it was set to a static text.
            let why = unsafe { CStr::from_ptr(error) }.to_string_lossy();
            return Err(BootError(format!("no new isolate: {why}")));
        }
        Ok(Rc::new(Isolate {
            raw,
            clean: Cell::new(true),
            holder: Cell::new(std::ptr::null_mut()),
            waiting: RefCell::default(),
            made: Instant::now(),
            served: Cell::new(0),
        }))
    }

    pub(crate) fn raw(&self) -> *mut ffi::Isolate {
        self.raw
    }

    /// Its requests will come one at a time, in worker mode. Before it boots. `starter` is PHP code that runs in place of the
    /// script; the caller keeps it until that has booted.
    pub(crate) fn serve_in_turn(&self, starter: Option<&CStr>) {
        let starter = starter.map_or(std::ptr::null(), CStr::as_ptr);
        // SAFETY: the isolate is alive; the caller keeps the code.
        unsafe { ffi::surus_isolate_serve_in_turn(self.raw, starter) };
    }

    pub(crate) fn mark_unclean(&self) {
        self.clean.set(false);
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.clean.get()
    }

    /// Whether another task than `task` was pre-empted and holds the isolate.
    pub(crate) fn is_held_from(&self, task: *mut ffi::Task) -> bool {
        !self.holder.get().is_null() && self.holder.get() != task
    }

    /// Whether `task` must wait for other tasks; false if it holds the isolate.
    pub(crate) fn is_closed_to(&self, task: *mut ffi::Task) -> bool {
        match self.holder.get() {
            holder if holder.is_null() => !self.waiting.borrow().is_empty(),
            holder => holder != task,
        }
    }

    /// Whether `task` ends a request of which a job was pre-empted: nothing else would end that job.
    pub(crate) fn lets_overtake(&self, task: *mut ffi::Task) -> bool {
        let holder = self.holder.get();
        // SAFETY: both tasks are alive: a holder releases the isolate before it is freed.
        !holder.is_null() && unsafe { ffi::surus_task_overtakes(task, holder) }
    }

    /// Lets `task`, which was pre-empted, hold the isolate; unless another task holds it and `task` only runs to end.
    pub(crate) fn hold(&self, task: *mut ffi::Task) {
        if self.holder.get().is_null() {
            self.holder.set(task);
        }
    }

    pub(crate) fn release(&self, task: *mut ffi::Task) {
        if self.holder.get() == task {
            self.holder.set(std::ptr::null_mut());
            self.wake_first();
        }
    }

    fn wake_first(&self) {
        let first = self.waiting.borrow_mut().take_first();
        if let Some(waker) = first {
            waker.wake();
        }
    }

    pub(crate) fn count_request(&self) {
        self.served.set(self.served.get() + 1);
    }

    /// Bytes in use, and their peak.
    pub(crate) fn memory(&self) -> (usize, usize) {
        let stats = self.stats();
        (stats.memory_usage, stats.memory_peak)
    }

    fn memory_held(&self) -> u64 {
        self.stats().memory_held as u64
    }

    fn stats(&self) -> ffi::IsolateStats {
        // SAFETY: called on the event loop's stack; the isolate is alive.
        unsafe { ffi::surus_isolate_memory(self.raw) }
    }
}

impl Drop for Isolate {
    fn drop(&mut self) {
        // SAFETY: the last task is freed, and we are on the event loop's stack.
        unsafe { ffi::surus_isolate_free(self.raw, self.clean.get()) };
    }
}

/// A position in the queue for an isolate that a task holds. Dropping it wakes the first task of the queue.
pub(crate) struct Waiting<'a> {
    isolate: &'a Isolate,
    number: u64,
}

impl<'a> Waiting<'a> {
    /// Joins the end of the queue.
    pub(crate) fn begin(isolate: &'a Isolate) -> Self {
        let number = isolate.waiting.borrow_mut().join();
        Waiting { isolate, number }
    }

    /// Ready if it is the first one and no task holds the isolate.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let free = self.isolate.holder.get().is_null();
        let mut waiting = self.isolate.waiting.borrow_mut();
        waiting.poll(self.number, free, cx)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.isolate.waiting.borrow_mut().leave(self.number);
        self.isolate.wake_first();
    }
}

/// Costs of isolates, measured in this process.
#[derive(Debug, Clone)]
pub struct Internals {
    /// Such as "8.2.29".
    pub php_version: String,
    /// Time to create one.
    pub isolate_new: Duration,
    /// Bytes of resident memory of an idle one.
    pub isolate_bytes: usize,
    /// Time to switch from one to another.
    pub isolate_switch: Duration,
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: usize = statm
        .split_whitespace()
        .nth(1)
        .and_then(|p| p.parse().ok())
        .unwrap_or(0);
    pages * 4096
}

/// Measures creation, memory and switching of `count` isolates.
pub fn measure(_engine: &Engine, count: usize) -> Result<Internals, BootError> {
    let _warm = Isolate::new(None)?;
    let before = resident_bytes();
    let start = Instant::now();
    let isolates = (0..count)
        .map(|_| Isolate::new(None))
        .collect::<Result<Vec<_>, _>>()?;
    let isolate_new = start.elapsed() / count as u32;
    let isolate_bytes = resident_bytes().saturating_sub(before) / count;
    let rounds = 200;
    let start = Instant::now();
    for _ in 0..rounds {
        for isolate in &isolates {
            // SAFETY: alive, on this stack; no PHP code runs.
            unsafe { ffi::surus_isolate_touch(isolate.raw) };
        }
    }
    let isolate_switch = start.elapsed() / (rounds * count as u32);
    // SAFETY: a static string of the library.
    let php_version = unsafe { std::ffi::CStr::from_ptr(ffi::surus_php_version()) }
        .to_string_lossy()
        .into_owned();
    Ok(Internals {
        php_version,
        isolate_new,
        isolate_bytes,
        isolate_switch,
    })
}
