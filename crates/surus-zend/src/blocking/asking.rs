//! A call that would wait, made of calls that do not: ask, park until the descriptor is ready, ask again.
//!
//! To be ready promises nothing. Two requests, two threads or two processes may wait for one message; all are woken, and
//! who comes late has to wait again. A real call that waits would then hold up everybody on this thread.

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
    /// Known once an answer was not complete.
    waits: Option<bool>,
    /// The end of `SO_RCVTIMEO` or `SO_SNDTIMEO`, which are for the whole call; known once it has waited.
    until: Option<Option<Instant>>,
    /// It has waited and got nothing since.
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

    /// After a failed attempt: whether to try again, because something may have come. If not, errno is the call's.
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

    /// Waits until the descriptor is ready, or severed: then an attempt says what it says of such a one. False, with errno
    /// set, when the call must return.
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
        // Ready, and yet it would wait: what it waits for has no readiness (the queue of a Unix datagram socket that is not
        // connected, the backlog of a Unix socket).
        let is_of_no_use = std::mem::replace(&mut self.in_vain, true) && self.is_ready();
        let (fd, read) = (self.fd, self.read);
        let waited = park_on(async {
            if is_of_no_use {
                pause(left).await;
                return Waited::Ready;
            }
            ready_or_pause(std::iter::once((fd, read, !read)), left).await
        });
        match waited {
            Ok(Waited::Ready) => true,
            Ok(Waited::TimedOut) => {
                set_errno(at_timeout);
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

    /// Of what its socket gives the whole call.
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

    /// A part has been done.
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

    /// The call has succeeded: errno is what it was before.
    pub(super) fn succeed(&self, result: isize) -> isize {
        set_errno(self.before);
        result
    }
}

/// Calls that did not want to wait and got nothing, one after another without a wait in between, from which on each
/// lets others run: the library asks in a loop. OpenLDAP does while a server does not answer to TLS.
const BUSY: u32 = 1000;

thread_local! {
    static IN_VAIN: Cell<u32> = const { Cell::new(0) };
}

/// The answer to a call that does not wait has been that there is nothing.
fn let_others_run() {
    let count = IN_VAIN.get() + 1;
    IN_VAIN.set(count);
    if count > BUSY && can_park() {
        // Refused if the request is to end; then who goes on asking is given up.
        let _ = park_on(pause(None));
    }
}

/// The running request waits for something.
pub(super) fn has_waited() {
    IN_VAIN.set(0);
}

/// Which of these events, or of errors and hang-ups, a descriptor has.
pub(super) fn state(fd: RawFd, events: i16) -> i16 {
    type Poll = unsafe extern "C" fn(*mut libc::pollfd, libc::nfds_t, c_int) -> c_int;
    let poll = real!(poll: Poll);
    let mut state = libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    // SAFETY: one structure; asks without waiting.
    unsafe { poll(&mut state, 1, 0) };
    state.revents
}

/// Makes one attempt after another. For calls that do all or nothing.
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

/// Sends `size` bytes: `attempt` is told how many are gone, and how many more are, as a call that waits goes on until
/// all are. What was sent before an error counts, as in the kernel.
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

/// Calls `call` while a descriptor is `O_NONBLOCK`, for functions that have no flag of their own for that. The rest of
/// this thread does not see it.
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
