//! Header fields as PHP and its scripts write them.

use http::{HeaderName, HeaderValue};

/// `None` if HTTP does not allow the name or the value.
pub(crate) fn field(name: &[u8], value: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::from_bytes(name).ok()?;
    Some((name, HeaderValue::from_bytes(value).ok()?))
}

/// The header field of a line `name: value`.
pub(crate) fn of_line(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    field(&line[..colon], line[colon + 1..].trim_ascii())
}
