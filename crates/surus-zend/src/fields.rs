//! Header fields as PHP and its scripts write them.

use http::{HeaderName, HeaderValue};

/// `None` if HTTP does not allow the name or the value.
fn field(name: &[u8], value: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::from_bytes(name).ok()?;
    Some((name, HeaderValue::from_bytes(value).ok()?))
}

/// The field of a line `name: value`.
pub(crate) fn of_line(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    field(&line[..colon], line[colon + 1..].trim_ascii())
}

/// A field of a response; what HTTP does not allow is left out and logged.
pub(crate) fn of_response(name: &[u8], value: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let field = field(name, value);
    if field.is_none() {
        note_left_out(&String::from_utf8_lossy(name));
    }
    field
}

pub(crate) fn note_left_out(name: &str) {
    tracing::warn!(
        name,
        "a response header that HTTP does not allow was left out"
    );
}
