//! Stopping.

use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::support::{wait_until, Server, LARGE};
use surus_edge::{Drained, Limits};

#[test]
fn requests_in_flight_are_finished_and_idle_connections_closed() {
    let mut server = Server::start(Limits::default());
    let mut idle = server.connect();
    idle.get("/hello");
    let mut fresh = server.connect();
    let mut busy = server.connect();
    busy.send("GET /slow HTTP/1.1\r\nhost: test\r\n\r\n");
    server.wait_for_running(1);
    server.stop();
    assert!(idle.closed());
    assert!(fresh.closed());
    let answer = busy.read(true);
    assert_eq!(
        (answer.text(), answer.header("connection")),
        ("slow", Some("close"))
    );
    assert!(busy.closed());
    let address = server.address;
    assert_eq!(server.join(), Drained { aborted: 0 });
    assert!(TcpStream::connect(address).is_err());
}

/// What has come while the thread was busy, at the end of the time for last requests. `asked_before`: the connection is
/// not new.
fn last_request(asked_before: bool) -> bool {
    let mut server = Server::start(Limits::default());
    let mut idle = server.connect();
    if asked_before {
        idle.get("/hello");
    }
    let mut busy = server.connect();
    busy.send("GET /block HTTP/1.1\r\nhost: test\r\n\r\n");
    server.wait_for_running(1);
    server.stop();
    let address = server.address;
    wait_until(|| TcpStream::connect(address).is_err());
    server.seen.go.store(true, Ordering::SeqCst);
    wait_until(|| server.seen.blocked.load(Ordering::SeqCst));
    // If the machine was slow so far, its time was over before.
    if idle.is_closed() {
        return false;
    }
    let answer = idle.get("/hello");
    assert_eq!(answer.text(), "hello");
    assert!(idle.closed());
    assert_eq!(server.join(), Drained { aborted: 0 });
    true
}

#[test]
fn a_request_that_has_come_before_its_connection_is_closed_is_answered() {
    for asked_before in [true, false] {
        assert!((0..20).any(|_| last_request(asked_before)));
    }
}

/// The head of an answer that is on its way when the drain begins has told the client that it may go on.
#[test]
fn who_was_told_that_another_request_may_follow_is_answered_one() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(LARGE as u64).unwrap();
    for (path, asks_before) in [
        ("/large", false),
        ("/large", true),
        ("/file", false),
        ("/file", true),
    ] {
        let mut server = Server::with_file(Limits::default(), file.path().to_owned());
        let mut client = server.connect();
        let next = "POST /body HTTP/1.1\r\nhost: test\r\ncontent-length: 4\r\n\r\nbody";
        client.send(&format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n"));
        // It has begun to come.
        client.stream.peek(&mut [0]).unwrap();
        if asks_before {
            client.send(next);
        }
        server.stop();
        let address = server.address;
        wait_until(|| TcpStream::connect(address).is_err());
        // The time for last requests on connections that are idle is over.
        std::thread::sleep(Duration::from_millis(700));
        let answer = client.read(true);
        assert_eq!(
            (answer.body.len(), answer.header("connection")),
            (LARGE, None)
        );
        if !asks_before {
            client.send(next);
        }
        let answer = client.read(true);
        assert_eq!(
            (answer.text(), answer.header("connection")),
            ("4 bytes", Some("close")),
            "{path}, {asks_before}"
        );
        assert!(client.closed());
        assert_eq!(server.join(), Drained { aborted: 0 });
    }
}

/// It is not waited for as long as other ends of a drain.
#[test]
fn who_does_not_ask_on_holds_up_no_drain() {
    let mut server = Server::start(Limits::default());
    let mut client = server.connect();
    client.send("GET /large HTTP/1.1\r\nhost: test\r\n\r\n");
    client.stream.peek(&mut [0]).unwrap();
    server.stop();
    assert_eq!(client.read(true).body.len(), LARGE);
    let begun = Instant::now();
    assert_eq!(server.join(), Drained { aborted: 0 });
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(client.closed());
}

#[test]
fn what_does_not_end_is_cut_off_at_the_deadline() {
    let server = Server::start(Limits {
        drain: Duration::from_millis(200),
        ..Limits::default()
    });
    let mut client = server.connect();
    client.send("GET /hang HTTP/1.1\r\nhost: test\r\n\r\n");
    server.wait_for_running(1);
    let begun = Instant::now();
    assert_eq!(server.join(), Drained { aborted: 1 });
    // Thirty seconds are the default.
    assert!(begun.elapsed() < Duration::from_secs(15));
    assert!(client.closed());
}

#[test]
fn an_idle_server_stops_at_once() {
    let begun = Instant::now();
    assert_eq!(
        Server::start(Limits::default()).join(),
        Drained { aborted: 0 }
    );
    assert!(begun.elapsed() < Duration::from_secs(15));
}
