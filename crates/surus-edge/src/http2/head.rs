//! The head of a response in HTTP/2.

use std::time::Instant;

use http::header::{
    HeaderMap, HeaderName, HeaderValue, CONNECTION, CONTENT_LENGTH, DATE, TE, TRANSFER_ENCODING,
    UPGRADE,
};

use crate::response::date;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Headers about an HTTP/1 connection (RFC 9113, 8.2.2).
const OF_CONNECTIONS: [HeaderName; 6] = [
    CONNECTION,
    KEEP_ALIVE,
    PROXY_CONNECTION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Removes headers about the connection, and those that `Connection` names.
pub(crate) fn strip(headers: &mut HeaderMap) {
    // Nearly all responses have none of these, and few headers.
    if !headers.keys().any(|name| OF_CONNECTIONS.contains(name)) {
        return;
    }
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&OF_CONNECTIONS) {
        headers.remove(name);
    }
}

/// Adds the length and the date if a response does not have them. `length`: bytes of its body, if known. `now` need not
/// be exact.
pub(crate) fn complete(headers: &mut HeaderMap, length: Option<u64>, now: Instant) {
    strip(headers);
    let (mut has_length, mut has_date) = (false, false);
    for name in headers.keys() {
        has_length |= *name == CONTENT_LENGTH;
        has_date |= *name == DATE;
    }
    if let Some(length) = length.filter(|_| !has_length) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    if !has_date {
        headers.insert(DATE, date::value(now));
    }
}

/// The length that the head of a request or a response announces.
pub(crate) fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_concerns_a_connection_is_left_out() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Hop"),
            ("connection", "keep-alive"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("x-hop", "1"),
            ("x-end", "2"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        complete(&mut headers, Some(5), Instant::now());
        let names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["x-end", "content-length", "date"]);
        assert_eq!(announced(&headers), Some(5));
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("7"));
        complete(&mut headers, Some(5), Instant::now());
        assert_eq!(announced(&headers), Some(7));
    }
}
