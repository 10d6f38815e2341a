//! One worker of the server leads: what runs once per server runs there. It holds a lock on a file that the master has made,
//! which goes with its process, so that another one can take it.

use std::{
    cell::{Cell, OnceCell},
    ffi::CStr,
    fs::File,
    os::fd::{AsRawFd, FromRawFd},
    sync::OnceLock,
};

use crate::high::lifted;

static SHARED: OnceLock<File> = OnceLock::new();

const NAME: &CStr = c"surus-lead";

thread_local! {
    /// Opened by this process: a lock is one of an opening, and those of the master's are shared.
    static OWN: OnceCell<Option<File>> = const { OnceCell::new() };
    static LEADS: Cell<bool> = const { Cell::new(false) };
}

/// Before any fork.
pub(crate) fn start() {
    // SAFETY: a plain system call; the result is checked.
    let file = unsafe { libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC) };
    if file >= 0 {
        // SAFETY: a new descriptor that nobody else owns.
        let _ = SHARED.set(lifted(unsafe { File::from_raw_fd(file) }));
    }
}

fn flock(file: &File, operation: libc::c_int) -> bool {
    // SAFETY: a plain system call on an open file.
    unsafe { libc::flock(file.as_raw_fd(), operation) == 0 }
}

/// Whether this worker leads; it does from now on if no other one does.
pub(crate) fn take() -> bool {
    if LEADS.get() {
        return true;
    }
    let locked = OWN.with(|own| {
        let file = own.get_or_init(|| {
            let shared = SHARED.get()?;
            let path = format!("/proc/self/fd/{}", shared.as_raw_fd());
            let file = File::open(path);
            if let Err(error) = &file {
                tracing::error!(%error, "no worker can lead: timers do not run");
            }
            file.ok().map(lifted)
        });
        file.as_ref()
            .is_some_and(|file| flock(file, libc::LOCK_EX | libc::LOCK_NB))
    });
    LEADS.set(locked);
    locked
}

/// Whether this worker leads.
pub(crate) fn is_taken() -> bool {
    LEADS.get()
}

/// Another worker may lead from now on.
pub(crate) fn leave() {
    if LEADS.replace(false) {
        OWN.with(|own| {
            if let Some(Some(file)) = own.get() {
                flock(file, libc::LOCK_UN);
            }
        });
    }
}
