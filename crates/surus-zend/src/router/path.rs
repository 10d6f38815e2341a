//! The path of a request, segment by segment.

use std::borrow::Cow;

/// The decoded segments; an encoded slash stays inside its segment. None if the path does not start with a slash, is
/// encoded incorrectly, is not UTF-8, or has a NUL byte, which is invalid in file names and texts.
pub(super) fn segments(path: &str) -> Option<Vec<Cow<'_, str>>> {
    path.strip_prefix('/')?.split('/').map(decode).collect()
}

fn decode(segment: &str) -> Option<Cow<'_, str>> {
    if !segment.contains('%') {
        return Some(Cow::Borrowed(segment));
    }
    let hex = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let bytes = segment.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] == b'%' {
            let byte = hex(bytes.get(i + 1))? * 16 + hex(bytes.get(i + 2))?;
            decoded.push(u8::try_from(byte).ok().filter(|&byte| byte != 0)?);
            i += 3;
        } else {
            decoded.push(bytes[i]);
            i += 1;
        }
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

/// Whether a decoded segment has a step `.` or `..`, which may be hidden behind an encoded slash.
pub(super) fn climbs(segment: &str) -> bool {
    segment
        .split(['/', '\\'])
        .any(|step| matches!(step, "." | ".."))
}
