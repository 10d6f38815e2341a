//! Whose answer is this? Connections that outlive a request, or that requests share: nobody gets what another one has asked
//! for, however a request ends. docs/internals/reliability.md says what is promised.
#![forbid(unsafe_code)]

#[path = "connections/closed.rs"]
mod closed;
#[path = "connections/cut.rs"]
mod cut;
#[path = "connections/errno.rs"]
mod errno;
#[path = "connections/freed.rs"]
mod freed;
#[path = "connections/guarded.rs"]
mod guarded;
#[path = "connections/half.rs"]
mod half;
#[path = "connections/late.rs"]
mod late;
#[path = "connections/multiplexed.rs"]
mod multiplexed;
#[path = "connections/packets.rs"]
mod packets;
#[path = "connections/phpredis.rs"]
mod phpredis;
#[path = "connections/shared.rs"]
mod shared;

use std::fs;
use std::io;

use surus_tests::fixture;
use surus_tests::http::{Connection, Request};
use surus_tests::mariadb::MariaDb;
use surus_tests::postgres::Postgres;
use surus_tests::redis::Redis;
use surus_tests::repeater::Repeater;
use surus_tests::surus::{Mode, Options, Surus};

/// The server of this mode with these settings of its application.
fn server(mode: Mode, app: &str) -> Options {
    Surus::serve(&mode.script(&fixture("connections")))
        .mode(mode)
        .cancel_on_disconnect()
        .config(&format!("[app.app]\n{app}\n"))
}

/// Where the client with this name connects to.
fn port(client: &str) -> u16 {
    if client.contains("pgsql") {
        Postgres::shared().port()
    } else if client.contains("mysql") {
        MariaDb::shared().port()
    } else if client.contains("redis") {
        Redis::shared().port()
    } else {
        Repeater::shared().port()
    }
}

/// Sends a request; its client leaves when it is dropped.
fn begin(server: &Surus, target: &str) -> io::Result<Connection> {
    let mut connection = Connection::open(server.address())?;
    connection.write(&Request::get(target).bytes(server.address()))?;
    Ok(connection)
}

/// What the request with this id has noted.
fn notes(server: &Surus, id: &str) -> String {
    fs::read_to_string(server.folder().join(format!("{id}.notes"))).unwrap_or_default()
}
