//! Requests that take too long, whose clients leave, or that compute while others want to: each ends or gives way, and
//! what has to run at its end runs. docs/reliability.md says what is promised.
#![forbid(unsafe_code)]

#[path = "deadlines/cancelled.rs"]
mod cancelled;
#[path = "deadlines/computing.rs"]
mod computing;
#[path = "deadlines/unwilling.rs"]
mod unwilling;

use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use surus_tests::fixture;
use surus_tests::http::{Connection, Request, Response};
use surus_tests::surus::{Mode, Options, Surus};

/// The server of this mode with these settings of its application; as many processes as a test has requests.
fn server(mode: Mode, app: &str) -> Options {
    let processes = match mode {
        Mode::Classic | Mode::Coroutine => "",
        Mode::Process => "processes = 12\n",
    };
    Surus::serve(&mode.script(&fixture("deadlines")))
        .mode(mode)
        .config(&format!("[app.app]\n{processes}{app}\n"))
}

fn ask(server: &Surus, query: &str) -> Response {
    Request::get(&format!("/?{query}")).send(server.address())
}

/// Sends a request; its client leaves when it is dropped.
fn begin(server: &Surus, query: &str) -> io::Result<Connection> {
    let mut connection = Connection::open(server.address())?;
    connection.write(&Request::get(&format!("/?{query}")).bytes(server.address()))?;
    Ok(connection)
}

/// What the request with this id has noted.
fn notes(server: &Surus, id: &str) -> String {
    fs::read_to_string(server.folder().join(format!("{id}.notes"))).unwrap_or_default()
}

/// Waits until the notes are these; fails the test if they do not become so within `patience`.
fn expect_notes(server: &Surus, id: &str, expected: &str, patience: Duration) {
    let start = Instant::now();
    while notes(server, id) != expected {
        let late = start.elapsed() > patience;
        assert!(
            !late,
            "{id} noted {:?}, not {expected:?}",
            notes(server, id)
        );
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until the log says this.
fn expect_log(server: &Surus, text: &str) {
    let start = Instant::now();
    while !server.log().contains(text) {
        let late = start.elapsed() > Duration::from_secs(40);
        assert!(!late, "no {text:?} in the log:\n{}", server.log());
        thread::sleep(Duration::from_millis(10));
    }
}

const SOON: Duration = Duration::from_secs(4);
