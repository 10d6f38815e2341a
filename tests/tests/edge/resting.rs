//! Connections that ask for nothing for a while: they take little, and are served again.

use std::thread;
use std::time::Duration;

use surus_tests::http::Connection;
use surus_tests::surus::{Mode, Surus};

use super::server;

const WAVE: u64 = 250;

/// Many rest, and none of them is closed: as many more find most of what they take already there. While PHP is waited
/// for, one takes some 13 KB.
#[test]
fn connections_that_rest_take_little_and_are_served_again() {
    for mode in Mode::ALL {
        let mut server = server(mode, "[server]\nworkers = 1\n").start();
        let mut all = wave(&server);
        let mut each = Vec::new();
        while each.last().is_none_or(|bytes| *bytes > 6000) {
            assert!(each.len() < 12, "{mode:?}: {each:?} bytes each");
            // The sweep looks once a second.
            thread::sleep(Duration::from_secs(3));
            let before = server.process().memory();
            all.extend(wave(&server));
            let growth = server.process().memory().saturating_sub(before);
            each.push(growth / WAVE);
        }
        println!("{mode:?}: {each:?} bytes each");
        for connection in &mut all {
            ask(connection);
        }
    }
}

/// New connections, of which each has had an answer that PHP was waited for.
fn wave(server: &Surus) -> Vec<Connection> {
    let open = |_| {
        let mut connection = Connection::open(server.address()).expect("a connection");
        ask(&mut connection);
        connection
    };
    (0..WAVE).map(open).collect()
}

fn ask(connection: &mut Connection) {
    connection
        .write(b"GET /sleep?seconds=0.001 HTTP/1.1\r\nHost: a\r\n\r\n")
        .expect("write");
    let answer = connection.response("GET").expect("an answer");
    assert_eq!(answer.text(), "slept");
}
