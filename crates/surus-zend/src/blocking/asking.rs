//! A blocking call, built from non-blocking calls: try, park until the descriptor is ready, try again.
//!
//! Readiness is no guarantee. Two requests, two threads or two processes may wait for one message; all are woken, and
//! those that come late must wait again. A blocking call would then block every task of this thread.

use std::{
    cell::Cell,
    ffi::c_int,
    os::fd::RawFd,
    time::{Duration, Instant},
};

use super::{
    can_park,
    descriptor::{is_nonblocking, socket_timeout},
    park_on,
    ready::{pause, ready_or_pause, Waited},
    real::{errno, real, set_errno},
    sever::sever,
};

/// One call of a caller that may be parked.
pub(super) struct Asking {
    fd: RawFd,
    read: bool,
    before: c_int,
    /// Whether the real call waits. Set when an attempt was incomplete.
    waits: Option<bool>,
    /// The end of `SO_RCVTIMEO` or `SO_SNDTIMEO`, which are for the whole call; set at the first wait.
    until: Option<Option<Instant>>,
    /// It has waited and made no progress since.
    in_vain: bool,
    cut: bool,
}

impl Asking {
    pub(super) fn to_read(fd: RawFd) -> Asking {
        Asking {
            fd,
            read: true,
            before: errno(),
            waits: None,
            until: None,
            in_vain: false,
            cut: false,
        }
    }

    pub(super) fn to_write(fd: RawFd) -> Asking {
        Asking {
            read: false,
            ..Asking::to_read(fd)
        }
    }

    /// The real call waits: the descriptor is not `O_NONBLOCK`, or was not when the call began.
    pub(super) fn waits(&mut self) -> bool {
        *self.waits.get_or_insert_with(|| !is_nonblocking(self.fd))
    }

    /// After a failed attempt: waits, and returns whether to try again. If not, errno is that of the call.
    pub(super) fn wait(&mut self) -> bool {
        errno() == libc::EAGAIN && self.is_to_wait() && self.park(libc::EAGAIN)
    }

    fn is_to_wait(&mut self) -> bool {
        self.waits() || {
            let_others_run();
            set_errno(libc::EAGAIN);
            false
        }
    }

    /// Waits until the descriptor is ready, or severed: then the next attempt returns what it returns for an ended
    /// connection. False, with errno set, if the call must return.
    pub(super) fn park(&mut self, at_timeout: c_int) -> bool {
        if self.cut {
            set_errno(libc::ECONNABORTED);
            return false;
        }
        let left = self.left();
        if left == Some(Duration::ZERO) {
            set_errno(at_timeout);
            return false;
        }
        // Ready, but the call would still wait: poll does not report what it waits for (the queue of an unconnected
        // Unix datagram socket, the backlog of a Unix socket).
        let is_of_no_use = std::mem::replace(&mut self.in_vain, true) && self.is_ready();
        let (fd, read) = (self.fd, self.read);
        let ready = ready_or_pause(std::iter::once((fd, read, !read)), left);
        let waited = park_on(async {
            if is_of_no_use {
                pause(left).await;
                return Waited::Ready;
            }
            ready.await
        });
        match waited {
            Ok(Waited::Ready) => true,
            Ok(Waited::TimedOut) => {
                set_errno(at_timeout);
                false
            }
            Ok(Waited::Closed(_)) => {
                set_errno(libc::EBADF);
                false
            }
            Err(_) => {
                self.cut = true;
                let severed = sever(fd);
                set_errno(libc::ECONNABORTED);
                severed
            }
        }
    }

    /// The rest of the socket's timeout, which is for the whole call.
    fn left(&mut self) -> Option<Duration> {
        let option = if self.read {
            libc::SO_RCVTIMEO
        } else {
            libc::SO_SNDTIMEO
        };
        let until = self.until.get_or_insert_with(|| {
            socket_timeout(self.fd, option).map(|time| Instant::now() + time)
        });
        until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// An attempt made progress.
    pub(super) fn has_got_on(&mut self) {
        self.in_vain = false;
    }

    fn is_ready(&self) -> bool {
        let wanted = if self.read {
            libc::POLLIN
        } else {
            libc::POLLOUT
        };
        state(self.fd, wanted) != 0
    }

    /// The call has succeeded: restores errno.
    pub(super) fn succeed(&self, result: isize) -> isize {
        set_errno(self.before);
        result
    }
}

/// After this number of failed non-blocking calls without a wait in between, each further one lets other tasks run: the
/// library polls in a loop, as OpenLDAP does while a server does not answer to TLS.
const BUSY: u32 = 1000;

thread_local! {
    static IN_VAIN: Cell<u32> = const { Cell::new(0) };
}

/// Counts a non-blocking call that got nothing.
fn let_others_run() {
    let count = IN_VAIN.get() + 1;
    IN_VAIN.set(count);
    if count > BUSY && can_park() {
        // Refused if the request must end; code that still polls is then given up.
        let _ = park_on(pause(None));
    }
}

/// The running request has waited.
pub(super) fn has_waited() {
    IN_VAIN.set(0);
}

/// Which of these events a descriptor has, errors and hang-ups included.
pub(super) fn state(fd: RawFd, events: i16) -> i16 {
    type Poll = unsafe extern "C" fn(*mut libc::pollfd, libc::nfds_t, c_int) -> c_int;
    let poll = real!(poll: Poll);
    let mut state = libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    // SAFETY: one structure; does not wait.
    unsafe { poll(&mut state, 1, 0) };
    state.revents
}

/// Repeats the attempt until it succeeds or must not be repeated. For calls that do all or nothing.
pub(super) fn until_done(mut asking: Asking, mut attempt: impl FnMut() -> isize) -> isize {
    loop {
        let result = attempt();
        if result >= 0 {
            return asking.succeed(result);
        }
        if !asking.wait() {
            return -1;
        }
    }
}

/// Sends `size` bytes: `attempt` gets the number of bytes already sent, and returns how many more were. Repeats until
/// all are sent if the call waits. Bytes that were sent before an error are returned, as in the kernel.
pub(super) fn until_sent(fd: RawFd, size: usize, mut attempt: impl FnMut(usize) -> isize) -> isize {
    let mut asking = Asking::to_write(fd);
    let mut done = 0;
    loop {
        match usize::try_from(attempt(done)) {
            Ok(count) => {
                done += count;
                asking.has_got_on();
                let is_broken = || state(fd, 0) & (libc::POLLERR | libc::POLLHUP) != 0;
                if count == 0 || done >= size || !asking.waits() || is_broken() {
                    break;
                }
            }
            Err(_) if asking.wait() => {}
            Err(_) if done > 0 => break,
            Err(_) => return -1,
        }
    }
    asking.succeed(done as isize)
}

/// Calls `call` while a descriptor is `O_NONBLOCK`, for functions without a flag for that. Other tasks of this thread
/// do not see it.
pub(super) fn at_once<T>(fd: RawFd, call: impl FnOnce() -> T) -> T {
    // SAFETY: a plain system call.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if flags < 0 || flags & libc::O_NONBLOCK != 0 {
        return call();
    }
    // SAFETY: as above.
    unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) };
    let result = call();
    let error = errno();
    // SAFETY: as above.
    unsafe { libc::fcntl(fd, libc::F_SETFL, flags) };
    set_errno(error);
    result
}
