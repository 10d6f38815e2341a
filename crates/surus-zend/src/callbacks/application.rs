//! Declarations of an application while it boots, and services of the server for it.

use std::{
    cell::RefCell,
    ffi::{c_int, c_void},
};

use super::{exchange, store};
use crate::{
    engine::php_classes,
    exchange::timers::Timer,
    ffi::{Route, Str, Taken},
    router::{self, Declared, TimeLimit},
    shared::rate,
};

#[no_mangle]
unsafe extern "C" fn surus_rs_add_route(raw: *mut c_void, route: *const Route) {
    // SAFETY: C passes the running task's exchange, and a route and its texts that live for this call.
    unsafe {
        let text = |s: Str| String::from_utf8_lossy(s.bytes()).into_owned();
        let route = &*route;
        exchange(raw).routes.borrow_mut().push(Declared {
            methods: text(route.methods),
            pattern: text(route.pattern),
            host: text(route.host),
            headers: text(route.headers),
            about: text(route.about),
            origin: text(route.origin),
            index: route.index,
            time_limit: TimeLimit::from_seconds(route.timeout),
        });
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_add_timer(raw: *mut c_void, about: Str, kind: c_int, seconds: f64) {
    // SAFETY: as above.
    unsafe {
        let about = String::from_utf8_lossy(about.bytes()).into_owned();
        let timer = Timer::new(about, kind, seconds);
        exchange(raw).timers.declared.borrow_mut().push(timer);
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_pattern_error(pattern: Str, text: *mut Str) -> bool {
    thread_local! {
        static LAST: RefCell<String> = const { RefCell::new(String::new()) };
    }
    // SAFETY: C passes text that lives for this call.
    let pattern = unsafe { String::from_utf8_lossy(pattern.bytes()) };
    let Some(error) = router::pattern_error(&pattern) else {
        return false;
    };
    LAST.with_borrow_mut(|last| {
        *last = error;
        // SAFETY: C passes a place for the answer; the text stays until the next call.
        unsafe { text.write(Str::new(last.as_bytes())) };
    });
    true
}

#[no_mangle]
unsafe extern "C" fn surus_rs_is_dev(raw: *mut c_void) -> bool {
    // SAFETY: as above.
    unsafe { exchange(raw).dev }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_class_source(
    class_name: Str,
    file_name: *mut Str,
    source: *mut Str,
) -> bool {
    // SAFETY: as above; `file_name` and `source` are writable.
    unsafe {
        let found = php_classes::source(class_name.bytes());
        store(
            found.map(|(file, text)| (Str::new(file.as_bytes()), Str::new(text.as_bytes()))),
            file_name,
            source,
        )
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_take_tokens(
    key: Str,
    rate: f64,
    burst: f64,
    cost: f64,
    taken: *mut Taken,
) {
    // SAFETY: C passes readable bytes and a place for the answer.
    unsafe {
        let found = rate::take(key.bytes(), rate, burst, cost);
        taken.write(Taken {
            allowed: found.allowed,
            remaining: i64::try_from(found.remaining).unwrap_or(i64::MAX),
            retry_after: found.retry_after.as_secs_f64(),
            reset_after: found.reset_after.as_secs_f64(),
        });
    }
}
