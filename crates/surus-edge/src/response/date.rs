//! The `date` of responses, made once a second.

use std::cell::RefCell;
use std::time::{Duration, Instant, SystemTime};

use http::HeaderValue;

struct DateHeader {
    text: Vec<u8>,
    value: HeaderValue,
    /// From then on the date is another one.
    until: Instant,
}

thread_local! {
    static DATE: RefCell<Option<DateHeader>> = const { RefCell::new(None) };
}

/// Adds the header line of the second that `now` is in.
#[inline(always)]
pub(crate) fn write(output: &mut Vec<u8>, now: Instant) {
    with(now, |line| output.extend_from_slice(&line.text));
}

/// The header of the second that `now` is in.
pub(crate) fn value(now: Instant) -> HeaderValue {
    with(now, |line| line.value.clone())
}

#[inline(always)]
fn with<T>(now: Instant, read: impl FnOnce(&DateHeader) -> T) -> T {
    DATE.with_borrow_mut(|line| {
        let line = match line {
            Some(line) if now < line.until => line,
            line => line.insert(make()),
        };
        read(line)
    })
}

fn make() -> DateHeader {
    let (now, time) = (Instant::now(), SystemTime::now());
    let past = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos());
    let text = httpdate::fmt_http_date(time);
    DateHeader {
        text: format!("date: {text}\r\n").into_bytes(),
        value: HeaderValue::from_str(&text).expect("a date is printable ASCII"),
        until: now + Duration::from_secs(1) - Duration::from_nanos(past.into()),
    }
}
