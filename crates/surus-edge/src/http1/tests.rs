//! The engine over a connection in memory: the framing corpus in one piece, byte by byte and split at random, and
//! upgrades.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::header::UPGRADE;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::request::edge::Edge;
use crate::testing::{talk, with, Then};
use crate::{
    plain, Answer, Backend, BoxError, Connection, Limits, Reply, RequestBody, Settings, Upgrade,
    Upgraded,
};

#[path = "../../../../tests/tests/edge/framing/corpus.rs"]
mod corpus;

use corpus::{Case, Reading, CHUNKS, CODINGS, HEADERS, LENGTHS, LINES};

/// How often each request is split at random.
const CUTS: usize = 12;

/// Answers with the body of the request.
struct Echo;

type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>;

impl Backend for Echo {
    type Body = Body;

    fn call(
        self: &Rc<Self>,
        head: &mut Parts,
        body: Option<RequestBody>,
        _: &Connection,
    ) -> Answer<Body> {
        let answer = |bytes| Response::new(Reply::Bytes(bytes));
        match (head.uri.path(), body) {
            ("/talk", _) => Answer::Now(upgrade()),
            ("/wait/talk", _) => Answer::Later(Box::pin(async {
                tokio::task::yield_now().await;
                upgrade()
            })),
            (_, None) => Answer::Now(answer(Bytes::new())),
            (_, Some(body)) => match body.at_hand().cloned() {
                Some(bytes) => Answer::Now(answer(bytes)),
                None => Answer::Later(Box::pin(async move {
                    match body.collect().await {
                        Ok(body) => answer(body.to_bytes()),
                        Err(_) => plain(StatusCode::BAD_REQUEST),
                    }
                })),
            },
        }
    }
}

fn upgrade() -> Response<Reply<Body>> {
    let mut response = Response::new(Reply::Upgrade(Upgrade::new(loudly)));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("loud"));
    response
}

/// Sends back what it receives, in upper case.
async fn loudly(mut socket: Upgraded) {
    let mut heard = [0; 5];
    while let Ok(count @ 1..) = socket.read(&mut heard).await {
        heard[..count].make_ascii_uppercase();
        if socket.write_all(&heard[..count]).await.is_err() {
            return;
        }
    }
    let _ = socket.write_all(b"!").await;
    let _ = socket.shutdown().await;
}

fn edge() -> Edge<Echo> {
    let soon = Duration::from_secs(5);
    let limits = Limits {
        header_timeout: soon,
        body_timeout: soon,
        keep_alive: soon,
        ..Limits::default()
    };
    Edge::new(Rc::new(Echo), limits, Settings::default())
}

/// Status and body of each response.
fn responses(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut all = Vec::new();
    while let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
        let head = std::str::from_utf8(&bytes[..end]).expect("a head");
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .and_then(|length| length.parse().ok())
            .unwrap_or(0);
        let body = &bytes[end + 4..];
        all.push((status.expect("a status"), &body[..length]));
        bytes = &body[length..];
    }
    all
}

fn is_right(reading: Reading, answer: &[u8]) -> bool {
    const NAME: &str = "case-000-";
    let all = responses(answer);
    let last = all.last().map(|(status, _)| *status);
    let taken: Vec<_> = all
        .iter()
        .filter_map(|(status, body)| (*status == 200).then_some(*body))
        .collect();
    let named = |body: &str| body.replace("NAME", NAME).into_bytes();
    match reading {
        Reading::Refused(expected) => taken.is_empty() && last == Some(expected),
        Reading::Dropped => taken.is_empty(),
        Reading::Taken(body) => taken == [&named(body)[..], b""],
        Reading::Last(body) => taken == [&named(body)[..]],
    }
}

/// Splits bytes into pieces, each time differently.
struct Cutter(u64);

impl Cutter {
    fn cut(&mut self, bytes: &Bytes) -> Vec<Bytes> {
        let (mut rest, mut pieces) = (bytes.clone(), Vec::new());
        while !rest.is_empty() {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            // Half of the pieces are short: the sequences that matter are a few bytes long.
            let most = if self.0 & 1 == 0 { 6 } else { rest.len() };
            let size = 1 + (self.0 >> 8) as usize % most;
            pieces.push(rest.split_to(size.min(rest.len())));
        }
        pieces
    }
}

#[test]
fn requests_are_read_alike_however_they_are_cut() {
    with(edge(), |edge| async move {
        let mut cutter = Cutter(0x5eed);
        for Case {
            name,
            bytes,
            reading,
        } in [LENGTHS, CODINGS, CHUNKS, LINES, HEADERS].concat()
        {
            let next = "GET /probe-000- HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            let bytes = Bytes::from(bytes.replace("NAME", "case-000-") + next);
            let whole = vec![bytes.clone()];
            let each = bytes.chunks(1).map(Bytes::copy_from_slice).collect();
            let cut = (0..CUTS).map(|_| cutter.cut(&bytes));
            for pieces in [whole, each].into_iter().chain(cut) {
                let answer = talk(&edge, pieces.clone(), Then::Waits).await;
                assert!(
                    is_right(reading, &answer),
                    "{name}: {reading:?} was expected for {pieces:?}, but: {}",
                    answer.escape_ascii()
                );
            }
        }
    });
}

/// The response to a request that arrives in these pieces.
fn asks(pieces: &[&'static str]) -> String {
    let mut answer = Vec::new();
    let all = pieces
        .iter()
        .map(|piece| Bytes::from_static(piece.as_bytes()));
    let all: Vec<_> = all.collect();
    with(edge(), |edge| {
        let answer = &mut answer;
        async move { *answer = talk(&edge, all, Then::Ends).await }
    });
    String::from_utf8(answer).expect("text")
}

#[test]
fn an_upgrade_gets_the_socket_with_what_was_read_beyond_the_head() {
    for path in ["/talk", "/wait/talk"] {
        let head: &'static str = format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: loud\r\n\r\nbeyond"
        )
        .leak();
        let answer = asks(&[head, "GET / HTTP", "/1.1\r\n"]);
        let (head, rest) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(
            head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"),
            "{head}"
        );
        for line in ["connection: upgrade", "upgrade: loud"] {
            assert!(head.lines().any(|it| it == line), "{line}: {head}");
        }
        assert!(!head.contains("content-length") && !head.contains("transfer-encoding"));
        assert_eq!(rest, "BEYONDGET / HTTP/1.1\r\n!", "{path}");
    }
}

#[test]
fn nobody_is_upgraded_who_has_not_asked() {
    for head in [
        "GET /talk HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /talk HTTP/1.1\r\nHost: a\r\nUpgrade: loud\r\n\r\n",
        "GET /talk HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n\r\n",
        "GET /talk HTTP/1.0\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: loud\r\n\r\n",
        "POST /talk HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: loud\r\nContent-Length: 1\r\n\r\nx",
    ] {
        let answer = asks(&[head]);
        assert!(answer.contains(" 426 Upgrade Required\r\n"), "{answer}");
        assert!(answer.contains("upgrade: loud\r\n"), "{answer}");
    }
}

/// A request for an upgrade that is not taken leaves the connection as it was.
#[test]
fn an_upgrade_that_is_not_taken_is_a_request() {
    let head = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: loud\r\n\r\n";
    let answer = asks(&[head, head]);
    assert_eq!(responses(answer.as_bytes()).len(), 2, "{answer}");
}
