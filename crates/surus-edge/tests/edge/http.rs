//! What a client sees.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::support::{wait_until, Server};
use surus_edge::Limits;

#[test]
fn a_connection_is_kept_and_dated() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    for _ in 0..3 {
        let answer = client.get("/hello");
        assert_eq!((answer.status, answer.text()), (200, "hello"));
        assert_eq!(answer.header("content-length"), Some("5"));
        assert!(answer.header("date").is_some());
    }
    let answer = client.get("/empty");
    assert_eq!(answer.header("content-length"), Some("0"));
    let addresses = format!("{} {}", client.stream.local_addr().unwrap(), server.address);
    assert_eq!(client.get("/peer").text(), addresses);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    let request = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n");
    client.send(&(request("/slow") + &request("/hello") + &request("/nope")));
    assert_eq!(client.read(true).text(), "slow");
    assert_eq!(client.read(true).text(), "hello");
    assert_eq!(client.read(true).status, 404);
}

#[test]
fn a_response_does_not_wait_for_the_request_behind_it() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    let hello = "GET /hello HTTP/1.1\r\nhost: test\r\n\r\n";
    // Incomplete, then one that hangs with a complete one behind it.
    client.send(&format!("{hello}GET /hel"));
    assert_eq!(client.read(true).text(), "hello");
    client.send(&format!(
        "lo HTTP/1.1\r\nhost: test\r\n\r\nGET /hang HTTP/1.1\r\nhost: test\r\n\r\n{hello}"
    ));
    assert_eq!(client.read(true).text(), "hello");
}

#[test]
fn a_client_that_does_not_read_holds_up_its_own_responses_only() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    client.stream.set_nonblocking(true).unwrap();
    let requests = "GET /hello HTTP/1.1\r\nhost: test\r\n\r\n".repeat(1000);
    let mut sent = 0;
    // Until neither side's buffers take more: the server has stopped reading.
    let mut full = 0;
    while full < 20 {
        match client
            .stream
            .write(&requests.as_bytes()[sent % requests.len()..])
        {
            Ok(count) => (sent, full) = (sent + count, 0),
            Err(_) => {
                full += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
    assert_eq!(server.connect().get("/hello").text(), "hello");
    client.stream.set_nonblocking(false).unwrap();
    for _ in 0..sent / (requests.len() / 1000) {
        assert_eq!(client.read(true).text(), "hello");
    }
}

#[test]
fn what_came_before_a_response_broke_is_sent() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    client.send("GET /broken HTTP/1.1\r\nhost: test\r\n\r\n");
    let rest = client.rest();
    assert!(rest.starts_with("HTTP/1.1 200 OK\r\n"), "{rest:?}");
    assert!(rest.ends_with("\r\n\r\n5\r\nearly\r\n"), "{rest:?}");
}

#[test]
fn head_has_the_length_and_no_body() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    client.send("HEAD /hello HTTP/1.1\r\nhost: test\r\n\r\n");
    assert_eq!(client.read(false).header("content-length"), Some("5"));
    assert_eq!(client.get("/hello").text(), "hello");
}

#[test]
fn http_1_0_is_answered_and_closed() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    client.send("GET /hello HTTP/1.0\r\n\r\n");
    assert_eq!(client.read(true).text(), "hello");
    assert!(client.closed());
}

#[test]
fn a_body_may_be_as_long_as_allowed_and_no_longer() {
    let server = Server::start(Limits {
        body_bytes: 100_000,
        ..Limits::default()
    });
    let mut client = server.connect();
    client.send("POST /body HTTP/1.1\r\nhost: test\r\ncontent-length: 100000\r\n\r\n");
    client.stream.write_all(&vec![b'x'; 100_000]).unwrap();
    assert_eq!(client.read(true).text(), "100000 bytes");

    client.send("POST /body HTTP/1.1\r\nhost: test\r\ncontent-length: 5000000\r\n\r\n");
    // The client sends on: the answer must reach it all the same.
    client.stream.write_all(&vec![b'x'; 5_000_000]).unwrap();
    let answer = client.read(true);
    assert_eq!(
        (answer.status, answer.header("connection")),
        (413, Some("close"))
    );
    assert!(client.closed());
}

#[test]
fn a_chunked_body_is_counted() {
    let server = Server::start(Limits {
        body_bytes: 100_000,
        ..Limits::default()
    });
    let mut client = server.connect();
    let chunk = format!("c350\r\n{}\r\n", "x".repeat(50_000));
    let head = "POST /body HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n";
    client.send(&format!("{head}{chunk}{chunk}0\r\n\r\n"));
    assert_eq!(client.read(true).text(), "100000 bytes");
    client.send(&format!("{head}{}0\r\n\r\n", chunk.repeat(20)));
    assert_eq!(client.read(true).status, 413);
    assert!(client.closed());
}

#[test]
fn headers_may_be_as_long_as_allowed_and_no_longer() {
    let server = Server::start(Limits {
        header_bytes: 16 * 1024,
        ..Limits::default()
    });
    let mut client = server.connect();
    client.send(&format!(
        "GET /hello HTTP/1.1\r\nhost: test\r\nx: {}\r\n\r\n",
        "x".repeat(12_000)
    ));
    assert_eq!(client.read(true).status, 200);
    client.send(&format!(
        "GET /hello HTTP/1.1\r\nhost: test\r\nx: {}\r\n\r\n",
        "x".repeat(20_000)
    ));
    assert_eq!(client.read(true).status, 431);
    assert!(client.closed());
    // Neither one that does not end, nor one that has come with the body before it.
    let long = format!(
        "GET /hello HTTP/1.1\r\nhost: test\r\nx: {}",
        "x".repeat(30_000)
    );
    for end in ["", "\r\n\r\n"] {
        let mut client = server.connect();
        let body = "x".repeat(100_000);
        client.send(&format!(
            "POST /body HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n\r\n{body}{long}{end}",
            body.len()
        ));
        assert_eq!(client.read(true).text(), "100000 bytes");
        if end.is_empty() {
            client.send(&"x".repeat(30_000));
        }
        assert_eq!(client.read(true).status, 431, "{end:?}");
        assert!(client.closed());
    }
}

#[test]
fn rubbish_is_400() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    client.send("what is this\r\n\r\n");
    assert_eq!(client.read(true).status, 400);
    assert!(client.closed());
}

#[test]
fn a_slow_header_is_408() {
    let server = Server::start(Limits {
        header_timeout: Duration::from_secs(1),
        ..Limits::default()
    });
    let mut client = server.connect();
    let begun = Instant::now();
    client.send("GET /hello HTTP/1.1\r\nhost: te");
    assert_eq!(client.read(true).status, 408);
    assert!(client.closed());
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[test]
fn a_connection_that_is_not_used_is_closed_without_a_word() {
    let server = Server::start(Limits {
        keep_alive: Duration::from_secs(1),
        ..Limits::default()
    });
    let mut fresh = server.connect();
    let mut used = server.connect();
    used.get("/hello");
    assert!(used.closed());
    assert!(fresh.closed());
}

#[test]
fn one_connection_too_many_is_503() {
    let server = Server::start(Limits {
        connections: 2,
        ..Limits::default()
    });
    // Idle ones would give way after a second.
    let [_first, second] = [1, 2].map(|count| {
        let mut client = server.connect();
        client.send("GET /hang HTTP/1.1\r\nhost: test\r\n\r\n");
        server.wait_for_running(count);
        client
    });
    let mut third = server.connect();
    let answer = third.get("/hello");
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("1"))
    );
    assert!(third.closed());
    drop(second);
    wait_until(|| server.connect().get("/hello").status == 200);
    server.wait_for_running(1);
}

#[test]
fn a_client_that_leaves_ends_its_request() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    client.send("GET /hang HTTP/1.1\r\nhost: test\r\n\r\n");
    server.wait_for_running(1);
    drop(client);
    wait_until(|| server.seen.dropped.load(Ordering::SeqCst) == 1);
    server.wait_for_running(0);
}

#[test]
fn a_client_that_leaves_is_noticed_behind_a_pipelined_request() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    let request = "GET /hang HTTP/1.1\r\nhost: test\r\n\r\n";
    client.send(&request.repeat(2));
    server.wait_for_running(1);
    drop(client);
    wait_until(|| server.seen.dropped.load(Ordering::SeqCst) == 1);
}

#[test]
fn a_panic_ends_one_connection() {
    let server = Server::start(Limits {
        connections: 1,
        ..Limits::default()
    });
    let mut client = server.connect();
    client.send("GET /panic HTTP/1.1\r\nhost: test\r\n\r\n");
    assert!(client.closed());
    // Its place is free again.
    wait_until(|| server.connect().get("/hello").status == 200);
}
