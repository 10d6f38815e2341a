//! `COPY` of `Surus\Postgres`: it belongs to the request whose transaction it is in.

use std::{cell::RefCell, ffi::c_void, rc::Rc};

use surus_postgres::{Direction, Failure};

use super::postgres::{boxed, exchange_or_none, NOT_HERE, OVER, PATIENCE};
use crate::{
    blocking::{can_park, park_on},
    exchange::Copying,
    ffi::Str,
};

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_copy(
    raw: *mut c_void,
    number: u64,
    sql: Str,
    to_server: bool,
    answer: *mut *mut c_void,
) -> u64 {
    // SAFETY: C passes the running task's exchange, text that lives for this call, and a place for the answer.
    let (exchange, sql) = unsafe {
        answer.write(std::ptr::null_mut());
        let sql = String::from_utf8_lossy(sql.bytes()).into_owned();
        (exchange_or_none(raw), sql)
    };
    let refuse = |failure| {
        // SAFETY: as above.
        unsafe { answer.write(boxed(Some(Err(failure)))) };
        0
    };
    let (Some(exchange), true) = (exchange, can_park()) else {
        return refuse(Failure::usage(NOT_HERE));
    };
    let Some(bound) = exchange.transactions.find(number) else {
        return refuse(Failure::usage(OVER));
    };
    let direction = match to_server {
        true => Direction::ToServer,
        false => Direction::FromServer,
    };
    match park_on(async move { bound.copy(&sql, direction, PATIENCE).await }) {
        Ok(Ok(copy)) => {
            let last = RefCell::default();
            exchange.copies.add(Rc::new(Copying { copy, last }))
        }
        Ok(Err(failure)) => refuse(failure),
        Err(_) => 0,
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_copy_put(raw: *mut c_void, number: u64, piece: Str) -> bool {
    // SAFETY: C passes the running task's exchange, and a piece that lives for this call, also while it is parked.
    let (exchange, piece) = unsafe { (exchange_or_none(raw), piece.bytes()) };
    let copying = exchange.and_then(|exchange| exchange.copies.find(number));
    let Some(copying) = copying.filter(|_| can_park()) else {
        return false;
    };
    park_on(copying.copy.put(piece)).unwrap_or(false)
}

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_copy_take(
    raw: *mut c_void,
    number: u64,
    piece: *mut Str,
) -> bool {
    // SAFETY: C passes the running task's exchange.
    let exchange = unsafe { exchange_or_none(raw) };
    let Some(copying) = exchange.and_then(|exchange| exchange.copies.find(number)) else {
        return false;
    };
    let mut last = copying.last.borrow_mut();
    last.pop_front();
    if last.is_empty() {
        drop(last);
        if !can_park() {
            return false;
        }
        let Ok(pieces) = park_on(copying.copy.take()) else {
            return false;
        };
        last = copying.last.borrow_mut();
        *last = pieces.into();
    }
    let Some(first) = last.front() else {
        return false;
    };
    // SAFETY: a place of C's; the piece stays until the next call.
    unsafe { piece.write(Str::new(first)) };
    true
}

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_copy_end(
    raw: *mut c_void,
    number: u64,
    is_good: bool,
) -> *mut c_void {
    // SAFETY: C passes the running task's exchange.
    let exchange = unsafe { exchange_or_none(raw) };
    let Some(copying) = exchange.and_then(|exchange| exchange.copies.take(number)) else {
        return boxed(Some(Err(Failure::usage("The COPY has ended"))));
    };
    if !can_park() {
        // Dropping it closes the connection.
        return boxed(Some(Err(Failure::usage(NOT_HERE))));
    }
    match park_on(copying.copy.end(is_good, PATIENCE)) {
        Ok(answer) => boxed(Some(answer)),
        Err(_) => std::ptr::null_mut(),
    }
}
