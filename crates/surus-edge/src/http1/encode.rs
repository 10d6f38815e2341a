//! Encodes responses. The server decides on their length and on the fate of the connection, whatever headers the
//! application has set.

use std::time::Instant;

use http::header::{
    HeaderMap, HeaderName, HeaderValue, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING,
    CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, HOST, MAX_FORWARDS, SET_COOKIE, TE, TRAILER,
    TRANSFER_ENCODING,
};
use http::StatusCode;

use super::head::{names, Asked};
use crate::connection::output::{write_header, LARGE};
use crate::response::date;

/// Most heads are shorter than this number of bytes.
const HEAD: usize = 512;

/// Not allowed as trailers, because they would change how the message is read or routed (RFC 9110, 6.5.1).
const NO_TRAILERS: [HeaderName; 12] = [
    AUTHORIZATION,
    CACHE_CONTROL,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_RANGE,
    CONTENT_TYPE,
    HOST,
    MAX_FORWARDS,
    SET_COOKIE,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
];

/// How the client recognizes the end of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// After this number of further bytes.
    Length(u64),
    /// By the last chunk, which trailers with these names may follow.
    Chunked(Vec<HeaderName>),
    /// By the end of the connection.
    Close,
}

/// Writes a response's head. `length`: bytes of its body, if that is known. `stays`: whether the client may send
/// another request on this connection; set to false if the body ends with the connection, or the application asks for
/// it. `now` need not be exact.
#[inline(always)]
pub(super) fn write_head(
    output: &mut Vec<u8>,
    asked: &Asked,
    status: StatusCode,
    headers: &HeaderMap,
    length: Option<u64>,
    stays: &mut bool,
    now: Instant,
) -> Framing {
    output.reserve(HEAD + length.unwrap_or(0).min(LARGE as u64) as usize);
    write_status(output, asked.is_http10, status);
    let (mut said, mut has_date, mut has_trailers) = (None, false, false);
    for (name, value) in headers {
        if *name == CONNECTION {
            *stays &= !names(value, b"close");
            continue;
        }
        if *name == TRANSFER_ENCODING {
            continue;
        }
        if *name == TRAILER {
            has_trailers = true;
            continue;
        }
        if *name == CONTENT_LENGTH {
            said = said.or(value.to_str().ok().and_then(|text| text.parse().ok()));
        }
        has_date |= *name == DATE;
        write_header(output, name, value);
    }
    let is_bodiless = matches!(
        status,
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED | StatusCode::SWITCHING_PROTOCOLS
    );
    let framing = match (said, length) {
        _ if is_bodiless => Framing::Length(0),
        (Some(said), _) => Framing::Length(said),
        (None, Some(length)) => {
            // For HEAD, the length that GET would have may be unknown.
            if length > 0 || !asked.is_head {
                write_length(output, length);
            }
            Framing::Length(length)
        }
        (None, None) if asked.is_head => Framing::Length(0),
        (None, None) if asked.is_http10 => {
            *stays = false;
            Framing::Close
        }
        (None, None) => {
            output.extend_from_slice(b"transfer-encoding: chunked\r\n");
            Framing::Chunked(match has_trailers {
                true => write_trailer_names(output, asked, headers),
                false => Vec::new(),
            })
        }
    };
    if status == StatusCode::SWITCHING_PROTOCOLS {
        output.extend_from_slice(b"connection: upgrade\r\n");
    } else if *stays == asked.is_http10 {
        output.extend_from_slice(match stays {
            true => b"connection: keep-alive\r\n".as_slice(),
            false => b"connection: close\r\n",
        });
    }
    if !has_date {
        date::write(output, now);
    }
    output.extend_from_slice(b"\r\n");
    match asked.is_head {
        true => Framing::Length(0),
        false => framing,
    }
}

#[inline(always)]
fn write_status(output: &mut Vec<u8>, is_http10: bool, status: StatusCode) {
    if status == StatusCode::OK && !is_http10 {
        output.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        return;
    }
    output.extend_from_slice(match is_http10 {
        true => b"HTTP/1.0 ",
        false => b"HTTP/1.1 ",
    });
    output.extend_from_slice(status.as_str().as_bytes());
    output.push(b' ');
    let reason = status.canonical_reason().unwrap_or("<none>");
    output.extend_from_slice(reason.as_bytes());
    output.extend_from_slice(b"\r\n");
}

fn write_length(output: &mut Vec<u8>, length: u64) {
    output.extend_from_slice(b"content-length: ");
    output.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    output.extend_from_slice(b"\r\n");
}

/// Announces the trailers. Returns those that may be sent: none if the client has not asked for trailers.
#[cold]
fn write_trailer_names(
    output: &mut Vec<u8>,
    asked: &Asked,
    headers: &HeaderMap,
) -> Vec<HeaderName> {
    let mut announced = Vec::new();
    for list in headers.get_all(TRAILER) {
        write_header(output, &TRAILER, list);
        let names = list.as_bytes().split(|&byte| byte == b',');
        let names = names.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok());
        announced.extend(names.filter(|name| !NO_TRAILERS.contains(name)));
    }
    match asked.takes_trailers {
        true => announced,
        false => Vec::new(),
    }
}

/// A response without a body to input that is not a request; the connection is closed after it.
#[cold]
pub(super) fn write_refusal(output: &mut Vec<u8>, status: StatusCode) {
    write_status(output, false, status);
    output.extend_from_slice(b"connection: close\r\ncontent-length: 0\r\n");
    date::write(output, Instant::now());
    output.extend_from_slice(b"\r\n");
}

/// The line before a chunk of `size` bytes. CRLF must follow the chunk.
pub(super) fn write_chunk_size(output: &mut Vec<u8>, size: usize) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let count = (usize::BITS - size.leading_zeros()).div_ceil(4).max(1);
    for at in (0..count).rev() {
        output.push(DIGITS[(size >> (4 * at)) & 15]);
    }
    output.extend_from_slice(b"\r\n");
}

/// The end of a chunked body, with the trailers that were announced.
pub(super) fn write_last_chunk(
    output: &mut Vec<u8>,
    announced: &[HeaderName],
    fields: Option<&HeaderMap<HeaderValue>>,
) {
    output.extend_from_slice(b"0\r\n");
    for (name, value) in fields.into_iter().flatten() {
        if announced.contains(name) {
            write_header(output, name, value);
        }
    }
    output.extend_from_slice(b"\r\n");
}
