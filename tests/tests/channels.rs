//! Channels: what is published reaches who has subscribed, over WebSockets and event streams; histories, recovery, presence.
#![forbid(unsafe_code)]

#[path = "channels/events.rs"]
mod events;
#[path = "channels/history.rs"]
mod history;
#[path = "channels/nodes.rs"]
mod nodes;
#[path = "channels/presence.rs"]
mod presence;
#[path = "channels/streams.rs"]
mod streams;

use events::Events;
use surus_tests::fixture;
use surus_tests::http::Request;
use surus_tests::surus::{Options, Surus};
use surus_tests::websocket::Client;

const RULES: &str =
    "[channel.\"kept/*\"]\nhistory = 50\nttl = \"1m\"\n[channel.\"kept/short/*\"]\nhistory = 3\n";

fn options() -> Options {
    Surus::serve(&fixture("channels").join("app.php")).config(RULES)
}

fn serve(workers: usize) -> Surus {
    options().workers(workers).start()
}

/// Publishes a text. Its position, "" without a history.
fn publish(server: &Surus, channel: &str, text: &str) -> String {
    let query = format!("/publish?channel={channel}&text={text}");
    let said = Request::get(&query)
        .send(server.address())
        .expect(200)
        .json();
    said[0].as_str().unwrap_or_default().to_owned()
}

/// An event stream that has begun.
fn stream(server: &Surus, channels: &str, last: Option<&str>) -> Events {
    Events::open(server, &format!("/stream?channels={channels}"), last)
}

/// A client that is a member of `room`, and the process that it is connected to.
fn joined(server: &Surus, name: &str) -> (Client, i32) {
    let mut client = Client::open(server.address(), "/socket");
    let worker = client.next_text().parse().expect("a process");
    client.text(&format!("join room {name}"));
    assert_eq!(client.next_text(), "> join");
    (client, worker)
}
