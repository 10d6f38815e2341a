//! Parses the head of a request, with what it says about its body and the connection: RFC 9112, as strictly as the
//! implementations in front of and behind this server. docs/internals/framing.md explains each decision.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{
    HeaderName, HeaderValue, CONNECTION, CONTENT_LENGTH, EXPECT, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{Method, Uri, Version};
use httparse::Status;

use crate::Refusal;

/// Most requests have fewer headers. Up to this number, they are parsed on the stack.
const MOST_HEADERS: usize = 64;

/// The `http` crate rejects longer targets.
const LONGEST_TARGET: usize = u16::MAX as usize - 1;

/// What a block of input begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// A request whose head has this number of bytes.
    Complete(usize, Asked),
    /// More input is needed.
    Incomplete,
    /// Not a request. Nothing that follows on the connection may be read as one.
    Refused(Refusal),
}

/// What a head says about the body and the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) body: Length,
    /// The client waits for `100 Continue` before it sends the body.
    pub(crate) expects: bool,
    /// The client may send another request on this connection.
    pub(crate) stays: bool,
    /// The client supports neither chunks nor interim responses.
    pub(crate) is_http10: bool,
    pub(crate) takes_trailers: bool,
    /// The client asks for another protocol, and the request has no body.
    pub(crate) upgrades: bool,
    /// The method is HEAD: the response has no body.
    pub(crate) is_head: bool,
}

/// How long a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// This number of bytes; zero for most requests.
    Known(u64),
    /// The body is chunked.
    Chunked,
}

/// Whether the end of a head may be among `bytes`, of which the first `seen` were examined before. So a head that
/// arrives in many pieces is not parsed again with each of them.
pub(super) fn may_end(bytes: &[u8], seen: usize) -> bool {
    let begin = seen.saturating_sub(3);
    memchr::memchr_iter(b'\n', &bytes[begin..]).any(|at| {
        let behind = &bytes[begin + at + 1..];
        behind.starts_with(b"\n") || behind.starts_with(b"\r\n")
    })
}

/// Fills in `head`, whose headers must be empty, with slices of the block. `most`: headers that a request may have.
#[inline(always)]
pub(crate) fn read(block: &Bytes, most: usize, head: &mut Parts) -> Head {
    let mut headers = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let headers = &mut headers[..most.min(MOST_HEADERS)];
    let mut request = httparse::Request::new(&mut []);
    let read = match request.parse_with_uninit_headers(block, headers) {
        Ok(Status::Complete(length)) => take(block, length, &request, head),
        Ok(Status::Partial) => Ok(Head::Incomplete),
        Err(httparse::Error::TooManyHeaders) if most > MOST_HEADERS => read_many(block, most, head),
        Err(error) => Err(refusal(block, error)),
    };
    read.unwrap_or_else(|why| {
        head.headers.clear();
        Head::Refused(why)
    })
}

#[cold]
fn read_many(block: &Bytes, most: usize, head: &mut Parts) -> Result<Head, Refusal> {
    let mut headers = vec![httparse::EMPTY_HEADER; most];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(block) {
        Ok(Status::Complete(length)) => take(block, length, &request, head),
        Ok(Status::Partial) => Ok(Head::Incomplete),
        Err(error) => Err(refusal(block, error)),
    }
}

#[cold]
fn refusal(block: &[u8], error: httparse::Error) -> Refusal {
    match (error, block) {
        (httparse::Error::TooManyHeaders, _) => Refusal::Head,
        (_, [0x16, 0x03, ..]) => Refusal::Tls,
        _ => Refusal::Malformed,
    }
}

#[inline(always)]
fn take(
    block: &Bytes,
    length: usize,
    request: &httparse::Request<'_, '_>,
    head: &mut Parts,
) -> Result<Head, Refusal> {
    const MALFORMED: Refusal = Refusal::Malformed;
    let (Some(method), Some(target), Some(version)) =
        (request.method, request.path, request.version)
    else {
        return Err(MALFORMED);
    };
    if target.len() > LONGEST_TARGET {
        return Err(Refusal::Target);
    }
    head.method = match method {
        "GET" => Method::GET,
        _ => Method::from_bytes(method.as_bytes()).map_err(|_| MALFORMED)?,
    };
    head.uri = Uri::from_maybe_shared(block.slice_ref(target.as_bytes())).map_err(|_| MALFORMED)?;
    let is_http10 = version == 0;
    head.version = match is_http10 {
        true => Version::HTTP_10,
        false => Version::HTTP_11,
    };
    let mut asked = Asked {
        body: Length::Known(0),
        expects: false,
        stays: !is_http10,
        is_http10,
        takes_trailers: false,
        upgrades: false,
        is_head: head.method == Method::HEAD,
    };
    head.headers.reserve(request.headers.len());
    let (mut said, mut coded, mut closes, mut offers) = (false, false, false, false);
    for header in &*request.headers {
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| MALFORMED)?;
        let value = HeaderValue::from_maybe_shared(block.slice_ref(header.value));
        let value = value.map_err(|_| MALFORMED)?;
        if name == CONTENT_LENGTH {
            if std::mem::replace(&mut said, true) {
                return Err(MALFORMED);
            }
            asked.body = Length::Known(as_length(&value).ok_or(MALFORMED)?);
        } else if name == TRANSFER_ENCODING {
            // Only the last coding is read here; well_formed.rs refuses a request with any other.
            coded = true;
            asked.body = match ends_in_chunked(&value) {
                true => Length::Chunked,
                false => Length::Known(0),
            };
        } else if name == CONNECTION {
            closes |= names(&value, b"close");
            asked.stays |= names(&value, b"keep-alive");
            asked.upgrades |= names(&value, b"upgrade");
        } else if name == EXPECT {
            asked.expects = !is_http10 && value.as_bytes().eq_ignore_ascii_case(b"100-continue");
        } else if name == TE {
            asked.takes_trailers |= !is_http10 && names(&value, b"trailers");
        } else if name == UPGRADE {
            offers = true;
        }
        head.headers.append(name, value);
    }
    asked.stays &= !closes;
    asked.upgrades &= offers && asked.stays && !is_http10 && asked.body == Length::Known(0);
    let is_ambiguous = said || is_http10 || asked.body != Length::Chunked;
    if coded && is_ambiguous {
        return Err(MALFORMED);
    }
    Ok(Head::Complete(length, asked))
}

/// The length of a body: only digits, and no more bytes than a file may have.
fn as_length(value: &HeaderValue) -> Option<u64> {
    let digits = value.as_bytes();
    let is_plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let length = value.to_str().ok().filter(|_| is_plain)?.parse().ok()?;
    (length <= i64::MAX as u64).then_some(length)
}

fn ends_in_chunked(codings: &HeaderValue) -> bool {
    let last = codings.as_bytes().rsplit(|&byte| byte == b',').next();
    last.is_some_and(|last| last.trim_ascii().eq_ignore_ascii_case(b"chunked"))
}

/// Whether a comma-separated list contains `what`.
pub(super) fn names(list: &HeaderValue, what: &[u8]) -> bool {
    let bytes = list.as_bytes();
    bytes.eq_ignore_ascii_case(what)
        || bytes
            .split(|&byte| byte == b',')
            .any(|each| each.trim_ascii().eq_ignore_ascii_case(what))
}
