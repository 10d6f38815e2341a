//! The `date` of responses, made once a second.

use std::cell::RefCell;
use std::time::{Duration, Instant, SystemTime};

struct Line {
    text: Vec<u8>,
    /// It says another second from then on.
    until: Instant,
}

thread_local! {
    static LINE: RefCell<Option<Line>> = const { RefCell::new(None) };
}

/// Adds the header line of the second that `now` is in.
#[inline(always)]
pub(super) fn write(output: &mut Vec<u8>, now: Instant) {
    LINE.with_borrow_mut(|line| {
        let line = match line {
            Some(line) if now < line.until => line,
            line => line.insert(make()),
        };
        output.extend_from_slice(&line.text);
    });
}

fn make() -> Line {
    let (now, time) = (Instant::now(), SystemTime::now());
    let past = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos());
    Line {
        text: format!("date: {}\r\n", httpdate::fmt_http_date(time)).into_bytes(),
        until: now + Duration::from_secs(1) - Duration::from_nanos(past.into()),
    }
}
