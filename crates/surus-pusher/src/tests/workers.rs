//! Several workers, and PHP.

use std::rc::Rc;

use serde_json::json;
use surus_channels::Message;

use super::{app, event, front, inner, publish, Client, Server};

/// What happens in one worker is seen in another one, and what was there when that worker died is gone.
#[test]
fn workers_see_the_same() {
    let server = Rc::<Server>::default();
    let fronts = [1, 2].map(|_| server.worker(vec![app("a"), app("b")]));
    let [first, second] = &fronts;
    let talk = || server.talk(&[first, second]);
    let (ann, bob, again) = (
        Client::new(first, "a"),
        Client::new(second, "a"),
        Client::new(second, "a"),
    );
    ann.enter("presence-x", Some("ann"));
    talk();
    bob.enter("presence-x", Some("bob"));
    let (_, _, data) = bob.next();
    assert_eq!(inner(&data)["presence"]["ids"], json!(["ann", "bob"]));
    talk();
    again.enter("presence-x", Some("ann"));
    talk();
    assert_eq!(ann.names()[1..], ["pusher_internal:member_added"]);
    assert!(bob.names().is_empty(), "ann is there already");
    assert_eq!(first.hub().subscribers("presence-x"), 3);
    bob.whisper("presence-x", "client-a");
    publish(first, "presence-x", &event("e"));
    talk();
    assert_eq!(ann.names(), ["e", "client-a"]);
    assert_eq!(bob.names(), ["e"]);
    // The second one is killed: ann is still there.
    first.hub().gone(second.hub().me());
    let (name, _, data) = ann.next();
    assert_eq!(name, "pusher_internal:member_removed");
    assert_eq!(inner(&data), json!({"user_id": "bob"}));
    assert!(ann.names().is_empty());
    assert_eq!(first.hub().subscribers("presence-x"), 1);
}

/// What PHP publishes reaches them, and the other way round.
#[test]
fn channels_are_those_of_php() {
    let front = front();
    let (one, other) = (Client::new(&front, "a"), Client::new(&front, "b"));
    one.subscribe("news");
    other.subscribe("news");
    one.names();
    other.names();
    let php = |channel: &str, message: Message| {
        front.hub().publish(channel, message).unwrap();
    };
    php("news", event(""));
    assert_eq!(one.next().0, "message");
    php("b/news", event("made"));
    assert_eq!(other.names(), ["made"]);
    let mut binary = event("made");
    binary.binary = true;
    php("news", binary);
    assert!(one.names().is_empty() && other.names().is_empty());
    // Members that PHP has let in may have said anything.
    one.enter("presence-x", Some("ann"));
    one.names();
    let id = surus_channels::next_id();
    front
        .hub()
        .join("presence-x", id, "php", &"no JSON".into())
        .unwrap();
    let (_, _, data) = one.next();
    assert_eq!(inner(&data), json!({"user_id": "php", "user_info": null}));
}

/// Servers of applications are told of their own channels.
#[test]
fn what_happens_is_reported() {
    let server = Rc::<Server>::default();
    let front = server.worker(vec![app("a"), app("b")]);
    let (one, other) = (Client::new(&front, "a"), Client::new(&front, "b"));
    one.enter("presence-x", Some("ann"));
    one.whisper("presence-x", "client-e");
    one.connection.ended();
    other.subscribe("news");
    let id = surus_channels::next_id();
    front.hub().join("of/php", id, "php", &"".into()).unwrap();
    let socket = &one.socket;
    let expected = [
        r#"0 {"name":"channel_occupied","channel":"presence-x"}"#.to_owned(),
        r#"0 {"name":"member_added","channel":"presence-x","user_id":"ann"}"#.to_owned(),
        format!(
            "0 {}",
            json!({"name": "client_event", "channel": "presence-x", "event": "client-e", "data": "{\"x\":1}", "socket_id": socket, "user_id": "ann"})
        ),
        r#"0 {"name":"member_removed","channel":"presence-x","user_id":"ann"}"#.to_owned(),
        r#"0 {"name":"channel_vacated","channel":"presence-x"}"#.to_owned(),
        r#"1 {"name":"channel_occupied","channel":"news"}"#.to_owned(),
    ];
    let sorted = |text: &String| -> (String, serde_json::Value) {
        let (app, json) = text.split_once(' ').unwrap();
        (app.to_owned(), serde_json::from_str(json).unwrap())
    };
    let found: Vec<_> = server.reports.borrow().iter().map(sorted).collect();
    assert_eq!(found, expected.iter().map(sorted).collect::<Vec<_>>());
}
