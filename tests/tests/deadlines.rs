//! Requests that take too long, whose clients leave, or that compute while others want to: each ends or gives way, and
//! what has to run at its end runs. docs/internals/reliability.md says what is promised.
#![forbid(unsafe_code)]

#[path = "deadlines/cancelled.rs"]
mod cancelled;
#[path = "deadlines/computing.rs"]
mod computing;
#[path = "deadlines/left.rs"]
mod left;
#[path = "deadlines/streams.rs"]
mod streams;
#[path = "deadlines/unwilling.rs"]
mod unwilling;
#[path = "deadlines/without_client.rs"]
mod without_client;

use std::fs;
use std::io;
use std::time::Duration;

use surus_tests::fixture;
use surus_tests::http::{Connection, Request, Response};
use surus_tests::surus::{Mode, Options, Surus};
use surus_tests::waiting::{wait_for, wait_up_to};

/// The server of this mode with these settings of its application, which cancels requests whose client disconnects; as many
/// processes as a test has requests.
fn server(mode: Mode, app: &str) -> Options {
    let processes = match mode {
        Mode::Classic | Mode::Coroutine | Mode::Snapshot => "",
        Mode::Process => "processes = 12\n",
    };
    Surus::serve(&mode.script(&fixture("deadlines")))
        .mode(mode)
        .cancel_on_disconnect()
        .config(&format!("[app.app]\n{processes}{app}\n"))
}

fn ask(server: &Surus, query: &str) -> Response {
    Request::get(&format!("/?{query}")).send(server.address())
}

/// The process that answers. Where the machine stands still for as long as the deadline, it is asked again.
fn pid(server: &Surus) -> String {
    let mut pid = String::new();
    wait_for("nobody answers", || {
        let response = ask(server, "case=pid");
        pid = response.text();
        assert!(matches!(response.status, 200 | 503 | 504), "{response:?}");
        response.status == 200
    });
    pid
}

/// Asks for what takes longer than the deadline, and is told so; the id of its notes. Where the machine stands still the
/// deadline may be before its beginning: it is asked for again.
fn time_out(server: &Surus, query: &str, id: &str) -> String {
    let mut count = 0;
    let new_id = |count| format!("{id}{count}");
    wait_for("it does not begin in time", || {
        count += 1;
        let id = new_id(count);
        let response = ask(server, &format!("{query}&id={id}"));
        assert!(matches!(response.status, 503 | 504), "{response:?}");
        response.status == 504 && notes(server, &id).starts_with("begun;")
    });
    new_id(count)
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

/// Waits until the notes are these.
fn expect_notes(server: &Surus, id: &str, expected: &str) {
    expect_notes_within(SOON, server, id, expected);
}

fn expect_notes_within(patience: Duration, server: &Surus, id: &str, expected: &str) {
    wait_up_to(
        patience,
        || notes(server, id) == expected,
        || format!("{id} noted {:?}, not {expected:?}", notes(server, id)),
    );
}

/// Waits until the log says this.
fn expect_log(server: &Surus, text: &str) {
    wait_up_to(
        2 * SOON,
        || server.log().contains(text),
        || format!("no {text:?} in the log:\n{}", server.log()),
    );
}

/// Enough on a machine that stands still for some seconds.
const SOON: Duration = Duration::from_secs(20);
