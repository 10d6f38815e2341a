//! Compares this engine with hyper, for any bytes, split anywhere: what is a request here is also one there, with the
//! same body, and a plain response is written as hyper writes it. docs/internals/framing.md lists the differences.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{poll_fn, Future};
use std::io;
use std::pin::{pin, Pin};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::{Buf, Bytes, BytesMut};
use http::header::{
    HeaderName, HeaderValue, CONNECTION, CONTENT_LENGTH, DATE, TRAILER, TRANSFER_ENCODING,
};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::body::{Decoder, Next};
use super::connection::nothing;
use super::encode;
use super::head::{self, Asked, Head, Length};
use crate::Limits;

/// A client that has sent `input` and waits.
struct Client<'a> {
    input: &'a [u8],
    output: &'a RefCell<Vec<u8>>,
}

impl AsyncRead for Client<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.input.is_empty() {
            return Poll::Pending;
        }
        let (now, later) = self.input.split_at(self.input.len().min(buf.remaining()));
        buf.put_slice(now);
        self.input = later;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Client<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.output.borrow_mut().extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A request with its whole body.
type Understood = (Parts, Vec<u8>);

/// The requests that hyper reads in `input`, and what it writes when it answers each with `answer`.
fn hyper(input: &[u8], answer: &Response<String>) -> (Vec<Understood>, Vec<u8>) {
    let requests: RefCell<Vec<Understood>> = RefCell::default();
    let output = RefCell::default();
    let client = Client {
        input,
        output: &output,
    };
    let service = service_fn(|request: Request<Incoming>| {
        let (head, mut body) = request.into_parts();
        let (requests, answer) = (&requests, answer.clone());
        async move {
            let mut whole = Vec::new();
            let mut is_whole = true;
            while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                match frame.map(|frame| frame.into_data()) {
                    Ok(Ok(data)) => whole.extend_from_slice(&data),
                    Ok(Err(_trailers)) => {}
                    Err(_) => is_whole = false,
                }
            }
            if is_whole {
                requests.borrow_mut().push((head, whole));
            }
            Ok::<_, Infallible>(answer)
        }
    });
    {
        let mut connection = pin!(http1::Builder::new()
            .header_read_timeout(None)
            .serve_connection(TokioIo::new(client), service));
        let mut cx = Context::from_waker(Waker::noop());
        // It may yield and wake itself several times.
        let _ = (0..100).find(|_| connection.as_mut().poll(&mut cx).is_ready());
    }
    (requests.into_inner(), output.into_inner())
}

/// Why no more requests are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The input is incomplete.
    Open,
    /// The connection is to be closed after the last request.
    Last,
    /// The last request has trailers.
    Trailers,
    /// What follows is not a head.
    NoHead,
    /// The body is malformed.
    NoBody,
}

/// The requests that this engine reads if its input arrives in pieces of `size` bytes, why it stopped, and the rest of
/// the input.
fn ours(input: &[u8], size: usize) -> (Vec<Understood>, End, Bytes) {
    let limits = Limits::default();
    let mut pieces = input.chunks(size);
    let (mut buffer, mut requests) = (BytesMut::new(), Vec::new());
    let mut seen = 0;
    loop {
        let block = Bytes::copy_from_slice(&buffer);
        let mut request = nothing();
        let read = match seen == 0 || head::may_end(&block, seen) {
            true => head::read(&block, limits.header_count, &mut request),
            false => Head::Incomplete,
        };
        let (length, asked) = match read {
            Head::Complete(length, asked) => (length, asked),
            Head::Refused(_) => {
                assert!(
                    request.headers.is_empty(),
                    "nothing is left for the next one"
                );
                return (requests, End::NoHead, block);
            }
            Head::Incomplete => {
                seen = block.len();
                let Some(piece) = pieces.next() else {
                    return (requests, End::Open, block);
                };
                buffer.extend_from_slice(piece);
                continue;
            }
        };
        seen = 0;
        buffer.advance(length);
        let mut decoder = Decoder::new(&asked, &limits);
        let (mut body, mut has_trailers) = (Vec::new(), false);
        loop {
            match decoder.decode(&mut buffer) {
                Ok(Some(Next::End)) => break,
                Ok(Some(Next::Some(frame, has_ended))) => {
                    has_trailers |= frame.is_trailers();
                    body.extend_from_slice(&frame.into_data().unwrap_or_default());
                    if has_ended {
                        break;
                    }
                }
                Ok(None) => match pieces.next() {
                    Some(piece) => buffer.extend_from_slice(piece),
                    None => return (requests, End::Open, Bytes::new()),
                },
                Err(_) => return (requests, End::NoBody, Bytes::new()),
            }
        }
        requests.push((request, body));
        if has_trailers {
            return (requests, End::Trailers, Bytes::new());
        }
        if !asked.stays {
            return (requests, End::Last, Bytes::new());
        }
    }
}

/// The length is given twice or in two ways, or exceeds that of a file: hyper accepts such a request.
fn is_refused_here_only(block: &[u8]) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; 200];
    let mut request = httparse::Request::new(&mut headers);
    if !matches!(request.parse(block), Ok(httparse::Status::Complete(_))) {
        return false;
    }
    let named = |name: HeaderName| {
        let is_it = |header: &&httparse::Header| header.name.eq_ignore_ascii_case(name.as_str());
        request.headers.iter().filter(is_it).collect::<Vec<_>>()
    };
    let (lengths, codings) = (named(CONTENT_LENGTH), named(TRANSFER_ENCODING));
    let is_huge = |length: &&httparse::Header| {
        let number = std::str::from_utf8(length.value)
            .unwrap_or_default()
            .parse::<u64>();
        number.is_ok_and(|number| number > i64::MAX as u64)
    };
    lengths.len() > 1 || (!lengths.is_empty() && !codings.is_empty()) || lengths.iter().any(is_huge)
}

/// Bytes that a client sends.
pub fn http1(data: &[u8]) {
    let (requests, end, rest) = ours(data, data.len().max(1));
    let same = |one: &[Understood], other: &[Understood]| {
        one.iter().zip(other).all(|(one, other)| {
            assert_eq!(one.0.method, other.0.method);
            assert_eq!(one.0.uri, other.0.uri);
            assert_eq!(one.0.version, other.0.version);
            assert_eq!(one.0.headers, other.0.headers);
            one.1 == other.1
        })
    };
    for size in [1, 1 + data.len() % 13] {
        let (cut, ..) = ours(data, size);
        assert_eq!(cut.len(), requests.len(), "in pieces of {size}");
        assert!(same(&cut, &requests), "in pieces of {size}");
    }
    let (theirs, _) = hyper(data, &Response::new(String::new()));
    assert!(
        same(&requests, &theirs),
        "a body differs: {}",
        data.escape_ascii()
    );
    // hyper ends trailers only at CRLF CRLF, and continues to search for it.
    let is_earlier = usize::from(end == End::Trailers);
    assert!(
        requests.len() <= theirs.len() + is_earlier,
        "hyper reads {} requests, and not {}: {}",
        theirs.len(),
        requests.len(),
        data.escape_ascii()
    );
    if requests.len() < theirs.len() {
        let is_decided = match end {
            End::Last | End::Trailers | End::NoBody => true,
            End::NoHead => is_refused_here_only(&rest),
            End::Open => false,
        };
        assert!(
            is_decided,
            "hyper reads more: {end:?}: {}",
            data.escape_ascii()
        );
    }
}

/// A status, lines of headers, an empty line, a body.
pub fn response(data: &[u8]) {
    let mut lines = data.split(|&byte| byte == b'\n');
    let mut answer = Response::new(String::new());
    let status = lines.next().unwrap_or_default();
    *answer.status_mut() = StatusCode::from_bytes(status).unwrap_or_default();
    // Interim responses are sent elsewhere.
    if answer.status().is_informational() {
        return;
    }
    for line in lines.by_ref().take_while(|line| !line.is_empty()).take(20) {
        let (name, value) = line.split_at(line.iter().position(|&byte| byte == b':').unwrap_or(0));
        let name = HeaderName::from_bytes(name);
        let value = HeaderValue::from_bytes(value.get(1..).unwrap_or_default().trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            // The server writes these headers itself.
            let is_servers = [CONTENT_LENGTH, CONNECTION, TRANSFER_ENCODING, TRAILER];
            if !is_servers.contains(&name) {
                answer.headers_mut().append(name, value);
            }
        }
    }
    let body = lines.collect::<Vec<_>>().join(&b'\n');
    *answer.body_mut() = String::from_utf8_lossy(&body).into_owned();
    let mut written = b"before".to_vec();
    let asked = Asked {
        body: Length::Known(0),
        expects: false,
        stays: true,
        is_http10: false,
        takes_trailers: false,
        upgrades: false,
        is_head: false,
    };
    let length = Some(answer.body().len() as u64);
    let framing = encode::write_head(
        &mut written,
        &asked,
        answer.status(),
        answer.headers(),
        length,
        &mut true,
        Instant::now(),
    );
    if framing != encode::Framing::Length(0) {
        written.extend_from_slice(answer.body().as_bytes());
    }
    let (_, expected) = hyper(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", &answer);
    let made_date = !answer.headers().contains_key(DATE);
    let written = written.strip_prefix(b"before").expect("what was before");
    let written = fields(written, made_date);
    let expected = fields(&expected, made_date);
    assert_eq!(written, expected, "{:?}", answer.headers());
}

/// The contents of a response; without the date, if the server has added it.
fn fields(response: &[u8], made_date: bool) -> (String, Vec<String>, String) {
    let text = response
        .iter()
        .map(|&byte| char::from(byte))
        .collect::<String>();
    let (head, body) = text.split_once("\r\n\r\n").expect("the end of the head");
    let (status, headers) = head.split_once("\r\n").expect("headers");
    let mut headers: Vec<_> = headers.split("\r\n").map(str::to_owned).collect();
    for header in &mut headers {
        if made_date && header.starts_with("date: ") {
            header.truncate("date: ".len());
        }
    }
    headers.sort_unstable();
    (status.to_owned(), headers, body.to_owned())
}

#[cfg(test)]
mod tests {
    use surus_replay::replay;

    #[test]
    fn seeds_and_mutations() {
        replay("http1", super::http1);
        replay("response", super::response);
    }
}
