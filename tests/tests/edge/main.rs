//! The edge: what it does between a client's socket and PHP, and that no client can stall it.
#![forbid(unsafe_code)]

mod compression;
mod conformance;
mod crowds;
mod fairness;
mod files;
mod framing;
mod hidden;
mod http2;
mod limits;
mod log;
mod long_files;
mod pipeline;
mod protocol;
mod queue;
mod refused;
mod resting;
mod slow;
mod slow_readers;
mod spares;
mod streaming;
mod streams;
mod unix;
mod uploads;
mod who;
mod windows;

use std::fs;
use std::io;

use surus_tests::fixture;
use surus_tests::http::{Connection, Request, Response};
use surus_tests::surus::{Mode, Options, Surus};
use surus_tests::waiting::wait_for;

/// The server of this mode with this configuration.
fn server(mode: Mode, config: &str) -> Options {
    let script = mode.script(&fixture("edge"));
    Surus::serve(&script).mode(mode).config(config)
}

fn get(server: &Surus, target: &str) -> Response {
    Request::get(target).send(server.address())
}

/// A connection on which these bytes have been sent.
fn sent(server: &Surus, bytes: &str) -> io::Result<Connection> {
    let mut connection = Connection::open(server.address())?;
    connection.write(bytes.as_bytes())?;
    Ok(connection)
}

/// A request that waits in PHP for [`go_on`], once it does; its name.
fn hold(server: &Surus, name: &str) -> io::Result<Connection> {
    let held = sent(
        server,
        &format!("GET /hold?name={name} HTTP/1.1\r\nHost: a\r\n\r\n"),
    )?;
    let name = format!("{name};");
    wait_for("it does not begin", || held_so_far(server).ends_with(&name));
    Ok(held)
}

/// The names of those that have begun, in this order.
fn held_so_far(server: &Surus) -> String {
    fs::read_to_string(server.folder().join("held")).unwrap_or_default()
}

/// What waits in PHP goes on, and what comes there later.
fn go_on(server: &Surus) {
    fs::write(server.folder().join("go"), "").expect("a sign");
}
