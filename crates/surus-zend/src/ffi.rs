//! The Rust side of `csrc/bridge.h`.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulong, c_void};

#[repr(C)]
pub(crate) struct Isolate {
    _private: [u8; 0],
}

#[repr(C)]
pub(crate) struct Task {
    _private: [u8; 0],
}

/// `surus_str`: borrowed bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Str {
    pub(crate) ptr: *const c_char,
    pub(crate) len: usize,
}

impl Str {
    pub(crate) fn new(bytes: &[u8]) -> Str {
        Str {
            ptr: bytes.as_ptr().cast(),
            len: bytes.len(),
        }
    }

    /// # Safety
    /// The bytes must outlive `'a`; C guarantees that for the duration of a call.
    pub(crate) unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: a surus_str holds a pointer to `len` readable bytes.
        unsafe { std::slice::from_raw_parts(self.ptr.cast(), self.len) }
    }
}

#[repr(C)]
pub(crate) struct RequestInfo {
    pub(crate) method: Str,
    pub(crate) uri: Str,
    pub(crate) path: Str,
    pub(crate) query: Str,
    pub(crate) content_type: Str,
    pub(crate) cookie: Str,
    pub(crate) authorization: Str,
    pub(crate) script: Str,
    pub(crate) content_length: i64,
    pub(crate) proto_num: c_int,
}

/// `res_nsearch` of libc.
pub(crate) type ResolverCall =
    unsafe extern "C" fn(*mut c_void, *const c_char, c_int, c_int, *mut c_uchar, c_int) -> c_int;

/// `surus_resolver`: the settings in a resolver's state.
#[repr(C)]
pub(crate) struct Resolver {
    pub(crate) retrans: c_int,
    pub(crate) retry: c_int,
    pub(crate) options: c_ulong,
    pub(crate) count: c_int,
    pub(crate) servers: [[u8; 16]; 3],
}

/// `surus_work`: the next work of a task.
pub(crate) type Work = c_int;
/// `surus_event`: why a task has returned to the event loop.
pub(crate) type Event = c_int;
/// `surus_outcome`: how the work of a task has ended.
pub(crate) type Outcome = c_int;
/// `surus_cancel`: why a request must end.
pub(crate) type Cancel = c_int;

pub(crate) const RUN_CLASSIC: c_int = 1;
pub(crate) const RUN_BOOT: c_int = 2;
pub(crate) const RUN_CALL: c_int = 3;
pub(crate) const RUN_UNBOOT: c_int = 4;
pub(crate) const RUN_SCRIPT: c_int = 5;
pub(crate) const RUN_REFRESH: c_int = 6;
pub(crate) const RUN_SNAPSHOT: c_int = 8;

pub(crate) const DONE: c_int = 0;
pub(crate) const PARKED: c_int = 1;
pub(crate) const PREEMPTED: c_int = 2;
pub(crate) const YIELDED: c_int = 4;
pub(crate) const EXHAUSTED: c_int = 5;

pub(crate) const FATAL: c_int = 1;
pub(crate) const CANCELLED: c_int = 2;
pub(crate) const EXCEPTION: c_int = 3;

pub(crate) const CANCEL_NONE: c_int = 0;
pub(crate) const CANCEL_TIMEOUT: c_int = 1;
pub(crate) const CANCEL_CLIENT: c_int = 2;
pub(crate) const CANCEL_SHUTDOWN: c_int = 3;
pub(crate) const CANCEL_JOB: c_int = 4;

pub(crate) const TIME_OVER: c_int = 0;
pub(crate) const WOKEN: c_int = 1;
pub(crate) const MUST_END: c_int = 2;
pub(crate) const CANNOT_WAIT: c_int = 3;
pub(crate) const WEBSOCKET_OVER: c_int = 4;
pub(crate) const NOT_TEXT: c_int = 5;

pub(crate) const OFFLOAD_CUT: c_int = 0;
pub(crate) const OFFLOAD_ANSWERED: c_int = 1;
pub(crate) const OFFLOAD_REFUSED: c_int = 2;
pub(crate) const OFFLOAD_LATE: c_int = 3;
pub(crate) const OFFLOAD_FAILED: c_int = 4;

pub(crate) const QUEUE_CUT: c_int = 0;
pub(crate) const QUEUE_ANSWERED: c_int = 1;
pub(crate) const QUEUE_REFUSED: c_int = 2;

#[repr(C)]
pub(crate) struct IsolateStats {
    pub(crate) memory_usage: usize,
    pub(crate) memory_peak: usize,
    pub(crate) memory_held: usize,
}

/// A value in the store.
#[repr(C)]
pub(crate) struct Stored {
    pub(crate) kind: c_int,
    pub(crate) is_kept: bool,
    pub(crate) number: i64,
    pub(crate) bytes: Str,
}

#[repr(C)]
pub(crate) struct StoreStep {
    pub(crate) kind: c_int,
    pub(crate) is_kept: bool,
    pub(crate) by: i64,
    pub(crate) initial: i64,
    pub(crate) time: i64,
}

/// A message that is published, or was.
#[repr(C)]
pub(crate) struct Message {
    pub(crate) event: Str,
    pub(crate) data: Str,
    pub(crate) except: Str,
    pub(crate) is_binary: bool,
}

pub(crate) const CHANNEL_DONE: c_int = 0;
pub(crate) const CHANNEL_NO_SERVER: c_int = 1;
pub(crate) const CHANNEL_NAME: c_int = 2;
pub(crate) const CHANNEL_NOT_TEXT: c_int = 3;
pub(crate) const CHANNEL_TOO_LARGE: c_int = 4;
pub(crate) const CHANNEL_TOO_MANY: c_int = 5;
pub(crate) const CHANNEL_OVER: c_int = 6;
pub(crate) const CHANNEL_NO_MEMORY: c_int = 7;
pub(crate) const CHANNEL_UNAVAILABLE: c_int = 8;
pub(crate) const CHANNEL_MISSED: c_int = 9;
pub(crate) const CHANNEL_ELSEWHERE: c_int = 10;

pub(crate) const STORE_DONE: c_int = 0;
pub(crate) const STORE_NOT: c_int = 1;
pub(crate) const STORE_TOO_LARGE: c_int = 2;
pub(crate) const STORE_FULL: c_int = 3;
pub(crate) const STORE_UNAVAILABLE: c_int = 4;
pub(crate) const STORE_OTHER: c_int = 5;
pub(crate) const STORE_OVERFLOW: c_int = 6;
pub(crate) const STORE_IF_ABSENT: c_int = 1;
pub(crate) const STORE_IF_PRESENT: c_int = 2;
pub(crate) const STORE_IF_SAME: c_int = 3;

pub(crate) const LOCK_TAKEN: c_int = 0;
pub(crate) const LOCK_BUSY: c_int = 1;
pub(crate) const LOCK_CUT: c_int = 2;
pub(crate) const LOCK_CANNOT_WAIT: c_int = 3;
pub(crate) const LOCK_TOO_MANY: c_int = 4;
pub(crate) const LOCK_UNAVAILABLE: c_int = 5;

/// `surus_taken`: seconds.
#[repr(C)]
pub(crate) struct Taken {
    pub(crate) allowed: bool,
    pub(crate) remaining: i64,
    pub(crate) retry_after: f64,
    pub(crate) reset_after: f64,
}

#[repr(C)]
pub(crate) struct CommandLine {
    pub(crate) ini: *const c_char,
    pub(crate) ini_path: *const c_char,
    pub(crate) executable: *const c_char,
    pub(crate) no_ini: bool,
    pub(crate) tasks: bool,
}

#[repr(C)]
pub(crate) struct Invocation {
    pub(crate) file: *const c_char,
    pub(crate) code: *const c_char,
    pub(crate) argc: c_int,
    pub(crate) argv: *mut *mut c_char,
    pub(crate) switches: u32,
    pub(crate) lint: bool,
    pub(crate) lines: bool,
    pub(crate) begin: *const c_char,
    pub(crate) each: *const c_char,
    pub(crate) end: *const c_char,
    pub(crate) quiet: bool,
}

#[repr(C)]
pub(crate) struct PersistentSettings {
    pub(crate) places: c_uint,
    pub(crate) patience: f64,
    pub(crate) max_idle: c_uint,
    pub(crate) min_idle: c_uint,
    pub(crate) max_age: c_uint,
}

#[repr(C)]
pub(crate) struct PoolFigures {
    pub(crate) kind: Str,
    pub(crate) name: Str,
    pub(crate) max: c_uint,
    pub(crate) idle: c_uint,
    pub(crate) in_use: c_uint,
    pub(crate) waiting: c_uint,
    pub(crate) resets: u64,
    pub(crate) dropped: u64,
    pub(crate) closed: u64,
}

extern "C" {
    pub(crate) fn surus_command_line_start(
        options: *const CommandLine,
        error: *mut c_char,
        error_size: usize,
    ) -> c_int;
    pub(crate) fn surus_task_set_script(task: *mut Task, script: *const Invocation);
    pub(crate) fn surus_task_exit_status(task: *mut Task) -> c_int;
    pub(crate) fn surus_heap_check();
    pub(crate) fn surus_engine_serve_in_turn();
    pub(crate) fn surus_engine_start(
        ini: *const c_char,
        error: *mut c_char,
        error_size: usize,
    ) -> c_int;
    pub(crate) fn surus_engine_enter_worker(slice_us: u64);
    pub(crate) fn surus_persistent_set(to: *const PersistentSettings);
    pub(crate) fn surus_pool_figure(index: usize, to: *mut PoolFigures) -> bool;
    pub(crate) fn surus_persistent_trust(texts: bool);
    pub(crate) fn surus_environment_set(entries: *mut *mut c_char);
    pub(crate) fn surus_php_version() -> *const c_char;
    pub(crate) fn surus_setting_name(next: *mut u32) -> *const c_char;
    pub(crate) fn surus_prepare_self_test(script: *const c_char, length: usize);
    pub(crate) fn surus_isolate_new(
        memory_limit: *const c_char,
        for_snapshots: bool,
        error: *mut *const c_char,
    ) -> *mut Isolate;
    pub(crate) fn surus_isolate_free(isolate: *mut Isolate, clean: bool);
    pub(crate) fn surus_isolate_memory(isolate: *mut Isolate) -> IsolateStats;
    pub(crate) fn surus_count_swaps() -> Swaps;
    pub(crate) fn surus_pages_kept() -> usize;
    pub(crate) fn surus_isolate_touch(isolate: *mut Isolate);
    pub(crate) fn surus_extension_for_processes(
        next: *mut c_uint,
        why: *mut *const c_char,
    ) -> *const c_char;
    pub(crate) fn surus_watch_extensions() -> bool;
    pub(crate) fn surus_watched_change() -> *const c_char;
    pub(crate) fn surus_changes_start() -> bool;
    pub(crate) fn surus_changes_look();
    pub(crate) fn surus_changes_write(path: *const c_char, who: *const c_char) -> bool;
    pub(crate) fn surus_task_new(isolate: *mut Isolate, stack_size: usize) -> *mut Task;
    pub(crate) fn surus_task_free(task: *mut Task);
    pub(crate) fn surus_task_assign(task: *mut Task, work: Work, exchange: *mut c_void);
    pub(crate) fn surus_task_resume(task: *mut Task) -> Event;
    pub(crate) fn surus_task_outcome(task: *const Task) -> Outcome;
    pub(crate) fn surus_task_is_ending(task: *const Task) -> bool;
    pub(crate) fn surus_task_give_up(task: *mut Task);
    pub(crate) fn surus_env_read_begin() -> c_uint;
    pub(crate) fn surus_env_read_end(reader: c_uint);
    pub(crate) fn surus_resolver_settings(state: *const c_void, settings: *mut Resolver);
    pub(crate) fn surus_resolver_search(
        search: ResolverCall,
        settings: *const Resolver,
        name: *const c_char,
        class: c_int,
        kind: c_int,
        answer: *mut c_uchar,
        size: c_int,
        host_error: *mut c_int,
    ) -> c_int;
    pub(crate) fn surus_resolver_tell(state: *mut c_void, host_error: c_int);
    pub(crate) fn surus_task_overtakes(task: *const Task, holder: *const Task) -> bool;
    pub(crate) fn surus_job_is_unwanted(job: *const Task) -> bool;
    pub(crate) fn surus_job_dooms(job: *const Task) -> bool;
    pub(crate) fn surus_task_cancel(task: *mut Task, why: Cancel);
    pub(crate) fn surus_isolate_serve_in_turn(isolate: *mut Isolate, starter: *const c_char);
    pub(crate) fn surus_task_waits(task: *const Task) -> bool;
    pub(crate) fn surus_task_tell(task: *mut Task, more: bool);
    pub(crate) fn surus_task_backtrace(task: *mut Task, title: *const c_char);
    pub(crate) fn surus_task_exchange(task: *const Task) -> *mut c_void;
    pub(crate) fn surus_running_place(text: *mut c_char, size: usize) -> usize;
    pub(crate) fn surus_running_backtrace(title: *const c_char);
    pub(crate) fn surus_stall_function(text: *mut c_char, size: usize) -> usize;
    pub(crate) fn surus_stall_note();
    pub(crate) fn surus_task_place(task: *mut Task, text: *mut c_char, size: usize) -> usize;
    pub(crate) fn surus_isolate_files(isolate: *mut Isolate, list: *mut c_void);
    pub(crate) fn surus_current_exchange() -> *mut c_void;
    pub(crate) fn surus_running_task() -> *mut Task;
    pub(crate) fn surus_descriptor_closed(waiter: *mut Task, descriptor: c_int);
    pub(crate) fn surus_can_park() -> bool;
    pub(crate) fn surus_select_is_refused() -> bool;
    pub(crate) fn surus_park_for_lock();
    pub(crate) fn surus_park() -> Cancel;
    pub(crate) fn surus_is_over() -> bool;
}

/// `surus_in_process_request`: the request of a script to its application.
#[repr(C)]
pub(crate) struct InProcessRequest {
    pub(crate) method: Str,
    pub(crate) target: Str,
    pub(crate) head: Str,
    pub(crate) body: Str,
}

/// `surus_in_process_answer`
#[repr(C)]
pub(crate) struct InProcessAnswer {
    pub(crate) status: c_int,
    pub(crate) head: Str,
    pub(crate) body: Str,
}

/// `surus_log_entry`: a line of the application for the log.
#[repr(C)]
pub(crate) struct LogEntry {
    pub(crate) severity: c_int,
    pub(crate) level: Str,
    pub(crate) channel: Str,
    pub(crate) message: Str,
    pub(crate) context: Str,
}

pub(crate) const POSTGRES_BOOL: c_int = 1;
pub(crate) const POSTGRES_INT: c_int = 2;
pub(crate) const POSTGRES_FLOAT: c_int = 3;
pub(crate) const POSTGRES_TEXT: c_int = 4;
pub(crate) const POSTGRES_ARRAY: c_int = 5;

pub(crate) const POSTGRES_CUT: c_int = 0;
pub(crate) const POSTGRES_ROWS: c_int = 1;
pub(crate) const POSTGRES_FAILED: c_int = 2;

/// `surus_postgres_value`: a parameter of a statement.
#[repr(C)]
pub(crate) struct PostgresValue {
    pub(crate) kind: c_int,
    pub(crate) integer: i64,
    pub(crate) number: f64,
    pub(crate) text: Str,
}

/// `surus_postgres_values`: all of them.
#[repr(C)]
pub(crate) struct PostgresValues {
    pub(crate) values: *const PostgresValue,
    pub(crate) count: usize,
}

/// `surus_postgres_rows`: a result.
#[repr(C)]
pub(crate) struct PostgresRows {
    pub(crate) data: Str,
    pub(crate) count: usize,
    pub(crate) columns: usize,
    pub(crate) affected: u64,
    pub(crate) rolled_back: bool,
}

/// `surus_postgres_notification`: what a listener has received.
#[repr(C)]
pub(crate) struct PostgresNotification {
    pub(crate) payload: Str,
    pub(crate) process: c_int,
    pub(crate) missed: bool,
}

/// `surus_postgres_column`: a column of it.
#[repr(C)]
pub(crate) struct PostgresColumn {
    pub(crate) name: Str,
    pub(crate) kind: u32,
    pub(crate) binary: bool,
}

/// `surus_postgres_failure`: why there is no result.
#[repr(C)]
pub(crate) struct PostgresFailure {
    pub(crate) kind: c_int,
    pub(crate) position: i64,
    pub(crate) message: Str,
    pub(crate) state: Str,
    pub(crate) detail: Str,
    pub(crate) hint: Str,
    pub(crate) constraint: Str,
    pub(crate) table: Str,
    pub(crate) column: Str,
}

/// `surus_refusal`: why input is refused.
#[repr(C)]
pub(crate) struct Refusal {
    pub(crate) status: c_int,
    pub(crate) text: Str,
    pub(crate) accepted: Str,
}

/// `surus_route`: one of the application, while it boots.
#[repr(C)]
pub(crate) struct Route {
    pub(crate) methods: Str,
    pub(crate) pattern: Str,
    pub(crate) host: Str,
    pub(crate) headers: Str,
    pub(crate) about: Str,
    pub(crate) origin: Str,
    pub(crate) index: i64,
    pub(crate) timeout: f64,
}

/// `surus_input`: the cells of validated input, and the memory of their texts.
#[repr(C)]
pub(crate) struct Input {
    pub(crate) cells: *const surus_schema::Cell,
    pub(crate) text: [*const c_char; 2],
}

/// How often state was swapped since the process started: never while the same isolate, or the same fiber, runs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swaps {
    /// Isolates that were entered.
    pub isolates: u64,
    /// Fibers whose state was saved.
    pub fibers: u64,
}

/// Writes the part of a message that fits, with a NUL after it.
pub(crate) fn write_message(to: &mut [u8], message: &str) {
    if let Some(room) = to.len().checked_sub(1) {
        let length = message.len().min(room);
        to[..length].copy_from_slice(&message.as_bytes()[..length]);
        to[length] = 0;
    }
}
