//! Requests of every kind behind one another on a connection, answered at once or not: each gets its own
//! answer, in order, however the bytes are cut into pieces.

use std::io;
use std::thread;
use std::time::Duration;

use surus_tests::http::Connection;
use surus_tests::surus::Mode;

use super::server;

/// Requests, and what the bodies of their responses begin with.
const KINDS: u64 = 8;

struct Kind {
    method: &'static str,
    request: String,
    status: u16,
    length: usize,
    begin: String,
}

fn kind(which: u64, number: u64) -> Kind {
    let get =
        |target: &str, headers: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n{headers}\r\n");
    let text = format!("number {number}");
    let status = |code| format!("/status?code={code}&text=number+{number}");
    let (method, request, status, length, begin) = match which {
        0 => ("GET", get(&status(200), ""), 200, text.len(), text),
        1 => (
            "GET",
            get(&status(404), "Connection: keep-alive\r\nCookie: a=b\r\n"),
            404,
            text.len(),
            text,
        ),
        2 => ("GET", get(&status(204), ""), 204, 0, String::new()),
        3 => (
            "GET",
            get("/sleep?seconds=0.01", ""),
            200,
            5,
            "slept".into(),
        ),
        4 => {
            let head = format!(
                "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
                text.len()
            );
            let begin = format!("{{\"length\":{}", text.len());
            ("POST", head + &text, 200, begin.len() + 42, begin)
        }
        5 => (
            "GET",
            get("/large?kilobytes=40", ""),
            200,
            40 * 1024,
            "0123".into(),
        ),
        6 => (
            "GET",
            get("/print?kilobytes=320", ""),
            200,
            320 * 1024,
            "0123".into(),
        ),
        _ => (
            "HEAD",
            format!("HEAD /{number} HTTP/1.1\r\nHost: a\r\n\r\n"),
            200,
            0,
            String::new(),
        ),
    };
    Kind {
        method,
        request,
        status,
        length,
        begin,
    }
}

#[test]
fn requests_of_every_kind_in_any_pieces() -> io::Result<()> {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for round in 0..60 {
            // The first ones are answered at once, so that the others come in its middle.
            let plain = random(5);
            let kinds: Vec<_> = (0..plain + random(8))
                .map(|number| kind(if number < plain { 0 } else { random(KINDS) }, number))
                .collect();
            let bytes: String = kinds.iter().map(|kind| kind.request.as_str()).collect();
            let mut connection = Connection::open(server.address())?;
            let mut rest = bytes.as_bytes();
            while !rest.is_empty() {
                let length = match random(3) {
                    0 => rest.len(),
                    1 => rest.len().min(1 + random(100) as usize),
                    _ => rest.len().min(1 + random(8) as usize),
                };
                let (piece, left) = rest.split_at(length);
                connection.write(piece)?;
                rest = left;
                if random(4) == 0 {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            for (number, kind) in kinds.iter().enumerate() {
                let what = format!(
                    "{mode:?}, round {round}, request {number}: {}",
                    kind.request
                );
                let response = connection
                    .response(kind.method)
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(response.status, kind.status, "{what}");
                assert!(response.text().starts_with(&kind.begin), "{what}");
                assert_eq!(response.body.len(), kind.length, "{what}");
            }
            assert!(!connection.has_input(), "{mode:?}, round {round}: too much");
        }
    }
    Ok(())
}
