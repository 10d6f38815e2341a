//! Stopping.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::support::Server;
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
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert!(client.closed());
}

#[test]
fn an_idle_server_stops_at_once() {
    let begun = Instant::now();
    assert_eq!(
        Server::start(Limits::default()).join(),
        Drained { aborted: 0 }
    );
    assert!(begun.elapsed() < Duration::from_secs(1));
}
