//! Functions that C calls.

use std::{cell::RefCell, ffi::c_int};

use super::{
    change::{Condition, NoNumber},
    now,
    write::{New, Refusal},
};
use crate::ffi::{
    StoreStep, Stored, Str, STORE_DONE, STORE_FULL, STORE_IF_ABSENT, STORE_IF_PRESENT,
    STORE_IF_SAME, STORE_NOT, STORE_OTHER, STORE_OVERFLOW, STORE_TOO_LARGE, STORE_UNAVAILABLE,
};

/// A buffer larger than this is not kept for the next value.
const LARGEST_BUFFER: usize = 1 << 20;

thread_local! {
    static BYTES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[no_mangle]
unsafe extern "C" fn surus_rs_store_read(key: Str, at: i64, value: *mut Stored) -> bool {
    BYTES.with_borrow_mut(|bytes| {
        if bytes.capacity() > LARGEST_BUFFER {
            *bytes = Vec::new();
        }
        // SAFETY: C passes readable bytes.
        let key = unsafe { key.bytes() };
        let Some(head) = super::store().read(key, time(at), bytes) else {
            return false;
        };
        let stored = Stored {
            kind: head.kind.into(),
            is_kept: head.is_kept,
            number: head.number,
            bytes: Str::new(bytes),
        };
        // SAFETY: C passes a place for the answer, whose bytes stay until the next call.
        unsafe { value.write(stored) };
        true
    })
}

#[no_mangle]
unsafe extern "C" fn surus_rs_store_write(
    key: Str,
    value: *const Stored,
    length: i64,
    condition: c_int,
    expected: *const Stored,
    at: i64,
) -> c_int {
    let now = time(at);
    // SAFETY: C passes readable bytes and values.
    let (key, value, expected) = unsafe { (key.bytes(), &*value, &*expected) };
    let new = New {
        kind: kind(value.kind),
        number: value.number,
        // SAFETY: as above.
        bytes: unsafe { value.bytes.bytes() },
        until: after(now, length),
        is_kept: value.is_kept,
    };
    let condition = match condition {
        STORE_IF_ABSENT => Condition::Absent,
        STORE_IF_PRESENT => Condition::Present,
        STORE_IF_SAME => Condition::Is {
            kind: kind(expected.kind),
            number: expected.number,
            // SAFETY: as above.
            bytes: unsafe { expected.bytes.bytes() },
        },
        _ => return outcome(super::store().write(key, &new, now).map(|()| true)),
    };
    outcome(super::store().write_if(key, &condition, &new, now))
}

#[no_mangle]
unsafe extern "C" fn surus_rs_store_remove(key: Str, at: i64) -> c_int {
    // SAFETY: C passes readable bytes.
    outcome(super::store().remove(unsafe { key.bytes() }, time(at)))
}

#[no_mangle]
unsafe extern "C" fn surus_rs_store_clear(prefix: Str) -> bool {
    // SAFETY: C passes readable bytes.
    super::store().clear(unsafe { prefix.bytes() })
}

#[no_mangle]
unsafe extern "C" fn surus_rs_store_touch(key: Str, length: i64, at: i64) -> c_int {
    let now = time(at);
    // SAFETY: C passes readable bytes.
    let key = unsafe { key.bytes() };
    outcome(super::store().touch(key, after(now, length), now))
}

#[no_mangle]
unsafe extern "C" fn surus_rs_store_step(
    key: Str,
    step: *const StoreStep,
    at: i64,
    result: *mut i64,
) -> c_int {
    let now = time(at);
    // SAFETY: C passes readable bytes and a step.
    let (key, step) = unsafe { (key.bytes(), &*step) };
    let step = super::change::Step {
        kind: kind(step.kind),
        by: step.by,
        initial: step.initial,
        until: after(now, step.time),
        is_kept: step.is_kept,
    };
    match super::store().step(key, &step, now) {
        Ok(number) => {
            // SAFETY: C passes a place for the answer.
            unsafe { result.write(number) };
            STORE_DONE
        }
        Err(NoNumber::Other) => STORE_OTHER,
        Err(NoNumber::Overflow) => STORE_OVERFLOW,
        Err(NoNumber::Refused(refusal)) => outcome(Err(refusal)),
    }
}

fn outcome(result: Result<bool, Refusal>) -> c_int {
    match result {
        Ok(true) => STORE_DONE,
        Ok(false) => STORE_NOT,
        Err(Refusal::TooLarge) => STORE_TOO_LARGE,
        Err(Refusal::Full) => STORE_FULL,
        Err(Refusal::Unavailable) => STORE_UNAVAILABLE,
    }
}

fn kind(kind: c_int) -> u8 {
    u8::try_from(kind).unwrap_or(u8::MAX)
}

fn time(at: i64) -> u64 {
    u64::try_from(at).unwrap_or_else(|_| now())
}

fn after(now: u64, length: i64) -> u64 {
    let length = u64::try_from(length).unwrap_or(0);
    now.saturating_add(length)
}
