//! `Surus\Postgres`: few connections that all requests use at the same time, each with its own answers.
#![forbid(unsafe_code)]

#[path = "postgres/connecting.rs"]
mod connecting;
#[path = "postgres/ends.rs"]
mod ends;
#[path = "postgres/shared.rs"]
mod shared;
#[path = "postgres/streams.rs"]
mod streams;
#[path = "postgres/transactions.rs"]
mod transactions;
#[path = "postgres/values.rs"]
mod values;

use std::sync::Once;

use serde_json::Value;
use surus_tests::fixture;
use surus_tests::http::{Connection, Request};
use surus_tests::postgres::Postgres;
use surus_tests::surus::{Mode, Options, Surus};

fn options(mode: Mode) -> Options {
    static TABLE: Once = Once::new();
    TABLE.call_once(|| Postgres::shared().execute("CREATE TABLE log (token text)"));
    Surus::serve(&mode.script(&fixture("postgres")))
        .mode(mode)
        .env("POSTGRES", &Postgres::shared().port().to_string())
        .cancel_on_disconnect()
}

fn server(mode: Mode) -> Surus {
    options(mode).start()
}

fn ask(server: &Surus, query: &str) -> Value {
    let answer = Request::get(&format!("/?{query}")).send(server.address());
    let text = answer.text();
    assert_eq!(answer.status, 200, "{query}: {text}\n{}", server.log());
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{query}: {text}"))
}

/// Sends a request; its client leaves when it is dropped.
fn begin(server: &Surus, query: &str) -> Connection {
    let mut client = Connection::open(server.address()).expect("a connection");
    let request = Request::get(&format!("/?{query}"));
    client
        .write(&request.bytes(server.address()))
        .expect("send it");
    client
}
