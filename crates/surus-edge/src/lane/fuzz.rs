//! The lane against hyper, over any bytes: what the lane takes, hyper reads the same; what the lane writes, hyper writes.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{poll_fn, Future};
use std::io;
use std::pin::{pin, Pin};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue, CONTENT_LENGTH, DATE};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::head::{self, Head};
use super::{nothing, response};

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

/// The requests that hyper reads in `input`, and what it writes where it answers each with `answer`.
fn hyper(input: &[u8], answer: &Response<String>) -> (Vec<(Parts, Vec<u8>)>, Vec<u8>) {
    let requests: RefCell<Vec<(Parts, Vec<u8>)>> = RefCell::default();
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
            while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                let data = frame.expect("a body that is there").into_data();
                whole.extend_from_slice(&data.expect("no trailers"));
            }
            requests.borrow_mut().push((head, whole));
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(client), service);
    let polled = pin!(connection).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "hyper ends the connection: {polled:?}");
    (requests.into_inner(), output.into_inner())
}

/// Bytes that a client sends.
pub fn lane(data: &[u8]) {
    let block = Bytes::copy_from_slice(data);
    let mut head = nothing();
    let read = head::read(&block, 100, &mut head);
    let (length, rest) = match read {
        Head::Complete { head, body } => (head, body),
        Head::Long {
            head: length, body, ..
        } => {
            assert!(
                body > (block.len() - length) as u64,
                "some of it is missing"
            );
            let (requests, _) = hyper(&block.slice(..length), &Response::new(String::new()));
            assert!(requests.is_empty(), "hyper waits for the body");
            return;
        }
        Head::Incomplete | Head::Unusual | Head::Ambiguous => {
            assert!(head.headers.is_empty(), "nothing is left for the next one");
            return;
        }
    };
    // It is the same whatever follows, and no less will do.
    let exactly = block.slice(..length + rest);
    assert_eq!(head::read(&exactly, 100, &mut nothing()), read);
    for end in 0..length + rest {
        let less = head::read(&block.slice(..end), 100, &mut nothing());
        let expected = if end < length {
            Head::Incomplete
        } else {
            Head::Unusual
        };
        assert_eq!(less, expected, "{end} of {length} + {rest} bytes");
    }
    let (requests, _) = hyper(&exactly, &Response::new(String::new()));
    let [(request, body)] = &*requests else {
        panic!("hyper reads {} requests", requests.len());
    };
    assert_eq!(body, &exactly[length..]);
    assert_eq!(head.method, request.method);
    assert_eq!(head.uri, request.uri);
    assert_eq!(head.version, request.version);
    assert_eq!(head.headers, request.headers);
}

/// A status, lines of headers, an empty line, a body.
pub fn response(data: &[u8]) {
    let mut lines = data.split(|&byte| byte == b'\n');
    let mut answer = Response::new(String::new());
    let status = lines.next().unwrap_or_default();
    *answer.status_mut() = StatusCode::from_bytes(status).unwrap_or_default();
    for line in lines.by_ref().take_while(|line| !line.is_empty()).take(20) {
        let (name, value) = line.split_at(line.iter().position(|&byte| byte == b':').unwrap_or(0));
        let name = HeaderName::from_bytes(name);
        let value = HeaderValue::from_bytes(value.get(1..).unwrap_or_default().trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            // What it says of its length is made true before.
            if name != CONTENT_LENGTH {
                answer.headers_mut().append(name, value);
            }
        }
    }
    let body = lines.collect::<Vec<_>>().join(&b'\n');
    *answer.body_mut() = String::from_utf8_lossy(&body).into_owned();
    let mut written = b"before".to_vec();
    if !response::write(
        &mut written,
        answer.status(),
        answer.headers(),
        answer.body().as_bytes(),
        Instant::now(),
    ) {
        assert_eq!(written, b"before");
        return;
    }
    let (_, expected) = hyper(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", &answer);
    let written = written.strip_prefix(b"before").expect("what was before");
    let made_date = !answer.headers().contains_key(DATE);
    let written = fields(written, made_date);
    let expected = fields(&expected, made_date);
    assert_eq!(written, expected, "{:?}", answer.headers());
}

/// What a response says; without the time, where that is the server's.
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

    use super::*;

    fn read(bytes: &str) -> (Head, Parts) {
        let mut head = nothing();
        let block = Bytes::copy_from_slice(bytes.as_bytes());
        (head::read(&block, 100, &mut head), head)
    }

    #[test]
    fn seeds_and_mutations() {
        replay("lane", super::lane);
        replay("response", super::response);
    }

    #[test]
    fn what_most_clients_send_is_for_the_lane() {
        for headers in [
            "",
            "Connection: keep-alive\r\n",
            "User-Agent: curl/7.88.1\r\nAccept: */*\r\nCookie: a=b; c=d\r\nCookie: e=f\r\nX-Mine: \u{e9}\r\n",
        ] {
            let request = format!("GET /a?b=c HTTP/1.1\r\nHost: a\r\n{headers}\r\n");
            let (read, head) = read(&format!("{request}GET /"));
            let head_only = Head::Complete {
                head: request.len(),
                body: 0,
            };
            assert_eq!(read, head_only, "{headers}");
            assert_eq!(head.uri, "/a?b=c");
            assert_eq!(head.headers.len(), 1 + headers.matches("\r\n").count());
        }
    }

    #[test]
    fn a_body_that_has_come_belongs_to_its_head() {
        let head = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
        let expected = Head::Complete {
            head: head.len(),
            body: 3,
        };
        assert_eq!(read(&format!("{head}abcGET /")).0, expected);
    }

    #[test]
    fn what_asks_for_more_is_not() {
        for request in [
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\nab",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2, 2\r\n\r\nab",
            "DELETE / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
            "OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n",
            "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.0\r\nHost: a\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
            "nonsense\r\n\r\n",
        ] {
            assert_eq!(read(request).0, Head::Unusual, "{request}");
        }
        for request in [
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab",
            "PUT / HTTP/1.0\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "OPTIONS / HTTP/1.1\r\nTRANSFER-ENCODING: x\r\ncontent-length: 2\r\n\r\n",
        ] {
            assert_eq!(read(request).0, Head::Ambiguous, "{request}");
        }
        let many = "a: b\r\n".repeat(65);
        assert_eq!(
            read(&format!("GET / HTTP/1.1\r\n{many}\r\n")).0,
            Head::Unusual
        );
        let long = "a".repeat(8 * 1024);
        assert_eq!(read(&format!("GET /{long}")).0, Head::Unusual);
    }
}
