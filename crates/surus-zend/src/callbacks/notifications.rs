//! `Surus\Postgres::listen()`: listeners belong to the request that has made them.

use std::{cell::RefCell, ffi::c_void, rc::Rc};

use surus_postgres::Failure;

use super::postgres::{boxed, client, exchange_or_none, NOT_HERE, PATIENCE};
use crate::{
    blocking::{can_park, park_on},
    exchange::Listening,
    ffi::{self, Str},
};

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_listen(
    raw: *mut c_void,
    number: u64,
    channel: Str,
    answer: *mut *mut c_void,
) -> u64 {
    // SAFETY: C passes the running task's exchange, text that lives for this call, and a place for the answer.
    let (exchange, channel) = unsafe {
        answer.write(std::ptr::null_mut());
        (
            exchange_or_none(raw),
            String::from_utf8_lossy(channel.bytes()).into_owned(),
        )
    };
    let refuse = |failure| {
        // SAFETY: as above.
        unsafe { answer.write(boxed(Some(Err(failure)))) };
        0
    };
    let (Some(exchange), Some(client), true) = (exchange, client(number), can_park()) else {
        return refuse(Failure::usage(NOT_HERE));
    };
    match park_on(async move { client.listen(&channel, PATIENCE).await }) {
        Ok(Ok(listener)) => {
            let last = RefCell::default();
            exchange
                .listeners
                .add(Rc::new(Listening { listener, last }))
        }
        Ok(Err(failure)) => refuse(failure),
        Err(_) => 0,
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_notification(
    raw: *mut c_void,
    number: u64,
    to: *mut ffi::PostgresNotification,
) -> bool {
    // SAFETY: C passes the running task's exchange.
    let exchange = unsafe { exchange_or_none(raw) };
    let Some(listening) = exchange.and_then(|exchange| exchange.listeners.find(number)) else {
        return false;
    };
    if !can_park() {
        return false;
    }
    let Ok(notification) = park_on(listening.listener.next()) else {
        return false;
    };
    let mut last = listening.last.borrow_mut();
    let notification = last.insert(notification);
    // SAFETY: a place of C's; the text is the listener's, until the next one.
    unsafe {
        to.write(ffi::PostgresNotification {
            payload: Str::new(notification.payload.as_bytes()),
            process: notification.process,
            missed: notification.missed,
        });
    }
    true
}

#[no_mangle]
unsafe extern "C" fn surus_rs_postgres_unlisten(raw: *mut c_void, number: u64) {
    // SAFETY: C passes the running task's exchange.
    if let Some(exchange) = unsafe { exchange_or_none(raw) } {
        exchange.listeners.take(number);
    }
}
