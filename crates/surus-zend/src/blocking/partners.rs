//! Waiting for a partner without a descriptor to watch: System V semaphores and message queues, and the other end of a
//! FIFO (`csrc/os/fifo.c`).
//!
//! The partner may be a parked request of this thread: a wait in the kernel would never end. So a parked task tries
//! again: immediately when a request of this thread has made such a call, otherwise at growing intervals.

use std::{
    ffi::{c_int, c_long, c_uint, c_ushort, c_void},
    time::Duration,
};

use tokio::sync::Notify;

use super::{
    can_park, park_on,
    real::{errno, real, set_errno},
};

/// Intervals between two tries: waits for other processes are rarely shorter, and the longest interval costs nothing.
const FIRST_DELAY: Duration = Duration::from_millis(1);
const LONGEST_DELAY: Duration = Duration::from_millis(20);

/// The most operations in one call that are handled here; no caller has more. Others are passed to the kernel.
const MOST_OPERATIONS: usize = 16;

thread_local! {
    static CHANGED: Notify = const { Notify::const_new() };
}

/// Calls `attempt` until it succeeds, or fails with another error than `busy`. `None` with errno set if the request
/// must end.
fn until_done<T: Copy + Into<i64>>(busy: c_int, attempt: impl Fn() -> T) -> Option<T> {
    let before = errno();
    for tries in 0.. {
        let result = attempt();
        if result.into() >= 0 {
            surus_rs_wake_partners();
            set_errno(before);
            return Some(result);
        }
        if errno() != busy {
            return Some(result);
        }
        if !surus_rs_nap_for_partner(tries) {
            break;
        }
    }
    // Not EINTR: callers would try again, but the request must end.
    set_errno(libc::ECANCELED);
    None
}

/// Waits between two tries; false if the request must end.
#[no_mangle]
extern "C" fn surus_rs_nap_for_partner(tries: c_uint) -> bool {
    let delay = FIRST_DELAY * 2u32.pow(tries.min(8));
    let nap = CHANGED.with(|changed| {
        park_on(tokio::time::timeout(
            delay.min(LONGEST_DELAY),
            changed.notified(),
        ))
    });
    nap.is_ok()
}

#[no_mangle]
extern "C" fn surus_rs_wake_partners() {
    CHANGED.with(Notify::notify_waiters);
}

#[no_mangle]
unsafe extern "C" fn semop(set: c_int, operations: *mut libc::sembuf, count: usize) -> c_int {
    let real = real!(semop: unsafe extern "C" fn(c_int, *mut libc::sembuf, usize) -> c_int);
    let mut at_once = [libc::sembuf {
        sem_num: 0 as c_ushort,
        sem_op: 0,
        sem_flg: 0,
    }; MOST_OPERATIONS];
    if count == 0 || count > MOST_OPERATIONS || !can_park() {
        // SAFETY: the caller's arguments.
        return unsafe { real(set, operations, count) };
    }
    // SAFETY: semop takes `count` structures.
    let wanted = unsafe { std::slice::from_raw_parts(operations, count) };
    // If one operation must not wait, the call does not wait.
    if wanted
        .iter()
        .any(|each| c_int::from(each.sem_flg) & libc::IPC_NOWAIT != 0)
    {
        // SAFETY: as above.
        return unsafe { real(set, operations, count) };
    }
    for (copy, each) in at_once.iter_mut().zip(wanted) {
        *copy = *each;
        copy.sem_flg |= libc::IPC_NOWAIT as i16;
    }
    until_done(libc::EAGAIN, || {
        // SAFETY: our own copy, of `count` structures, which the kernel only reads.
        unsafe { real(set, at_once.as_ptr().cast_mut(), count) }
    })
    .unwrap_or(-1)
}

#[no_mangle]
unsafe extern "C" fn msgrcv(
    queue: c_int,
    message: *mut c_void,
    size: usize,
    kind: c_long,
    flags: c_int,
) -> isize {
    let real =
        real!(msgrcv: unsafe extern "C" fn(c_int, *mut c_void, usize, c_long, c_int) -> isize);
    if flags & libc::IPC_NOWAIT != 0 || !can_park() {
        // SAFETY: the caller's arguments.
        return unsafe { real(queue, message, size, kind, flags) };
    }
    until_done(libc::ENOMSG, || {
        // SAFETY: the caller's arguments; does not wait.
        unsafe { real(queue, message, size, kind, flags | libc::IPC_NOWAIT) as i64 }
    })
    .unwrap_or(-1) as isize
}

#[no_mangle]
unsafe extern "C" fn msgsnd(
    queue: c_int,
    message: *const c_void,
    size: usize,
    flags: c_int,
) -> c_int {
    let real = real!(msgsnd: unsafe extern "C" fn(c_int, *const c_void, usize, c_int) -> c_int);
    if flags & libc::IPC_NOWAIT != 0 || !can_park() {
        // SAFETY: the caller's arguments.
        return unsafe { real(queue, message, size, flags) };
    }
    until_done(libc::EAGAIN, || {
        // SAFETY: the caller's arguments; does not wait.
        unsafe { real(queue, message, size, flags | libc::IPC_NOWAIT) }
    })
    .unwrap_or(-1)
}
