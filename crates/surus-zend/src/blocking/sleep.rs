//! `sleep`, `usleep`, `nanosleep`, `clock_nanosleep`.

use std::{
    ffi::{c_int, c_uint},
    time::{Duration, Instant},
};

use super::{can_park, park_on, real::real};

/// Sleeps; returns the remaining time if the request was cancelled.
fn sleep_for(time: Duration) -> Result<(), Duration> {
    let until = Instant::now() + time;
    match park_on(tokio::time::sleep_until(until.into())) {
        Ok(()) => Ok(()),
        Err(_) => Err(until.saturating_duration_since(Instant::now())),
    }
}

fn duration(time: &libc::timespec) -> Option<Duration> {
    let (seconds, nanos) = (
        u64::try_from(time.tv_sec).ok()?,
        u32::try_from(time.tv_nsec).ok()?,
    );
    (nanos < 1_000_000_000).then(|| Duration::new(seconds, nanos))
}

/// # Safety
/// `left` is NULL or writable.
unsafe fn store_left(left: *mut libc::timespec, time: Duration) {
    if !left.is_null() {
        let value = libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        // SAFETY: the caller's promise.
        unsafe { left.write(value) };
    }
}

#[no_mangle]
unsafe extern "C" fn sleep(seconds: c_uint) -> c_uint {
    if seconds == 0 || !can_park() {
        let sleep = real!(sleep: unsafe extern "C" fn(c_uint) -> c_uint);
        // SAFETY: no pointers.
        return unsafe { sleep(seconds) };
    }
    match sleep_for(Duration::from_secs(u64::from(seconds))) {
        Ok(()) => 0,
        Err(left) => left.as_secs_f64().ceil() as c_uint,
    }
}

#[no_mangle]
unsafe extern "C" fn usleep(micros: libc::useconds_t) -> c_int {
    if micros == 0 || !can_park() {
        let usleep = real!(usleep: unsafe extern "C" fn(libc::useconds_t) -> c_int);
        // SAFETY: no pointers.
        return unsafe { usleep(micros) };
    }
    match sleep_for(Duration::from_micros(u64::from(micros))) {
        Ok(()) => 0,
        Err(_) => {
            super::real::set_errno(libc::EINTR);
            -1
        }
    }
}

#[no_mangle]
unsafe extern "C" fn nanosleep(time: *const libc::timespec, left: *mut libc::timespec) -> c_int {
    // SAFETY: the caller passes a timespec, as libc requires.
    let wanted = unsafe { time.as_ref() }.and_then(duration);
    let Some(wanted) = wanted.filter(|_| can_park()) else {
        let nanosleep = real!(nanosleep: unsafe extern "C" fn(*const libc::timespec, *mut libc::timespec) -> c_int);
        // SAFETY: the caller's arguments.
        return unsafe { nanosleep(time, left) };
    };
    match sleep_for(wanted) {
        Ok(()) => 0,
        Err(rest) => {
            // SAFETY: the caller's argument.
            unsafe { store_left(left, rest) };
            super::real::set_errno(libc::EINTR);
            -1
        }
    }
}

#[no_mangle]
unsafe extern "C" fn clock_nanosleep(
    clock: libc::clockid_t,
    flags: c_int,
    time: *const libc::timespec,
    left: *mut libc::timespec,
) -> c_int {
    // SAFETY: the caller passes a timespec, as libc requires.
    let mut wanted = unsafe { time.as_ref() }.and_then(duration);
    if flags & libc::TIMER_ABSTIME != 0 {
        let mut now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `now` is writable.
        let known = unsafe { libc::clock_gettime(clock, &mut now) } == 0;
        wanted = match (wanted, duration(&now)) {
            (Some(until), Some(now)) if known => Some(until.saturating_sub(now)),
            _ => None,
        };
    }
    let waits = matches!(
        clock,
        libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC | libc::CLOCK_BOOTTIME
    );
    let Some(wanted) = wanted.filter(|_| waits && can_park()) else {
        let real = real!(clock_nanosleep: unsafe extern "C" fn(libc::clockid_t, c_int, *const libc::timespec, *mut libc::timespec) -> c_int);
        // SAFETY: the caller's arguments.
        return unsafe { real(clock, flags, time, left) };
    };
    match sleep_for(wanted) {
        Ok(()) => 0,
        Err(rest) => {
            if flags & libc::TIMER_ABSTIME == 0 {
                // SAFETY: the caller's argument.
                unsafe { store_left(left, rest) };
            }
            libc::EINTR
        }
    }
}
