//! Stopping.

use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::support::{wait_until, Server};
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
