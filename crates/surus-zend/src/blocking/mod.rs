//! libc calls that would block, as futures.
//!
//! The executable exports functions with libc's names, so libphp, libpq, libcurl and every extension call ours. On a
//! PHP stack that may park, they park the task until the call would not block; anywhere else they call libc's. They
//! only wait where the call would have waited (`O_NONBLOCK`, `MSG_DONTWAIT`, `SO_RCVTIMEO` are respected), and a hook
//! may always refuse and call the real function: a hook adds no failures of its own.
//!
//! Layout: [`park_on`] turns any future into a blocking call · `real` finds libc's functions · `ready` waits for
//! descriptors · `registered` keeps their registrations · `sessions` reads what databases are asked · `closing` ends waits for a descriptor that is closed · `asking` builds a blocking call from non-blocking calls · `sever` ends connections whose wait was
//! interrupted · the rest are the hooks by family. `csrc/os/*.c` have the hooks for process state.

mod asking;
mod children;
mod closing;
mod connect;
mod descriptor;
mod foreign_lock;
pub(crate) mod helper;
mod hosts;
mod line;
mod load;
mod lock;
mod multiplex;
mod names;
mod partners;
mod pause;
mod reads;
mod ready;
pub(crate) mod real;
mod receive;
mod registered;
mod resolver;
mod send;
mod sessions;
mod sever;
mod sleep;
pub(crate) mod stream;

use std::{
    cell::Cell,
    future::Future,
    pin::{pin, Pin},
    task::{Context, Poll},
};

use crate::ffi;

/// The request was cancelled while it waited: return an error to PHP immediately.
#[derive(Debug)]
pub(crate) struct Cancelled;

type Waiting<'a> = dyn Future<Output = ()> + 'a;

thread_local! {
    /// The future that the task that has just parked waits for. It is on the parked stack.
    static PARKED: Cell<Option<*mut Waiting<'static>>> = const { Cell::new(None) };
}

/// The future that a parked task waits for.
pub(crate) struct Parked(Option<*mut Waiting<'static>>);

impl Parked {
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(waiting) = self.0 else {
            return Poll::Ready(());
        };
        // SAFETY: the future is pinned on the parked stack, which does not run and is not freed before its task is
        // resumed. This value is dropped before the resume, as in `Task::drive_watched`.
        unsafe { Pin::new_unchecked(&mut *waiting) }.poll(cx)
    }
}

/// The future that the task that has just parked waits for.
pub(crate) fn take_parked() -> Parked {
    Parked(PARKED.take())
}

/// Whether the caller is on a PHP stack that may park now.
pub(crate) fn can_park() -> bool {
    // SAFETY: reads the engine's state; callable anywhere.
    unsafe { ffi::surus_can_park() }
}

/// Parks the current PHP stack until `future` is ready. If that is impossible, the future is dropped and the call
/// counts as cancelled: check [`can_park`] first.
pub(crate) fn park_on<F: Future>(future: F) -> Result<F::Output, Cancelled> {
    if !can_park() {
        return Err(Cancelled);
    }
    let output = Cell::new(None);
    let done = Cell::new(false);
    let cancelled = {
        let mut waiting = pin!(async {
            output.set(Some(future.await));
            done.set(true);
        });
        let pointer: *mut Waiting<'_> = std::ptr::from_mut(unsafe {
            // SAFETY: the future is not moved; only a pinned reference is made from the pointer.
            waiting.as_mut().get_unchecked_mut()
        });
        loop {
            // SAFETY: only the lifetime changes; see `Parked::poll` for why the pointer stays valid.
            PARKED.set(Some(unsafe {
                std::mem::transmute::<*mut Waiting<'_>, *mut Waiting<'static>>(pointer)
            }));
            // SAFETY: `can_park` was true. Nothing with a destructor is lost: a parked task is always resumed.
            let why = unsafe { ffi::surus_park() };
            PARKED.set(None);
            // Neither done nor cancelled: the client disconnected and the script ignores that. Continue to wait.
            if done.get() || why != ffi::CANCEL_NONE {
                break why != ffi::CANCEL_NONE;
            }
        }
    };
    match output.into_inner() {
        Some(output) if !cancelled => {
            asking::has_waited();
            Ok(output)
        }
        _ => Err(Cancelled),
    }
}

/// Parks the current PHP stack until `future` is ready or the request was cancelled, for a wait that cannot fail: the
/// caller checks again. It has checked that the task may park.
pub(crate) fn park_always(future: impl Future<Output = ()>) {
    let mut waiting = pin!(future);
    let mut waiting = pin!(async { waiting.as_mut().await });
    let pointer: *mut Waiting<'_> = std::ptr::from_mut(unsafe {
        // SAFETY: the future is not moved; only a pinned reference is made from the pointer.
        waiting.as_mut().get_unchecked_mut()
    });
    // SAFETY: only the lifetime changes. The future lives on the parked stack until the task is resumed.
    PARKED.set(Some(unsafe {
        std::mem::transmute::<*mut Waiting<'_>, *mut Waiting<'static>>(pointer)
    }));
    // SAFETY: the caller has checked that the task may park. A parked task is always resumed before its stack is freed
    // (`Task::drive_watched`): what the future has registered goes when it is dropped below.
    unsafe { ffi::surus_park_for_lock() };
    PARKED.set(None);
}
