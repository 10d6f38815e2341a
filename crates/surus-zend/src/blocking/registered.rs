//! Registrations with the event loop that outlive a wait.
//!
//! A connection to a database is waited for with each query. It is registered once, edge-triggered, until it is closed,
//! and what the event loop and the calls that read have told of it is remembered. So a wait needs no system call of its
//! own: neither to register, nor to ask before it whether an answer is there already, nor to ask after it which event
//! has ended it.
//!
//! Only connections are kept ([`is_conversation`]): bytes of a stream that one request reads. Everything else is
//! registered for a single wait (`ready.rs`).

use std::{
    cell::{Cell, RefCell},
    ffi::c_int,
    future::poll_fn,
    io,
    os::fd::{AsRawFd, RawFd},
    pin::pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use tokio::{
    io::{unix::AsyncFd, Interest, Ready},
    task::unconstrained,
};

use super::{
    closing::Readiness,
    real::{errno, set_errno},
    sessions,
    sever::is_conversation,
};

struct Borrowed(RawFd);

impl AsRawFd for Borrowed {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

struct Kept {
    fd: AsyncFd<Borrowed>,
    /// Everything that had come was read, and the event loop has not told of more: reading would wait.
    drained: Cell<bool>,
    /// An event that has come after that has ended a wait, or a call has looked at bytes, and nothing was read since: there
    /// are bytes to read.
    told: Cell<bool>,
    /// A wait uses it: there is one place for a waker.
    in_use: Cell<bool>,
}

impl Kept {
    fn new(fd: RawFd) -> io::Result<Kept> {
        let interest = Interest::READABLE | Interest::PRIORITY;
        // SAFETY: the descriptor is open, and `forget` ends the registration before it is closed.
        let watched = unsafe { AsyncFd::register_with_interest(Borrowed(fd), interest) };
        Ok(Kept {
            fd: watched.map_err(|error| error.into_parts().1)?,
            drained: Cell::new(true),
            told: Cell::new(false),
            in_use: Cell::new(false),
        })
    }

    /// What the event loop has told since it was last cleared. Not while a wait uses it.
    fn events(&self, clear: bool) -> Option<Ready> {
        // Unconstrained: a task that has used up its budget would learn that there is nothing.
        let events = pin!(unconstrained(poll_fn(|cx| {
            self.fd.poll_read_ready(cx).map(|guard| {
                let mut guard = guard.ok()?;
                let ready = guard.ready();
                if clear {
                    guard.clear_ready();
                }
                Some(ready)
            })
        })));
        match std::future::Future::poll(events, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(ready) => Some(ready.unwrap_or(Ready::ALL)),
            Poll::Pending => None,
        }
    }

    fn is_quiet(&self) -> bool {
        if self.in_use.get() || !self.drained.get() {
            return false;
        }
        self.drained.set(self.events(false).is_none());
        self.drained.get()
    }

    /// What was known does not count any more.
    fn is_unknown(&self) {
        self.drained.set(false);
        self.told.set(false);
    }

    /// Reading would wait at this moment: events of before are over.
    fn is_empty_now(&self) {
        self.told.set(false);
        let is_free = !self.in_use.get();
        if is_free {
            self.events(true);
        }
        self.drained.set(is_free);
    }
}

/// The limit of the table; PHP's descriptors are low.
const MOST: usize = 1 << 16;

thread_local! {
    /// By descriptor.
    static KEPT: RefCell<Vec<Option<Rc<Kept>>>> = const { RefCell::new(Vec::new()) };
}

fn find(fd: RawFd) -> Option<Rc<Kept>> {
    let index = usize::try_from(fd).ok()?;
    KEPT.try_with(|all| all.borrow().get(index)?.clone()).ok()?
}

/// The use of a kept registration by one wait.
pub(super) struct Lease(Rc<Kept>);

impl Lease {
    /// For a wait to read. `None`: the descriptor must be registered for this wait alone.
    pub(super) fn take(fd: RawFd) -> Option<Lease> {
        let kept = match find(fd) {
            Some(kept) => kept,
            None => keep(fd)?,
        };
        if kept.in_use.get() || !kept.drained.get() {
            return None;
        }
        kept.in_use.set(true);
        Some(Lease(kept))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.in_use.set(false);
    }
}

impl Readiness for Lease {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.fd.poll_read_ready(cx).map(|guard| {
            let only_bytes = guard.is_ok_and(|guard| guard.ready() == Ready::READABLE);
            self.0.told.set(only_bytes && self.0.drained.get());
            self.0.drained.set(false);
        })
    }
}

fn keep(fd: RawFd) -> Option<Rc<Kept>> {
    let index = usize::try_from(fd).ok().filter(|index| *index < MOST)?;
    if !is_conversation(fd) {
        return None;
    }
    let kept = Rc::new(Kept::new(fd).ok()?);
    KEPT.with_borrow_mut(|all| {
        if all.len() <= index {
            all.resize_with(index + 1, || None);
        }
        all[index] = Some(kept.clone());
    });
    Some(kept)
}

/// Nothing can be read from the descriptor, as far as the event loop has told by its last turn.
pub(super) fn is_quiet(fd: RawFd) -> bool {
    find(fd).is_some_and(|kept| kept.is_quiet())
}

/// Whether there are bytes to read, as the wait that has just ended was told, or a call that has looked at them.
pub(super) fn has_bytes(fd: RawFd) -> bool {
    find(fd).is_some_and(|kept| kept.told.get())
}

/// The kernel has just said that there is nothing to read.
pub(super) fn is_empty_now(fd: RawFd) {
    if let Some(kept) = find(fd) {
        kept.is_empty_now();
    }
}

/// What was known of the descriptor does not count any more.
pub(super) fn is_unknown(fd: RawFd) {
    if let Some(kept) = find(fd) {
        kept.is_unknown();
    }
}

/// A call has tried to receive `size` bytes. `errno` is unchanged.
pub(super) fn has_received(fd: RawFd, size: usize, flags: c_int, result: isize) -> isize {
    let Some(kept) = find(fd) else { return result };
    let before = errno();
    const OTHER: c_int = libc::MSG_OOB | libc::MSG_ERRQUEUE;
    match usize::try_from(result) {
        _ if flags & OTHER != 0 => {}
        Ok(count) if flags & libc::MSG_PEEK != 0 => kept.told.set(count > 0),
        // A stream that returns less than it could has no more.
        Ok(count) if count > 0 && count < size => kept.is_empty_now(),
        Err(_) if before == libc::EAGAIN => kept.is_empty_now(),
        _ => kept.is_unknown(),
    }
    drop(kept);
    set_errno(before);
    result
}

/// Ends the registration: the descriptor is closed, or its number was given to another connection.
pub(super) fn forget(fd: RawFd) {
    sessions::forget(fd);
    let Ok(index) = usize::try_from(fd) else {
        return;
    };
    let kept = KEPT.try_with(|all| all.borrow_mut().get_mut(index).and_then(Option::take));
    if let Ok(Some(kept)) = kept {
        let before = errno();
        drop(kept);
        set_errno(before);
    }
}

/// A descriptor that a library of C has closed without `close`.
#[no_mangle]
extern "C" fn surus_rs_is_new(fd: c_int) {
    forget(fd);
}

/// In the child of a fork: the event loop is the parent's, and what the child closes stays open there.
#[no_mangle]
extern "C" fn surus_rs_leave_registrations() {
    let kept = KEPT.try_with(|all| std::mem::take(&mut *all.borrow_mut()));
    std::mem::forget(kept);
}

#[no_mangle]
extern "C" fn surus_rs_is_quiet(fd: c_int) -> bool {
    let before = errno();
    let is = is_quiet(fd);
    set_errno(before);
    is
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        io::{self, Write},
        net::{TcpListener, TcpStream},
        os::fd::AsRawFd,
    };

    use super::{forget, has_bytes, has_received, is_quiet, Lease};
    use crate::blocking::{closing::Readiness, real::set_errno};

    fn connected() -> io::Result<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let near = TcpStream::connect(listener.local_addr()?)?;
        Ok((near, listener.accept()?.0))
    }

    async fn wait(lease: Lease) {
        poll_fn(|cx| lease.poll(cx)).await;
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_was_told_and_read_is_remembered() -> io::Result<()> {
        let (near, mut far) = connected()?;
        let fd = near.as_raw_fd();
        assert!(!is_quiet(fd), "nobody has waited for it");
        for _ in 0..3 {
            let Some(lease) = Lease::take(fd) else {
                panic!("a connection is kept");
            };
            assert!(Lease::take(fd).is_none(), "one wait at a time");
            far.write_all(b"bytes")?;
            wait(lease).await;
            assert!(has_bytes(fd) && !is_quiet(fd));
            // All that there was, or perhaps a part.
            has_received(fd, 5, 0, 5);
            assert!(!has_bytes(fd) && !is_quiet(fd) && Lease::take(fd).is_none());
            has_received(fd, 8, 0, 5);
            assert!(!has_bytes(fd) && is_quiet(fd));
            set_errno(libc::EAGAIN);
            has_received(fd, 8, 0, -1);
            assert!(is_quiet(fd));
        }
        forget(fd);
        assert!(!is_quiet(fd));
        Ok(())
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_end_is_not_taken_for_bytes() -> io::Result<()> {
        let (near, far) = connected()?;
        let fd = near.as_raw_fd();
        let lease = Lease::take(fd);
        drop(far);
        wait(lease.unwrap_or_else(|| panic!("a connection is kept"))).await;
        assert!(!has_bytes(fd) && !is_quiet(fd));
        set_errno(libc::EAGAIN);
        has_received(fd, 8, 0, -1);
        assert!(!is_quiet(fd), "the event loop does not tell it again");
        forget(fd);
        Ok(())
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_number_that_is_used_again_is_another_connection() -> io::Result<()> {
        let (near, _far) = connected()?;
        let fd = near.as_raw_fd();
        assert!(Lease::take(fd).is_some() && is_quiet(fd));
        drop(near);
        let (next, mut far) = connected()?;
        assert!(!is_quiet(fd));
        let Some(lease) = Lease::take(next.as_raw_fd()) else {
            panic!("a connection is kept");
        };
        far.write_all(b"bytes")?;
        wait(lease).await;
        assert!(has_bytes(next.as_raw_fd()));
        forget(next.as_raw_fd());
        Ok(())
    }
}
