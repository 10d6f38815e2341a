//! Waiting for descriptors on the event loop.

use std::{
    future::{poll_fn, Future},
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    task::{Context, Poll},
    time::Duration,
};

use tokio::io::{unix::AsyncFd, Interest};

use super::{
    closing::{Readiness, Waiter, Watch},
    registered::Lease,
};
use crate::high;

/// A descriptor of PHP, or a duplicate if the event loop already watches the original.
enum Watched {
    Borrowed(RawFd),
    Copy(OwnedFd),
}

impl AsRawFd for Watched {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Watched::Borrowed(fd) => *fd,
            Watched::Copy(fd) => fd.as_raw_fd(),
        }
    }
}

enum Registration {
    /// For this wait alone.
    Single {
        fd: AsyncFd<Watched>,
        read: bool,
        write: bool,
    },
    Kept(Lease),
}

impl Registration {
    fn new(fd: RawFd, read: bool, write: bool) -> io::Result<Registration> {
        let lease = (!write).then(|| Lease::take(fd)).flatten();
        match lease {
            Some(lease) => Ok(Registration::Kept(lease)),
            None => Ok(Registration::Single {
                fd: single(fd, read, write)?,
                read,
                write,
            }),
        }
    }
}

fn single(fd: RawFd, read: bool, write: bool) -> io::Result<AsyncFd<Watched>> {
    let mut interest = if write && !read {
        Interest::WRITABLE
    } else {
        Interest::READABLE
    };
    if read && write {
        interest = Interest::READABLE | Interest::WRITABLE;
    }
    interest |= Interest::PRIORITY;
    // SAFETY: the descriptor is open, and the registration ends with the wait, or when the descriptor is closed.
    let watched = unsafe { AsyncFd::register_with_interest(Watched::Borrowed(fd), interest) };
    let fd = match watched {
        Ok(fd) => fd,
        Err(error) => {
            let (_, error) = error.into_parts();
            if error.raw_os_error() != Some(libc::EEXIST) {
                return Err(error);
            }
            // SAFETY: a plain system call; the result is checked.
            let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, high::BASE) };
            if copy < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: a new descriptor that nobody else owns; it lives as long as its registration.
            unsafe {
                AsyncFd::register_with_interest(Watched::Copy(OwnedFd::from_raw_fd(copy)), interest)
            }
            .map_err(|error| error.into_parts().1)?
        }
    };
    Ok(fd)
}

impl Readiness for Registration {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let (fd, read, write) = match self {
            Registration::Single { fd, read, write } => (fd, *read, *write),
            Registration::Kept(lease) => return lease.poll(cx),
        };
        // Each of read and write readiness has a waker of its own; errors and hang-ups make both ready.
        let read = (read || !write) && fd.poll_read_ready(cx).is_ready();
        let write = write && fd.poll_write_ready(cx).is_ready();
        if read || write {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

/// The result of a wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Ready,
    TimedOut,
    /// Somebody has closed the descriptor: its number may be another one's now.
    Closed(RawFd),
}

/// Waits until one of the descriptors is ready, `(descriptor, for reading, for writing)`. Fails if one cannot be
/// watched (a regular file, a closed descriptor): then the caller polls the kernel itself.
async fn any_ready(
    waiter: Waiter,
    descriptors: &[(RawFd, bool, bool)],
    timeout: Option<Duration>,
) -> io::Result<Waited> {
    let watches = descriptors
        .iter()
        .map(|&(fd, r, w)| {
            let registration = Registration::new(fd, r, w)?;
            Ok(Watch::new(fd, waiter, Box::new(registration)))
        })
        .collect::<io::Result<Vec<_>>>()?;
    let ready = poll_fn(|cx| {
        let mut any = Poll::Pending;
        for watch in &watches {
            if watch.poll(cx).is_ready() {
                any = Poll::Ready(());
            }
        }
        any
    });
    let waited = match timeout {
        None => {
            ready.await;
            Waited::Ready
        }
        Some(timeout) => match tokio::time::timeout(timeout, ready).await {
            Ok(()) => Waited::Ready,
            Err(_) => Waited::TimedOut,
        },
    };
    let closed = watches.iter().find_map(Watch::closed);
    Ok(closed.map_or(waited, Waited::Closed))
}

/// The interval at which descriptors that the event loop cannot watch are polled.
const ASK_AGAIN: Duration = Duration::from_millis(5);

/// Waits until it is time to poll again, where there is no notification.
pub(crate) async fn pause(left: Option<Duration>) {
    tokio::time::sleep(left.map_or(ASK_AGAIN, |left| left.min(ASK_AGAIN))).await;
}

/// [`any_ready`], or a pause if a descriptor cannot be watched: afterwards one may be ready. To be called before the
/// task parks.
pub(crate) fn ready_or_pause(
    descriptors: impl Iterator<Item = (RawFd, bool, bool)>,
    left: Option<Duration>,
) -> impl Future<Output = Waited> {
    let descriptors: Vec<_> = descriptors.collect();
    let waiter = Waiter::running();
    async move {
        match any_ready(waiter, &descriptors, left).await {
            Ok(waited) => waited,
            Err(_) => {
                pause(left).await;
                Waited::Ready
            }
        }
    }
}

/// Waits until something can be read from a descriptor of our own, which nobody else closes.
pub(crate) async fn readable(fd: RawFd) {
    match single(fd, true, false) {
        Ok(fd) => poll_fn(|cx| fd.poll_read_ready(cx).map(drop)).await,
        Err(_) => pause(None).await,
    }
}
