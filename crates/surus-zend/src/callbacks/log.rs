//! Lines for the server's log: those of PHP (their target is "php") and those of applications ("app").

use std::ffi::{c_int, c_void};

use tracing::{debug, enabled, error, event, info, warn, Level};

use crate::{
    exchange::Exchange,
    ffi::{self, LogEntry, Str},
    serve::refresh::keep_boot_error,
};

#[no_mangle]
unsafe extern "C" fn surus_rs_log(level: c_int, message: Str) {
    // SAFETY: C passes text that lives for this call.
    let message = unsafe { String::from_utf8_lossy(message.bytes()) };
    if level <= 3 {
        // SAFETY: reads which task runs; only the address is used.
        let exchange = unsafe { ffi::surus_current_exchange() };
        if keep_boot_error(exchange.cast(), &message) {
            return;
        }
    }
    match level {
        0..=3 => error!(target: "php", "{message}"),
        4 => warn!(target: "php", "{message}"),
        5 | 6 => info!(target: "php", "{message}"),
        _ => debug!(target: "php", "{message}"),
    }
}

#[no_mangle]
extern "C" fn surus_rs_log_enabled(severity: c_int) -> bool {
    match severity {
        ..=3 => enabled!(target: "app", Level::ERROR),
        4 => enabled!(target: "app", Level::WARN),
        5 | 6 => enabled!(target: "app", Level::INFO),
        _ => enabled!(target: "app", Level::DEBUG),
    }
}

/// `level` is the name of a PSR-3 level, since tracing has fewer levels; `context` is a JSON object.
macro_rules! write_line {
    ($level:expr, $entry:expr, $request:expr) => {
        event!(
            target: "app",
            $level,
            message = %one_line(&$entry[2]),
            level = %$entry[0],
            channel = %$entry[1],
            context = (!$entry[3].is_empty()).then(|| tracing::field::display(&$entry[3])),
            request_id = $request,
        )
    };
}

/// Escapes control characters: text from a client must not look like other lines of the log.
fn one_line(message: &str) -> String {
    let mut line = String::with_capacity(message.len());
    for c in message.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

#[no_mangle]
unsafe extern "C" fn surus_rs_log_entry(raw: *mut c_void, entry: *const LogEntry) {
    // SAFETY: C passes the running task's exchange or NULL, and an entry whose texts live for this call.
    let (exchange, entry) = unsafe { ((!raw.is_null()).then(|| Exchange::from_raw(raw)), &*entry) };
    let request_id = exchange.and_then(|exchange| {
        let headers = exchange.headers.get();
        let value = headers.get("x-request-id")?;
        value.to_str().ok().map(str::to_owned)
    });
    let request_id = request_id.as_deref();
    // SAFETY: as above.
    let texts = [&entry.level, &entry.channel, &entry.message, &entry.context]
        .map(|text| unsafe { String::from_utf8_lossy(text.bytes()) });
    match entry.severity {
        ..=3 => write_line!(Level::ERROR, texts, request_id),
        4 => write_line!(Level::WARN, texts, request_id),
        5 | 6 => write_line!(Level::INFO, texts, request_id),
        _ => write_line!(Level::DEBUG, texts, request_id),
    }
}
