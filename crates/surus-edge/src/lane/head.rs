//! Which requests are for the lane: those that could not mean anything else to hyper.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{
    HeaderName, HeaderValue, CONNECTION, CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{Method, Uri, Version};
use httparse::Status;

/// More headers than most requests have.
const MOST_HEADERS: usize = 64;

/// From this size on, what is incomplete is hyper's to judge.
const LONGEST: usize = 8 * 1024;

/// What a block of input begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// A request for the lane, so many bytes long, all of it.
    Complete(usize),
    /// More has to come before it is known.
    Incomplete,
    /// Anything else, wrong or not.
    Unusual,
}

/// Fills in `head`, whose headers are empty. What it gets are slices of the block.
pub(crate) fn read(block: &Bytes, head: &mut Parts) -> Head {
    let read = read_request(block, head);
    if !matches!(read, Head::Complete(_)) {
        head.headers.clear();
    }
    read
}

fn read_request(block: &Bytes, head: &mut Parts) -> Head {
    let mut headers = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    let length = match request.parse_with_uninit_headers(block, &mut headers) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) if block.len() < LONGEST => return Head::Incomplete,
        Ok(Status::Partial) | Err(_) => return Head::Unusual,
    };
    let (Some("GET"), Some(target), Some(1)) = (request.method, request.path, request.version)
    else {
        return Head::Unusual;
    };
    if !target.starts_with('/') {
        return Head::Unusual;
    }
    let Ok(uri) = Uri::from_maybe_shared(block.slice_ref(target.as_bytes())) else {
        return Head::Unusual;
    };
    head.method = Method::GET;
    head.uri = uri;
    head.version = Version::HTTP_11;
    head.headers.reserve(request.headers.len());
    for header in &*request.headers {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let value = HeaderValue::from_maybe_shared(block.slice_ref(header.value));
        let (Ok(name), Ok(value)) = (name, value) else {
            return Head::Unusual;
        };
        if has_a_say(&name) && !(name == CONNECTION && is_keep_alive(&value)) {
            return Head::Unusual;
        }
        head.headers.append(name, value);
    }
    Head::Complete(length)
}

/// A header that changes how the request is read, or what follows it on the connection.
fn has_a_say(name: &HeaderName) -> bool {
    [
        CONNECTION,
        CONTENT_LENGTH,
        TRANSFER_ENCODING,
        EXPECT,
        UPGRADE,
    ]
    .contains(name)
}

/// What is so anyway, and browsers say all the same.
fn is_keep_alive(value: &HeaderValue) -> bool {
    value.as_bytes().eq_ignore_ascii_case(b"keep-alive")
}
