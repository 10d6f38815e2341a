//! Which requests are for the lane: those that could not mean anything else to hyper, and have come whole.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{
    HeaderName, HeaderValue, CONNECTION, CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{Method, Uri, Version};
use httparse::Status;

use crate::direct;

/// More headers than most requests have.
const MOST_HEADERS: usize = 64;

/// Heads from this size on are hyper's to judge, which knows the limit.
const LONGEST: usize = 8 * 1024;

/// What a block of input begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// A request for the lane, all of it: so many bytes of head, and of body.
    Complete { head: usize, body: usize },
    /// The head of a request whose body is long and has not come whole, so many bytes in all. `expects`: the client waits
    /// to be told to send it.
    Long {
        head: usize,
        body: u64,
        expects: bool,
    },
    /// More has to come before it is known.
    Incomplete,
    /// Anything else, wrong or not.
    Unusual,
    /// Its length is said twice, or in two ways. hyper would take one of them.
    Ambiguous,
}

/// Fills in `head`, whose headers are empty. What it gets are slices of the block. `most`: headers that a request may have.
pub(crate) fn read(block: &Bytes, most: usize, head: &mut Parts) -> Head {
    let read = read_request(block, most, head);
    if !matches!(read, Head::Complete { .. } | Head::Long { .. }) {
        head.headers.clear();
    }
    match read {
        Head::Unusual if is_ambiguous(block) => Head::Ambiguous,
        read => read,
    }
}

/// Looks at a whole head only: who sends its parts one by one is hyper's to judge.
#[cold]
fn is_ambiguous(block: &[u8]) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; 2 * MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    if !matches!(request.parse(block), Ok(Status::Complete(_))) {
        return false;
    }
    let named = |name: HeaderName| {
        let is_it = |header: &&httparse::Header| header.name.eq_ignore_ascii_case(name.as_str());
        request.headers.iter().filter(is_it).count()
    };
    let (lengths, codings) = (named(CONTENT_LENGTH), named(TRANSFER_ENCODING));
    lengths > 1 || (lengths > 0 && codings > 0)
}

fn read_request(block: &Bytes, most: usize, head: &mut Parts) -> Head {
    let mut headers = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let headers = &mut headers[..most.min(MOST_HEADERS)];
    let mut request = httparse::Request::new(&mut []);
    let length = match request.parse_with_uninit_headers(block, headers) {
        Ok(Status::Complete(length)) if length < LONGEST => length,
        Ok(Status::Partial) if block.len() < LONGEST => return Head::Incomplete,
        Ok(_) | Err(_) => return Head::Unusual,
    };
    let (Some(method), Some(target), Some(1)) = (request.method, request.path, request.version)
    else {
        return Head::Unusual;
    };
    let (method, may_have_body) = match method {
        "GET" => (Method::GET, false),
        "POST" => (Method::POST, true),
        "PUT" => (Method::PUT, true),
        "PATCH" => (Method::PATCH, true),
        "DELETE" => (Method::DELETE, false),
        _ => return Head::Unusual,
    };
    if !target.starts_with('/') {
        return Head::Unusual;
    }
    let Ok(uri) = Uri::from_maybe_shared(block.slice_ref(target.as_bytes())) else {
        return Head::Unusual;
    };
    head.method = method;
    head.uri = uri;
    head.version = Version::HTTP_11;
    head.headers.reserve(request.headers.len());
    let (mut body, mut expects) = (None, false);
    for header in &*request.headers {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let value = HeaderValue::from_maybe_shared(block.slice_ref(header.value));
        let (Ok(name), Ok(value)) = (name, value) else {
            return Head::Unusual;
        };
        if name == CONTENT_LENGTH {
            match (body, as_length(&value)) {
                (None, Some(length)) if may_have_body => body = Some(length),
                _ => return Head::Unusual,
            }
        } else if name == EXPECT && value.as_bytes().eq_ignore_ascii_case(b"100-continue") {
            expects = true;
        } else if has_a_say(&name) && !(name == CONNECTION && is_keep_alive(&value)) {
            return Head::Unusual;
        }
        head.headers.append(name, value);
    }
    let body = body.unwrap_or(0);
    match usize::try_from(body) {
        Ok(come) if come <= block.len() - length => match expects {
            false => Head::Complete {
                head: length,
                body: come,
            },
            true => Head::Unusual,
        },
        _ if body >= direct::SHORTEST => Head::Long {
            head: length,
            body,
            expects,
        },
        _ => Head::Unusual,
    }
}

/// The length of a body.
fn as_length(value: &HeaderValue) -> Option<u64> {
    let digits = value.to_str().ok()?;
    let is_plain = (1..=18).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| is_plain)
}

/// A header that changes how the request is read, or what follows it on the connection.
fn has_a_say(name: &HeaderName) -> bool {
    *name == CONNECTION || *name == TRANSFER_ENCODING || *name == EXPECT || *name == UPGRADE
}

/// What is so anyway, and browsers say all the same.
fn is_keep_alive(value: &HeaderValue) -> bool {
    value.as_bytes().eq_ignore_ascii_case(b"keep-alive")
}
