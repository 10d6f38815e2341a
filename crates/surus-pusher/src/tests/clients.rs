//! Clients of one worker.

use serde_json::{json, Value};

use super::{event, front, inner, now, publish, Client};
use crate::Output;

#[test]
fn connections_are_refused_with_pushers_codes() {
    let front = front();
    let refused = |key: &str, version: Option<&str>, may: bool| {
        let connection = front.connect(key, version, may).unwrap();
        let client = Client {
            connection,
            app: "a",
            socket: String::new(),
        };
        // It has no application, and gets nothing.
        client.subscribe("news");
        let names = client.names();
        publish(&front, "news", &event("e"));
        assert!(client.names().is_empty());
        assert_eq!(names[0], "pusher:error");
        names[1].clone()
    };
    assert_eq!(refused("key-x", Some("7"), true), "4001");
    assert_eq!(refused("key-a", Some("4"), true), "4007");
    assert_eq!(refused("key-a", Some("8"), true), "4007");
    assert_eq!(refused("key-a", Some("x"), true), "4006");
    assert_eq!(refused("key-a", None, true), "4008");
    assert_eq!(refused("key-a", Some("7"), false), "4009");
    let clients: Vec<Client> = (0..5).map(|_| Client::new(&front, "a")).collect();
    assert_eq!(refused("key-a", Some("7"), true), "4004");
    clients[0].connection.ended();
    Client::new(&front, "a");
    assert_eq!(front.connections(), 5);
}

#[test]
fn events_reach_those_who_have_subscribed() {
    let front = front();
    let [one, two, other] = ["a", "a", "b"].map(|app| Client::new(&front, app));
    for client in [&one, &other] {
        client.subscribe("news");
        assert_eq!(client.names(), ["pusher_internal:subscription_succeeded"]);
    }
    publish(&front, "news", &event("e"));
    assert_eq!(one.names(), ["e"]);
    assert!(two.names().is_empty() && other.names().is_empty());
    // Not to who has caused it.
    two.subscribe("news");
    two.names();
    let mut caused = event("e");
    caused.except = one.socket.as_str().into();
    publish(&front, "news", &caused);
    assert!(one.names().is_empty());
    assert_eq!(two.names(), ["e"]);
    two.say("pusher:unsubscribe", json!({"channel": "news"}));
    publish(&front, "news", &event("e"));
    assert!(two.names().is_empty());
    one.connection.ended();
    publish(&front, "news", &event("e"));
    assert!(one.names().is_empty());
    two.say("pusher:ping", json!({}));
    two.say("nonsense", json!({}));
    assert_eq!(two.names(), ["pusher:pong", "pusher:error"]);
}

#[test]
fn private_channels_need_the_signature_of_this_connection() {
    let front = front();
    let [one, two, other] = ["a", "a", "b"].map(|app| Client::new(&front, app));
    let wanted = |auth: &str| json!({"channel": "private-x", "auth": auth});
    let right = one.auth("private-x", None);
    let wrong = [
        String::new(),
        two.auth("private-x", None),
        one.auth("private-y", None),
        one.auth("private-x", Some("{}")),
        other.auth("private-x", None),
        right.replace("key-a", "key-b"),
        right[..right.len() - 1].to_owned(),
    ];
    for auth in &wrong {
        one.say("pusher:subscribe", wanted(auth));
        let (name, channel, data) = one.next();
        assert_eq!(
            (&*name, &*channel),
            ("pusher:subscription_error", "private-x")
        );
        assert_eq!(
            (&data["type"], &data["status"]),
            (&json!("AuthError"), &json!(401))
        );
    }
    publish(&front, "private-x", &event("e"));
    assert!(one.names().is_empty());
    one.say("pusher:subscribe", wanted(&right));
    publish(&front, "private-x", &event("e"));
    assert_eq!(one.names(), ["pusher_internal:subscription_succeeded", "e"]);
    // Twice is a mistake, and gets nothing twice.
    one.say("pusher:subscribe", wanted(&right));
    publish(&front, "private-x", &event("e"));
    assert_eq!(one.names(), ["pusher:subscription_error", "e"]);
}

#[test]
fn members_come_and_go_once() {
    let front = front();
    let clients: Vec<Client> = (0..3).map(|_| Client::new(&front, "a")).collect();
    clients[0].enter("presence-x", Some("ann"));
    let (_, _, data) = clients[0].next();
    let expected =
        json!({"presence": {"count": 1, "ids": ["ann"], "hash": {"ann": {"name": "ann"}}}});
    assert_eq!(inner(&data), expected);
    clients[1].enter("presence-x", Some("bob"));
    let (name, _, data) = clients[0].next();
    assert_eq!(name, "pusher_internal:member_added");
    assert_eq!(
        inner(&data),
        json!({"user_id": "bob", "user_info": {"name": "bob"}})
    );
    clients[2].enter("presence-x", Some("bob"));
    assert!(clients[0].names().is_empty(), "bob is there already");
    clients[1].connection.ended();
    assert!(clients[0].names().is_empty(), "bob is still there");
    clients[2].say("pusher:unsubscribe", json!({"channel": "presence-x"}));
    let (name, _, data) = clients[0].next();
    assert_eq!(name, "pusher_internal:member_removed");
    assert_eq!(inner(&data), json!({"user_id": "bob"}));
    clients[2].say("pusher:subscribe", json!({"channel": "presence-x", "auth": clients[2].auth("presence-x", Some("")), "channel_data": ""}));
    assert_eq!(
        clients[2].names().last().unwrap(),
        "pusher:subscription_error"
    );
}

#[test]
fn clients_events_are_for_the_others_of_a_channel() {
    let front = front();
    let [one, two, stranger] = ["a", "a", "a"].map(|app| Client::new(&front, app));
    for (client, user) in [(&one, "ann"), (&two, "bob")] {
        client.enter("presence-x", Some(user));
        client.enter("private-x", None);
        client.subscribe("news");
        client.names();
    }
    one.names();
    one.whisper("presence-x", "client-typing");
    let Some(Output::Text(frame)) = two.output() else {
        panic!("no event");
    };
    let value: Value = serde_json::from_slice(&frame.text).unwrap();
    let expected = json!({"event": "client-typing", "channel": "presence-x", "data": {"x": 1}, "user_id": "ann"});
    assert_eq!(value, expected);
    assert!(one.names().is_empty());
    stranger.whisper("presence-x", "client-typing");
    stranger.whisper("private-x", "client-typing");
    one.whisper("news", "client-typing");
    one.whisper("private-x", "typing");
    assert_eq!(stranger.names(), ["pusher:error", "pusher:error"]);
    assert_eq!(one.names(), ["pusher:error", "pusher:error"]);
    assert!(two.names().is_empty());
    (0..20).for_each(|_| one.whisper("private-x", "client-a"));
    assert!(two.names().len() <= 11);
    let (name, _, data) = one.next();
    assert_eq!((&*name, &data["code"]), ("pusher:error", &json!(4301)));
}

#[test]
fn the_last_event_of_a_cache_channel_is_kept() {
    let front = front();
    let one = Client::new(&front, "a");
    one.subscribe("cache-x");
    let both = [
        "pusher_internal:subscription_succeeded",
        "pusher:cache_miss",
    ];
    assert_eq!(one.names(), both);
    publish(&front, "cache-x", &event("e"));
    assert_eq!(one.names(), ["e"]);
    one.connection.ended();
    let two = Client::new(&front, "a");
    two.subscribe("cache-x");
    assert_eq!(two.names(), ["pusher_internal:subscription_succeeded", "e"]);
    let other = Client::new(&front, "b");
    other.subscribe("cache-x");
    assert_eq!(other.names(), both);
}

#[test]
fn events_of_clients_are_not_kept_in_a_cache_channel() {
    let front = front();
    let [one, two, late] = ["a", "a", "a"].map(|app| Client::new(&front, app));
    for client in [&one, &two] {
        client.enter("private-cache-x", None);
        client.names();
    }
    publish(&front, "private-cache-x", &event("e"));
    (0..9).for_each(|_| one.whisper("private-cache-x", "client-a"));
    let names = two.names();
    assert_eq!((names.len(), &*names[0], &*names[9]), (10, "e", "client-a"));
    let kept = front.hub().history("private-cache-x", None, u64::MAX);
    assert_eq!(kept.unwrap().unwrap().1.len(), 1);
    late.enter("private-cache-x", None);
    assert_eq!(
        late.names(),
        ["pusher_internal:subscription_succeeded", "e"]
    );
}

#[test]
fn users_sign_in_and_are_terminated() {
    let front = front();
    let (one, two) = (Client::new(&front, "a"), Client::new(&front, "a"));
    let own = json!({"channel": "#server-to-user-7"});
    one.say("pusher:subscribe", own.clone());
    assert_eq!(one.names(), ["pusher:subscription_error"]);
    let sign_in = one.sign_in("7");
    one.say("pusher:signin", sign_in.clone());
    one.say("pusher:subscribe", own.clone());
    let both = [
        "pusher:signin_success",
        "pusher_internal:subscription_succeeded",
    ];
    assert_eq!(one.names(), both);
    one.say("pusher:signin", sign_in.clone());
    assert_eq!(one.names(), ["pusher:signin_success"]);
    now(front.terminate(1, "7")).unwrap();
    now(front.terminate(0, "8")).unwrap();
    assert!(one.names().is_empty());
    now(front.terminate(0, "7")).unwrap();
    assert_eq!(one.names(), ["pusher:error", "4009"]);
    // The signature is another connection's.
    two.say("pusher:signin", sign_in);
    assert_eq!(two.names(), ["pusher:error", "4009"]);
    assert_eq!(front.connections(), 0);
    assert_eq!(front.hub().figures().channels, 0, "nobody listens any more");
}

#[test]
fn who_signs_in_as_another_user_is_not_the_first_one_any_more() {
    let front = front();
    let one = Client::new(&front, "a");
    for user in ["7", "8"] {
        one.say("pusher:signin", one.sign_in(user));
        one.subscribe(&format!("#server-to-user-{user}"));
        let both = [
            "pusher:signin_success",
            "pusher_internal:subscription_succeeded",
        ];
        assert_eq!(one.names(), both);
    }
    publish(&front, "#server-to-user-7", &event("e"));
    publish(&front, "#server-to-user-8", &event("f"));
    assert_eq!(one.names(), ["f"]);
    now(front.terminate(0, "7")).unwrap();
    assert!(one.names().is_empty());
    now(front.terminate(0, "8")).unwrap();
    assert_eq!(one.names(), ["pusher:error", "4009"]);
}

#[test]
fn a_slow_client_has_to_come_again() {
    let front = front();
    let one = Client::new(&front, "a");
    one.subscribe("news");
    let mut large = event("e");
    large.data = "x".repeat(60_000).into();
    (0..60).for_each(|_| publish(&front, "news", &large));
    assert_eq!(one.names(), ["4100"]);
    publish(&front, "news", &large);
    assert!(one.names().is_empty());
}

/// It has asked for them: they are no reason to close.
#[test]
fn answers_are_no_events_that_a_client_does_not_read() {
    let front = front();
    let one = Client::new(&front, "a");
    let info: bytes::Bytes = format!("\"{}\"", "x".repeat(4000)).into();
    for member in 0..700 {
        let (id, name) = (surus_channels::next_id(), format!("m{member}"));
        let joined = front.hub().join("presence-x", id, &name, &info);
        joined.expect("a member");
    }
    assert!(one.connection.takes_more());
    one.enter("presence-x", Some("ann"));
    assert!(!one.connection.takes_more(), "it has to read first");
    publish(&front, "presence-x", &event("e"));
    assert_eq!(one.names(), ["pusher_internal:subscription_succeeded", "e"]);
    assert!(one.connection.takes_more());
}

#[test]
fn channels_of_a_connection_are_bounded() {
    let front = front();
    let one = Client::new(&front, "a");
    (0..21).for_each(|number| one.subscribe(&format!("c{number}")));
    let names = one.names();
    assert_eq!(names[20..], ["pusher:subscription_error"]);
    one.say("pusher:unsubscribe", json!({"channel": "c0"}));
    one.subscribe("c20");
    assert_eq!(one.names(), ["pusher_internal:subscription_succeeded"]);
    assert_eq!(front.hub().figures().subscriptions, 20);
}
