//! Bodies that are read from the socket where they are wanted, and what follows them on their connections.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::atomic::Ordering;
use std::time::Duration;

use surus_edge::Limits;

use crate::support::{sum, Client, Server};

const MEGABYTE: usize = 1 << 20;

fn body(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 % 251) as u8).collect()
}

fn head(path: &str, length: usize, more: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {length}\r\n{more}\r\n")
}

fn send(client: &mut Client, path: &str, body: &[u8]) {
    client.send(&head(path, body.len(), ""));
    client.stream.write_all(body).unwrap();
}

#[test]
fn one_after_the_other() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    for path in ["/sum", "/kept"] {
        for length in [262_143, 262_144, 700_001, 5 * MEGABYTE] {
            let body = body(length);
            send(&mut client, path, &body);
            assert_eq!(client.read(true).text(), sum(&body), "{path}");
            assert_eq!(client.get("/hello").text(), "hello");
            // In pieces, of which the first comes with the head.
            let (first, rest) = body.split_at(length / 3);
            send_in_two(&mut client, path, first, rest);
            assert_eq!(client.read(true).text(), sum(&body), "{path}");
        }
    }
}

fn send_in_two(client: &mut Client, path: &str, first: &[u8], rest: &[u8]) {
    let head = head(path, first.len() + rest.len(), "");
    client
        .stream
        .write_all(&[head.as_bytes(), first].concat())
        .unwrap();
    std::thread::sleep(Duration::from_millis(50));
    client.stream.write_all(rest).unwrap();
}

#[test]
fn requests_that_come_with_the_end_of_a_body_are_answered() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    let body = body(MEGABYTE);
    for path in ["/sum", "/kept", "/sum"] {
        let get = "GET /hello HTTP/1.1\r\nhost: test\r\n\r\n";
        let post = head(path, body.len(), "");
        let all = [post.as_bytes(), &body, get.as_bytes(), get.as_bytes()].concat();
        client.stream.write_all(&all).unwrap();
        assert_eq!(client.read(true).text(), sum(&body));
        assert_eq!(client.read(true).text(), "hello");
        assert_eq!(client.read(true).text(), "hello");
    }
}

#[test]
fn a_client_that_waits_to_be_asked_is_asked() {
    const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
    let server = Server::start(Limits::default());
    let body = body(MEGABYTE);
    let mut client = server.connect();
    for path in ["/sum", "/kept"] {
        client.send(&head(path, body.len(), "expect: 100-continue\r\n"));
        let mut interim = [0; CONTINUE.len()];
        client.stream.read_exact(&mut interim).unwrap();
        assert_eq!(interim, CONTINUE);
        client.stream.write_all(&body).unwrap();
        assert_eq!(client.read(true).text(), sum(&body));
    }
    // Unless its body is not wanted.
    client.send(&head("/hello", body.len(), "expect: 100-continue\r\n"));
    let answer = client.read(true);
    assert_eq!((answer.status, answer.text()), (200, "hello"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(client.closed());
}

#[test]
fn what_nobody_has_read_is_no_request() {
    let server = Server::start(Limits::default());
    let request = "GET /hello HTTP/1.1\r\nhost: test\r\n\r\n";
    let body = request.repeat(MEGABYTE / request.len());
    for path in ["/hello", "/empty", "/missing", "/slow"] {
        let mut client = server.connect();
        // The rest only when the answer has come: nothing may be taken for an answer to it.
        let (first, rest) = body.split_at(100_000);
        client.send(&head(path, body.len(), ""));
        client.send(first);
        let answer = client.read(true);
        assert_eq!(answer.header("connection"), Some("close"), "{path}");
        let _ = client.stream.write_all(rest.as_bytes());
        assert!(client.closed(), "{path}");
    }
}

#[test]
fn one_that_is_too_long_is_not_read() {
    let server = Server::start(Limits {
        body_bytes: MEGABYTE as u64,
        ..Limits::default()
    });
    let mut client = server.connect();
    let body = body(MEGABYTE);
    send(&mut client, "/sum", &body);
    assert_eq!(client.read(true).text(), sum(&body));
    client.send(&head("/sum", MEGABYTE + 1, ""));
    let answer = client.read(true);
    assert_eq!(
        (answer.status, answer.header("connection")),
        (413, Some("close"))
    );
    assert!(client.closed());
}

#[test]
fn a_client_that_is_too_slow_is_told_so() {
    let server = Server::start(Limits {
        body_timeout: Duration::from_millis(300),
        ..Limits::default()
    });
    for path in ["/sum", "/kept"] {
        let mut client = server.connect();
        client.send(&head(path, MEGABYTE, ""));
        client.stream.write_all(&body(1000)).unwrap();
        assert_eq!(client.read(true).status, 408, "{path}");
        assert!(client.closed());
    }
}

#[test]
fn a_client_that_breaks_off_leaves_nothing_behind() {
    let server = Server::start(Limits::default());
    for path in ["/sum", "/kept"] {
        let client = server.connect();
        let mut stream = &client.stream;
        stream
            .write_all(head(path, MEGABYTE, "").as_bytes())
            .unwrap();
        stream.write_all(&body(400_000)).unwrap();
        server.wait_for_running(1);
        drop(client);
        server.wait_for_running(0);
        // Its side only: it may still read.
        let mut client = server.connect();
        client.send(&head(path, MEGABYTE, ""));
        client.stream.shutdown(Shutdown::Write).unwrap();
        let answer = client.read(true);
        assert_eq!(answer.status, 400, "{path}");
        server.wait_for_running(0);
    }
    assert_eq!(server.connect().get("/hello").text(), "hello");
}

#[test]
fn a_client_that_leaves_is_noticed_also_while_nobody_reads() {
    let server = Server::start(Limits::default());
    let client = server.connect();
    let mut stream = &client.stream;
    stream
        .write_all(head("/hang", MEGABYTE, "").as_bytes())
        .unwrap();
    // No more than the socket takes: what it does not hides the end.
    stream.write_all(&body(1000)).unwrap();
    server.wait_for_running(1);
    drop(client);
    server.wait_for_running(0);
    assert_eq!(server.seen.dropped.load(Ordering::SeqCst), 1);
}
