//! Finds calls that block the event loop: those that wait in a system call that no hook parks, and C code that computes
//! without a break.
//!
//! A thread of its own looks at the event loop's thread twice per threshold while PHP runs, and sleeps while the loop is idle.
//! Runs of PHP are numbered, so that beginning and ending one costs two stores and no look at a clock. What the
//! thread waits in is read from `/proc/self/task/TID/syscall` (proc_pid_syscall(5)). The PHP code that has made the call reports
//! it itself, when the call returns and the VM looks for interrupts: nothing of PHP is read from the other thread.

mod system_call;
mod table;

use std::{
    ffi::CString,
    io,
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        Mutex, MutexGuard, OnceLock, PoisonError,
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

use crate::{
    blocking::helper::block_signals,
    exchange::Exchange,
    ffi,
    serve::stalls::{system_call::WatchedThread, table::Table},
};

pub use table::{Stall, Stalls};

/// C code may compute for so many thresholds: PHP code that computes is preempted long before.
const COMPUTING: u32 = 5;

/// Looks at an idle event loop before the thread sleeps.
const IDLE_LOOKS: u32 = 64;

/// The number of the run of PHP that goes on (odd), or of the last one plus 1. Written by the event loop's thread only.
static RUN: AtomicU64 = AtomicU64::new(0);

/// The run that has blocked the event loop for longer than the threshold.
static CAUGHT: AtomicU64 = AtomicU64::new(0);

/// The watching thread sleeps until it is woken.
static ASLEEP: AtomicBool = AtomicBool::new(false);

static WATCHER: OnceLock<Thread> = OnceLock::new();

static DETAILS: Mutex<Option<Caught>> = Mutex::new(None);

static TABLE: Mutex<Table> = Mutex::new(Table::new());

struct Caught {
    run: u64,
    since: Instant,
    /// The internal function of PHP that runs, if it is one.
    function: String,
    /// What it does, in words.
    call: String,
    /// Where, once that is known.
    place: Option<String>,
}

/// A run of PHP on the event loop's thread.
pub(crate) struct Run(u64);

impl Run {
    #[inline]
    pub(crate) fn begin() -> Self {
        let run = RUN.load(Ordering::Relaxed) + 1;
        RUN.store(run, Ordering::Release);
        if ASLEEP.load(Ordering::Relaxed) {
            wake();
        }
        Run(run)
    }

    /// The task has parked, was preempted, or is done.
    #[inline]
    pub(crate) fn end(self, task: *mut ffi::Task) {
        RUN.store(self.0 + 1, Ordering::Release);
        if CAUGHT.load(Ordering::Relaxed) == self.0 {
            account(self.0, task);
        }
    }
}

#[cold]
fn wake() {
    ASLEEP.store(false, Ordering::Relaxed);
    if let Some(watcher) = WATCHER.get() {
        watcher.unpark();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls that have blocked the event loop of this process so far.
#[must_use]
pub fn stalls() -> Stalls {
    lock(&TABLE).stalls()
}

/// Watches the calling thread, which is to run PHP, for calls that block it for longer than `threshold`.
///
/// # Errors
/// If there is no thread for it.
pub fn detect_stalls(threshold: Duration) -> io::Result<()> {
    let watched = WatchedThread::current()?;
    let looks = (threshold / 2).max(Duration::from_millis(1));
    let watcher = thread::Builder::new()
        .name("stalls".to_owned())
        .stack_size(128 * 1024)
        .spawn(move || {
            block_signals();
            watch(&watched, looks, threshold);
        })?;
    let _ = WATCHER.set(watcher.thread().clone());
    Ok(())
}

/// A run as the watching thread sees it.
struct Seen {
    run: u64,
    since: Instant,
    /// CPU time that the watched thread had used then.
    cpu: Duration,
}

fn watch(watched: &WatchedThread, looks: Duration, threshold: Duration) {
    let mut seen: Option<Seen> = None;
    let mut idle = 0;
    loop {
        thread::sleep(looks);
        let run = RUN.load(Ordering::Acquire);
        if run % 2 == 0 {
            idle = if seen.is_none() { idle + 1 } else { 0 };
            seen = None;
            if idle > IDLE_LOOKS {
                sleep_until_woken(run);
                idle = 0;
            }
            continue;
        }
        idle = 0;
        let now = Instant::now();
        match &seen {
            Some(known) if known.run == run => {
                let is_new = CAUGHT.load(Ordering::Relaxed) != run;
                if is_new && now - known.since >= threshold {
                    if let Some(call) = blocking_call(watched, known, now, threshold) {
                        catch(run, known.since, call);
                    }
                }
            }
            _ => {
                let cpu = watched.cpu_time();
                let since = now;
                seen = Some(Seen { run, since, cpu });
            }
        }
    }
}

fn sleep_until_woken(run: u64) {
    ASLEEP.store(true, Ordering::SeqCst);
    while RUN.load(Ordering::SeqCst) == run && ASLEEP.load(Ordering::Relaxed) {
        thread::park();
    }
    ASLEEP.store(false, Ordering::Relaxed);
}

/// What keeps the event loop from running, in words. None where the thread only waits for a processor, or is
/// to be preempted soon.
fn blocking_call(
    watched: &WatchedThread,
    seen: &Seen,
    now: Instant,
    threshold: Duration,
) -> Option<String> {
    let took = now - seen.since;
    let computed = watched.cpu_time().saturating_sub(seen.cpu);
    if took.saturating_sub(computed) >= threshold / 2 {
        if let Some(call) = watched.system_call() {
            return Some(call);
        }
    }
    (computed >= COMPUTING * threshold).then(|| "computing".to_owned())
}

fn catch(run: u64, since: Instant, call: String) {
    let mut text = [0u8; 256];
    // SAFETY: for every thread; `text` has room for its size.
    let length = unsafe { ffi::surus_stall_function(text.as_mut_ptr().cast(), text.len()) };
    if RUN.load(Ordering::Acquire) != run {
        return;
    }
    let function = String::from_utf8_lossy(&text[..length]).into_owned();
    *lock(&DETAILS) = Some(Caught {
        run,
        since,
        function,
        call,
        place: None,
    });
    CAUGHT.store(run, Ordering::Release);
    // SAFETY: for every thread.
    unsafe { ffi::surus_stall_note() };
}

/// In the PHP code whose call has returned.
#[no_mangle]
extern "C" fn surus_rs_stalled() {
    let run = RUN.load(Ordering::Relaxed);
    let Some((since, function, call)) = caught(run) else {
        return;
    };
    let mut text = [0u8; 512];
    // SAFETY: called by the code that runs; `text` has room for its size.
    let length = unsafe { ffi::surus_running_place(text.as_mut_ptr().cast(), text.len()) };
    let place = named(&function, &String::from_utf8_lossy(&text[..length]));
    // SAFETY: reads which task runs.
    let request = request(unsafe { ffi::surus_current_exchange() });
    let took = since.elapsed();
    if lock(&TABLE).log(&place, took) {
        let title = title(&request, took, &function, &call);
        // SAFETY: as above; the title lives for the call.
        unsafe { ffi::surus_running_backtrace(title.as_ptr()) };
    }
    if let Some(caught) = lock(&DETAILS).as_mut() {
        caught.place = Some(place);
    }
}

/// When and what of a run that was caught and has not reported itself.
fn caught(run: u64) -> Option<(Instant, String, String)> {
    let details = lock(&DETAILS);
    let caught = details.as_ref().filter(|caught| caught.run == run)?;
    let is_reported = caught.place.is_some();
    (!is_reported).then(|| (caught.since, caught.function.clone(), caught.call.clone()))
}

/// `function` at a place that does not name it: the function has returned when the VM looked for interrupts.
fn named(function: &str, place: &str) -> String {
    match function.is_empty() || place.contains("() at ") {
        true => place.to_owned(),
        false => format!("{function} at {place}"),
    }
}

/// At the end of a run that was caught. On the event loop's stack.
#[cold]
fn account(run: u64, task: *mut ffi::Task) {
    let Some(caught) = lock(&DETAILS).take().filter(|caught| caught.run == run) else {
        return;
    };
    let took = caught.since.elapsed();
    // SAFETY: the task is alive, and so is what it was assigned: a run of it has just ended.
    let request = request(unsafe { ffi::surus_task_exchange(task) });
    let place = caught.place.clone().unwrap_or_else(|| {
        // SAFETY: it does not run any more.
        let place = named(&caught.function, &unsafe {
            crate::serve::inspect::place(task)
        });
        if lock(&TABLE).log(&place, took) {
            let title = title(&request, took, &caught.function, &caught.call);
            // SAFETY: the same; the title lives for the call.
            unsafe { ffi::surus_task_backtrace(task, title.as_ptr()) };
        }
        place
    });
    lock(&TABLE).add(&place, caught.call, request, took);
}

/// "GET /path". Queries may hold what is nobody else's business.
fn request(exchange: *mut std::ffi::c_void) -> String {
    if exchange.is_null() {
        return String::new();
    }
    // SAFETY: who calls passes what the task was assigned, which is alive.
    let request = unsafe { &Exchange::from_raw(exchange).request };
    if request.is_nobodys() {
        return "boot".to_owned();
    }
    format!("{} {}", request.method, request.uri.path())
}

fn title(request: &str, took: Duration, function: &str, call: &str) -> CString {
    let took = took.as_millis();
    let separator = if function.is_empty() { "" } else { " " };
    let text = format!("{request} blocked the event loop for {took} ms, {function}{separator}{call}: no other request of this worker could run");
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}
