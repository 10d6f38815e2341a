//! The id of a request, and the trace that it belongs to: taken from the request, or else generated, and passed on.
//! <https://www.w3.org/TR/trace-context/>

use std::cell::Cell;
use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};

use http::header::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Maximum bytes of an id from the request.
const LONGEST: usize = 128;

/// Ensures that a request has both headers. Returns its id.
pub(crate) fn identify(headers: &mut HeaderMap) -> HeaderValue {
    let trace = headers
        .get(TRACEPARENT)
        .and_then(|value| value.to_str().ok())
        .and_then(trace_id)
        .map(str::to_owned);
    let given = headers
        .get(REQUEST_ID)
        .filter(|id| is_acceptable(id.as_bytes()))
        .cloned();
    let made = trace.clone().unwrap_or_else(|| hex(random(), random()));
    if trace.is_none() {
        let mut parent = format!("00-{made}-");
        let _ = write!(parent, "{:016x}-01", random().max(1));
        if let Ok(value) = HeaderValue::from_str(&parent) {
            headers.insert(TRACEPARENT, value);
        }
    }
    let id = given
        .or_else(|| HeaderValue::from_str(&made).ok())
        .unwrap_or(HeaderValue::from_static("-"));
    headers.insert(REQUEST_ID, id.clone());
    id
}

/// Visible ASCII without quotes and backslashes, which is safe in any log.
fn is_acceptable(id: &[u8]) -> bool {
    !id.is_empty()
        && id.len() <= LONGEST
        && id
            .iter()
            .all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(byte))
}

/// The trace id in a header such as `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`.
fn trace_id(parent: &str) -> Option<&str> {
    let mut parts = parent.split('-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, length| {
        text.len() == length
            && text
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let is_null = |text: &str| text.bytes().all(|byte| byte == b'0');
    let right = is_hex(version, 2)
        && version != "ff"
        && is_hex(trace, 32)
        && !is_null(trace)
        && is_hex(span, 16)
        && !is_null(span)
        && is_hex(flags, 2)
        // Later versions may have more parts.
        && (version != "00" || parts.next().is_none());
    right.then_some(trace)
}

fn hex(high: u64, low: u64) -> String {
    format!("{high:016x}{low:016x}")
}

/// Cannot be guessed from the ids of another process, but is not a secret either: SipHash of a counter with a random
/// key.
fn random() -> u64 {
    thread_local! {
        static KEY: RandomState = RandomState::new();
        static NEXT: Cell<u64> = const { Cell::new(0) };
    }
    let next = NEXT.get().wrapping_add(1);
    NEXT.set(next);
    // Forked processes have the same key.
    KEY.with(|key| key.hash_one((std::process::id(), next)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(headers: &[(HeaderName, &str)]) -> (String, HeaderMap) {
        let mut headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect();
        let id = identify(&mut headers);
        (id.to_str().unwrap().to_owned(), headers)
    }

    #[test]
    fn made_where_none_is_given() {
        let (first, headers) = with(&[]);
        assert_eq!(headers[REQUEST_ID], first);
        let parent = headers[TRACEPARENT].to_str().unwrap();
        assert_eq!(trace_id(parent), Some(first.as_str()));
        assert_ne!(with(&[]).0, first);
    }

    #[test]
    fn taken_over_where_it_can_be() {
        const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(with(&[(REQUEST_ID, "a-1")]).0, "a-1");
        let (id, headers) = with(&[(TRACEPARENT, PARENT)]);
        assert_eq!(id, "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(headers[TRACEPARENT], PARENT);
        for wrong in ["a b", "", "\"x\"", &"x".repeat(129)] {
            assert_ne!(with(&[(REQUEST_ID, wrong)]).0, wrong);
        }
        for wrong in [
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "00-0af7651916cd43dd8448eb211c80319c",
        ] {
            assert_ne!(with(&[(TRACEPARENT, wrong)]).1[TRACEPARENT], wrong);
        }
    }
}
