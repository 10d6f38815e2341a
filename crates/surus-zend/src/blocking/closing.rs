//! `close`, `dup2`, `dup3`: wake the requests that wait for the descriptor.
//!
//! The number of a closed descriptor is given out again at once. Who still waits for it would wait for another
//! request's connection, and end that one's registration with the event loop together with its own. So closing ends
//! all waits for the descriptor first: the calls fail with `EBADF`, and the log names both requests.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    ffi::c_int,
    os::fd::RawFd,
    ptr::null_mut,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use super::{
    real::{errno, real, set_errno},
    registered::forget,
};
use crate::ffi;

/// The task that is about to wait.
#[derive(Clone, Copy)]
pub(super) struct Waiter(*mut ffi::Task);

impl Waiter {
    /// The running task: to be called before it parks.
    pub(super) fn running() -> Waiter {
        // SAFETY: reads the engine's state.
        Waiter(unsafe { ffi::surus_running_task() })
    }
}

/// One wait for one descriptor, with what must end when the descriptor is closed.
struct Entry {
    waiter: Waiter,
    closed: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    registration: RefCell<Option<Box<dyn Readiness>>>,
}

/// Whether a descriptor is ready; dropping it ends its registration with the event loop.
pub(super) trait Readiness {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<()>;
}

type Entries = HashMap<RawFd, Vec<Rc<Entry>>>;

thread_local! {
    /// The number of entries: most descriptors that are closed have none.
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static WAITS: RefCell<Entries> = RefCell::new(HashMap::new());
}

/// A descriptor that is waited for, until this is dropped.
pub(super) struct Watch {
    fd: RawFd,
    entry: Rc<Entry>,
}

impl Watch {
    pub(super) fn new(fd: RawFd, waiter: Waiter, registration: Box<dyn Readiness>) -> Watch {
        let entry = Rc::new(Entry {
            waiter,
            closed: Cell::new(false),
            waker: RefCell::new(None),
            registration: RefCell::new(Some(registration)),
        });
        WAITS.with_borrow_mut(|all| all.entry(fd).or_default().push(entry.clone()));
        COUNT.set(COUNT.get() + 1);
        Watch { fd, entry }
    }

    /// The descriptor, if it was closed meanwhile.
    pub(super) fn closed(&self) -> Option<RawFd> {
        self.entry.closed.get().then_some(self.fd)
    }

    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.entry.closed.get() {
            return Poll::Ready(());
        }
        let mut waker = self.entry.waker.borrow_mut();
        match waker.as_mut() {
            Some(waker) => waker.clone_from(cx.waker()),
            None => *waker = Some(cx.waker().clone()),
        }
        let registration = self.entry.registration.borrow();
        registration
            .as_ref()
            .map_or(Poll::Pending, |one| one.poll(cx))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Not while the table is borrowed: it may close a duplicate.
        let registration = self.entry.registration.borrow_mut().take();
        drop(registration);
        if self.entry.closed.get() {
            return; // it is not in the table any more
        }
        COUNT.set(COUNT.get() - 1);
        WAITS.with_borrow_mut(|all| {
            if let Some(entries) = all.get_mut(&self.fd) {
                entries.retain(|entry| !Rc::ptr_eq(entry, &self.entry));
                if entries.is_empty() {
                    all.remove(&self.fd);
                }
            }
        });
    }
}

/// Ends all waits for a descriptor.
fn wake(fd: RawFd) {
    let entries = WAITS.try_with(|all| all.borrow_mut().remove(&fd));
    let Ok(Some(entries)) = entries else { return };
    let before = errno();
    COUNT.set(COUNT.get() - entries.len());
    for entry in entries {
        entry.closed.set(true);
        let registration = entry.registration.borrow_mut().take();
        drop(registration);
        if let Some(waker) = entry.waker.borrow_mut().take() {
            waker.wake();
        }
        if !entry.waiter.0.is_null() {
            // SAFETY: the task is parked in this wait, or about to be resumed: it has not ended.
            unsafe { ffi::surus_descriptor_closed(entry.waiter.0, fd) };
        }
    }
    set_errno(before);
}

/// The task of the wait with this number for a descriptor; null after the last one.
#[no_mangle]
extern "C" fn surus_rs_waiter_of(fd: c_int, number: usize) -> *mut ffi::Task {
    if COUNT.get() == 0 {
        return null_mut();
    }
    WAITS.with_borrow(|all| {
        let entry = all.get(&fd).and_then(|entries| entries.get(number));
        entry.map_or(null_mut(), |entry| entry.waiter.0)
    })
}

/// Ends all waits for a descriptor, and its registration with the event loop.
fn end_all(fd: RawFd) {
    if COUNT.get() > 0 {
        wake(fd);
    }
    forget(fd);
}

#[no_mangle]
unsafe extern "C" fn close(fd: c_int) -> c_int {
    end_all(fd);
    let real = real!(close: unsafe extern "C" fn(c_int) -> c_int);
    // SAFETY: the caller's argument.
    unsafe { real(fd) }
}

/// Closes the other descriptor, too.
#[no_mangle]
unsafe extern "C" fn dup2(from: c_int, to: c_int) -> c_int {
    let real = real!(dup2: unsafe extern "C" fn(c_int, c_int) -> c_int);
    if from != to {
        end_all(to);
    }
    // SAFETY: the caller's arguments.
    unsafe { real(from, to) }
}

#[no_mangle]
unsafe extern "C" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    let real = real!(dup3: unsafe extern "C" fn(c_int, c_int, c_int) -> c_int);
    if from != to {
        end_all(to);
    }
    // SAFETY: the caller's arguments.
    unsafe { real(from, to, flags) }
}
