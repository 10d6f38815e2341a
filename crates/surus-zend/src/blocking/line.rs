//! Tickets for a queue: a request waits until another request of its isolate calls its ticket, or until a timeout. PHP
//! code decides which ticket is next (`Surus\Pool`).

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    ffi::c_int,
    rc::Rc,
    time::Duration,
};

use tokio::sync::Notify;

use super::{can_park, park_on};

thread_local! {
    static PLACES: RefCell<HashMap<u64, Rc<Notify>>> = RefCell::default();
    static NEXT: Cell<u64> = const { Cell::new(1) };
}

#[no_mangle]
extern "C" fn surus_rs_ticket() -> u64 {
    let ticket = NEXT.get();
    NEXT.set(ticket + 1);
    PLACES.with_borrow_mut(|places| places.insert(ticket, Rc::default()));
    ticket
}

/// 1: it was called; 0: timeout, or its request must end; -1: parking is impossible here.
#[no_mangle]
extern "C" fn surus_rs_wait_for_call(ticket: u64, seconds: f64) -> c_int {
    let place = PLACES.with_borrow(|places| places.get(&ticket).cloned());
    let Some(place) = place else {
        return 0;
    };
    let time = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
    let result = if can_park() {
        match park_on(tokio::time::timeout(time, place.notified())) {
            Ok(Ok(())) => 1,
            _ => 0,
        }
    } else {
        -1
    };
    PLACES.with_borrow_mut(|places| places.remove(&ticket));
    result
}

/// A call before the wait counts, too.
#[no_mangle]
extern "C" fn surus_rs_call_ticket(ticket: u64) {
    PLACES.with_borrow(|places| {
        if let Some(place) = places.get(&ticket) {
            place.notify_one();
        }
    });
}
