//! `waitpid` and `pclose`: wait for the end of programs that PHP has started (`proc_close()`, `pclose()`, `mail()`).
//!
//! A child is identified by its pid, and no other request waits for it. A wait for any child (`pcntl_wait()`) is passed
//! to libc: it would take other requests' children.

use std::{
    ffi::{c_int, c_void},
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    ptr::null_mut,
};

use super::{
    can_park,
    helper::on_helper,
    park_on,
    ready::{pause, readable},
    real::{errno, real, set_errno},
    Cancelled,
};

type WaitPid = unsafe extern "C" fn(libc::pid_t, *mut c_int, c_int) -> libc::pid_t;

fn wait_pid() -> WaitPid {
    real!(waitpid: WaitPid)
}

/// Readable when the process has ended (pidfd_open(2)).
fn descriptor_of(pid: libc::pid_t) -> io::Result<OwnedFd> {
    // SAFETY: a plain system call.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as c_int) })
}

#[no_mangle]
unsafe extern "C" fn waitpid(pid: libc::pid_t, status: *mut c_int, options: c_int) -> libc::pid_t {
    let real = wait_pid();
    if pid <= 0 || options != 0 || !can_park() {
        // SAFETY: the caller's arguments.
        return unsafe { real(pid, status, options) };
    }
    // SAFETY: the caller's arguments; does not wait.
    let ask = || unsafe { real(pid, status, libc::WNOHANG) };
    let before = errno();
    let now = ask();
    if now != 0 {
        return now;
    }
    // If there are no descriptors left, it is polled.
    let ended = descriptor_of(pid).ok();
    loop {
        let waited = match &ended {
            Some(ended) => park_on(readable(ended.as_raw_fd())),
            None => park_on(pause(None)),
        };
        if waited.is_err() {
            break;
        }
        let now = ask();
        if now != 0 {
            if now > 0 {
                set_errno(before);
            }
            return now;
        }
    }
    // PHP does not wait for it any more. The child continues to run, and is reaped at its end.
    tokio::spawn(async move {
        // SAFETY: a child that nobody else waits for any more.
        while unsafe { wait_pid()(pid, null_mut(), libc::WNOHANG) } == 0 {
            match &ended {
                Some(ended) => readable(ended.as_raw_fd()).await,
                None => pause(None).await,
            }
        }
    });
    // Not EINTR: callers would try again.
    set_errno(libc::ECANCELED);
    -1
}

/// A stream of libc that its user does not use any more.
struct Stream(*mut c_void);

// SAFETY: nothing else uses a stream while it is closed.
unsafe impl Send for Stream {}

impl Stream {
    /// # Safety
    /// `close` is libc's `pclose`, and nothing uses the stream any more.
    unsafe fn close(self, close: unsafe extern "C" fn(*mut c_void) -> c_int) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { close(self.0) }
    }
}

#[no_mangle]
unsafe extern "C" fn pclose(stream: *mut c_void) -> c_int {
    let real = real!(pclose: unsafe extern "C" fn(*mut c_void) -> c_int);
    if !can_park() {
        // SAFETY: the caller's argument.
        return unsafe { real(stream) };
    }
    let stream = Stream(stream);
    // libc flushes, closes and waits with internal calls. Only libc knows the pid of the child.
    // SAFETY: the caller does not use the stream any more; the helper thread closes it, even after this request.
    match on_helper(move || (unsafe { stream.close(real) }, errno())) {
        Ok((result, error)) => {
            if result < 0 {
                set_errno(error);
            }
            result
        }
        Err(Cancelled) => {
            set_errno(libc::ECANCELED);
            -1
        }
    }
}
