//! One worker of the server leads: what runs once per server runs there. It holds a lock on a file that the master has made,
//! which goes with its process, so that another one can take it. Webhooks have a lock of their own: a timer may run long after
//! others have gone on.

use std::{
    cell::{Cell, OnceCell},
    ffi::CStr,
    fs::{File, OpenOptions},
    os::{
        fd::{AsRawFd, FromRawFd},
        unix::fs::FileExt,
    },
    sync::OnceLock,
};

use crate::high::lifted;

/// What is done once, by one worker: each has a file of its own, so that one that goes on in a worker that ends holds up none
/// of the others.
#[derive(Clone, Copy)]
enum Work {
    /// Its file also says what has begun.
    Timers,
    Webhooks,
}

static SHARED: [OnceLock<File>; 2] = [OnceLock::new(), OnceLock::new()];

fn shared(work: Work) -> Option<&'static File> {
    SHARED[work as usize].get()
}

const NAME: &CStr = c"surus-lead";

/// What runs once, and has begun. It is in the file, so that it outlives the worker that leads, which alone changes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Begun {
    /// When the server began to serve, in seconds since 1970; 0: it has not.
    pub(crate) server: f64,
    /// When the version of the application did that serves.
    pub(crate) version: f64,
    /// What was due by then is over for versions that are loaded later, in seconds since 1970.
    pub(crate) passed: f64,
    /// A bit for each timer of this version that has begun.
    timers: [u8; TIMERS],
}

/// Timers of an application that are not known to have begun when another worker leads: those beyond 2,048.
const TIMERS: usize = 256;
const NUMBERS: usize = 3;
const LENGTH: usize = NUMBERS * 8 + TIMERS;

impl Begun {
    /// A version begins to serve.
    pub(crate) fn clear(&mut self) {
        self.timers = [0; TIMERS];
    }

    pub(crate) fn has(&self, timer: usize) -> bool {
        let byte = self.timers.get(timer / 8);
        byte.is_some_and(|byte| byte & (1 << (timer % 8)) != 0)
    }

    pub(crate) fn add(&mut self, timer: usize) {
        if let Some(byte) = self.timers.get_mut(timer / 8) {
            *byte |= 1 << (timer % 8);
        }
    }
}

/// As the file has it.
pub(crate) fn begun() -> Begun {
    let mut bytes = [0; LENGTH];
    if let Some(file) = shared(Work::Timers) {
        // Nothing has begun before there is something to read.
        let _ = file.read_exact_at(&mut bytes, 0);
    }
    let number = |at: usize| {
        let mut own = [0; 8];
        own.copy_from_slice(&bytes[at * 8..at * 8 + 8]);
        f64::from_le_bytes(own)
    };
    let mut timers = [0; TIMERS];
    timers.copy_from_slice(&bytes[NUMBERS * 8..]);
    Begun {
        server: number(0),
        version: number(1),
        passed: number(2),
        timers,
    }
}

/// For the worker that leads.
pub(crate) fn set_begun(begun: Begun) {
    let mut bytes = [begun.server, begun.version, begun.passed]
        .map(f64::to_le_bytes)
        .concat();
    bytes.extend(begun.timers);
    if let Some(file) = shared(Work::Timers) {
        if let Err(error) = file.write_all_at(&bytes, 0) {
            tracing::error!(%error, "what runs once may run again when a worker is replaced");
        }
    }
}

thread_local! {
    /// Opened by this process: a lock is one of an opening, and those of the master's are shared.
    static OWN: [OnceCell<Option<File>>; 2] = const { [OnceCell::new(), OnceCell::new()] };
    static LEADS: [Cell<bool>; 2] = const { [Cell::new(false), Cell::new(false)] };
}

/// Before any fork.
pub(crate) fn start() {
    for shared in &SHARED {
        // SAFETY: a plain system call; the result is checked.
        let file = unsafe { libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC) };
        if file >= 0 {
            // SAFETY: a new descriptor that nobody else owns.
            let _ = shared.set(lifted(unsafe { File::from_raw_fd(file) }));
        }
    }
}

fn flock(file: &File, operation: libc::c_int) -> bool {
    // SAFETY: a plain system call on an open file.
    unsafe { libc::flock(file.as_raw_fd(), operation) == 0 }
}

fn take_of(work: Work) -> bool {
    if leads(work) {
        return true;
    }
    let locked = OWN.with(|own| {
        let file = own[work as usize].get_or_init(|| {
            let shared = shared(work)?;
            let path = format!("/proc/self/fd/{}", shared.as_raw_fd());
            let file = OpenOptions::new().read(true).write(true).open(path);
            if let Err(error) = &file {
                tracing::error!(%error, "no worker can lead: timers do not run, or webhooks are not sent");
            }
            file.ok().map(lifted)
        });
        file.as_ref()
            .is_some_and(|file| flock(file, libc::LOCK_EX | libc::LOCK_NB))
    });
    LEADS.with(|leads| leads[work as usize].set(locked));
    locked
}

fn leads(work: Work) -> bool {
    LEADS.with(|leads| leads[work as usize].get())
}

fn leave_of(work: Work) {
    if LEADS.with(|leads| leads[work as usize].replace(false)) {
        OWN.with(|own| {
            if let Some(Some(file)) = own[work as usize].get() {
                flock(file, libc::LOCK_UN);
            }
        });
    }
}

/// Whether this worker leads its server: what is done once for all workers is done by it. It does from now on if no other one does.
#[must_use]
pub(crate) fn take() -> bool {
    take_of(Work::Timers)
}

/// Whether this worker leads.
pub(crate) fn is_taken() -> bool {
    leads(Work::Timers)
}

/// Another worker may lead from now on.
pub fn leave() {
    leave_of(Work::Timers);
}

/// Whether this worker tells of what all workers see. It does from now on if no other one does.
#[must_use]
pub fn take_webhooks() -> bool {
    take_of(Work::Webhooks)
}

/// Another worker may tell from now on.
pub fn leave_webhooks() {
    leave_of(Work::Webhooks);
}
