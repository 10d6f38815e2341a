//! A response as bytes, as hyper would write it.

use std::time::Instant;

use http::header::{
    HeaderMap, CONNECTION, CONTENT_LENGTH, DATE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::StatusCode;

use crate::date;
use crate::output::write_header;

/// Bodies from this size on are hyper's: it has them written from where they are.
const LARGE: usize = 16 * 1024;

/// Bytes that most heads are shorter than.
const HEAD: usize = 512;

/// False if the response is not for the lane; nothing is written then. `now` need not be exact.
#[inline(always)]
pub(super) fn write(
    output: &mut Vec<u8>,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    now: Instant,
) -> bool {
    if body.len() >= LARGE || !write_head(output, status, headers, body.len() as u64, now) {
        return false;
    }
    output.extend_from_slice(body);
    true
}

/// The head for a body of so many bytes, with room for a short one.
pub(super) fn write_head(
    output: &mut Vec<u8>,
    status: StatusCode,
    headers: &HeaderMap,
    length: u64,
    now: Instant,
) -> bool {
    let has_no_body = status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED;
    if has_no_body || status.is_informational() {
        return false;
    }
    let begin = output.len();
    output.reserve(HEAD + length.min(LARGE as u64) as usize);
    if status == StatusCode::OK {
        output.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    } else {
        output.extend_from_slice(b"HTTP/1.1 ");
        output.extend_from_slice(status.as_str().as_bytes());
        output.push(b' ');
        let reason = status.canonical_reason().unwrap_or("<none>");
        output.extend_from_slice(reason.as_bytes());
        output.extend_from_slice(b"\r\n");
    }
    let (mut has_length, mut has_date) = (false, false);
    for (name, value) in headers {
        let has_a_say = *name == CONNECTION || *name == TRANSFER_ENCODING;
        if has_a_say || *name == TRAILER || *name == UPGRADE {
            output.truncate(begin);
            return false;
        }
        has_length |= *name == CONTENT_LENGTH;
        has_date |= *name == DATE;
        write_header(output, name, value);
    }
    if !has_length {
        output.extend_from_slice(b"content-length: ");
        output.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
        output.extend_from_slice(b"\r\n");
    }
    if !has_date {
        date::write(output, now);
    }
    output.extend_from_slice(b"\r\n");
    true
}
