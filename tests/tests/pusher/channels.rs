//! Who gets what: public, private and presence channels, and the events of clients.

use serde_json::{json, Value};
use surus_tests::pusher::Client;
use surus_tests::websocket;

use super::{shared, CHAT, SHOP};

#[test]
fn private_channels_need_the_signature_of_this_connection() {
    let at = shared().address();
    let mut one = Client::connect(at, CHAT);
    let two = Client::connect(at, CHAT);
    let wrong = [
        None,
        Some(String::new()),
        Some(CHAT.auth(&two.socket, "private-a", None)),
        Some(CHAT.auth(&one.socket, "private-b", None)),
        Some(SHOP.auth(&one.socket, "private-a", None)),
        Some(
            SHOP.auth(&one.socket, "private-a", None)
                .replace("shop", "chat"),
        ),
        Some(CHAT.auth(&one.socket, "private-a", Some("{}"))),
    ];
    for auth in &wrong {
        one.ask("private-a", auth.as_deref(), None);
        let error = one.expect("pusher:subscription_error");
        assert_eq!(
            (&error.data["type"], &error.data["status"]),
            (&json!("AuthError"), &json!(401))
        );
    }
    CHAT.trigger(at, "private-a", "secret", "");
    one.expect_nothing();
    one.subscribe("private-a", None);
    one.subscribe("private-encrypted-a", None);
    CHAT.trigger(at, "private-a", "secret", "");
    one.expect("secret");
    one.say("pusher:unsubscribe", &json!({"channel": "private-a"}));
    one.expect_nothing();
    CHAT.trigger(at, "private-a", "secret", "");
    one.expect_nothing();
}

/// Two applications of one server share no channel, no member and no key.
#[test]
fn applications_are_apart() {
    let at = shared().address();
    let mut chat = Client::connect(at, CHAT);
    let mut shop = Client::connect(at, SHOP);
    for client in [&mut chat, &mut shop] {
        client.subscribe("news-apart", None);
        client.subscribe("cache-apart", None);
        client.expect("pusher:cache_miss");
    }
    let members = chat.subscribe("presence-apart", Some("ann"));
    assert_eq!(members["presence"]["count"], 1);
    let members = shop.subscribe("presence-apart", Some("bob"));
    assert_eq!(members["presence"]["ids"], json!(["bob"]));
    for channel in ["news-apart", "cache-apart", "presence-apart"] {
        CHAT.trigger(at, channel, "of-chat", "");
        SHOP.trigger(at, channel, "of-shop", "");
        chat.expect("of-chat");
        shop.expect("of-shop");
    }
    chat.expect_nothing();
    shop.expect_nothing();
    shop.close();
    chat.expect_nothing();
}

#[test]
fn members_are_told_of_each_other_once() {
    let at = shared().address();
    let mut ann = Client::connect(at, CHAT);
    ann.subscribe("presence-room", Some("ann"));
    let mut first = Client::connect(at, CHAT);
    let members = first.subscribe("presence-room", Some("bob"));
    let expected = json!({"presence": {"count": 2, "ids": ["ann", "bob"], "hash": {"ann": {"name": "ann"}, "bob": {"name": "bob"}}}});
    assert_eq!(members, expected);
    let added = ann.expect("pusher_internal:member_added");
    assert_eq!(
        added.data,
        json!({"user_id": "bob", "user_info": {"name": "bob"}})
    );
    let mut second = Client::connect(at, CHAT);
    second.subscribe("presence-room", Some("bob"));
    first.close();
    ann.expect_nothing();
    assert_eq!(
        CHAT.get(
            at,
            "/channels/presence-room",
            &[("info", "subscription_count,user_count")]
        ),
        json!({"occupied": true, "subscription_count": 2, "user_count": 2})
    );
    second.say("pusher:unsubscribe", &json!({"channel": "presence-room"}));
    let removed = ann.expect("pusher_internal:member_removed");
    assert_eq!(removed.data, json!({"user_id": "bob"}));
    assert_eq!(
        CHAT.get(at, "/channels/presence-room/users", &[]),
        json!({"users": [{"id": "ann"}]})
    );
}

#[test]
fn clients_speak_to_each_other_where_they_may() {
    let at = shared().address();
    let mut one = Client::connect(at, CHAT);
    let mut two = Client::connect(at, CHAT);
    let mut stranger = Client::connect(at, CHAT);
    one.subscribe("presence-talk", Some("1"));
    for client in [&mut one, &mut two] {
        client.subscribe("private-talk", None);
        client.subscribe("public-talk", None);
    }
    two.subscribe("presence-talk", Some("2"));
    one.expect("pusher_internal:member_added");
    one.whisper("private-talk", "client-typing", &json!({"text": "a"}));
    let event = two.expect("client-typing");
    let whole = json!({"event": "client-typing", "channel": "private-talk", "data": {"text": "a"}});
    assert_eq!(event.whole, whole);
    one.whisper("presence-talk", "client-typing", &json!("b"));
    assert_eq!(two.expect("client-typing").whole["user_id"], "1");
    one.expect_nothing();
    // Where they may not, the others get nothing.
    one.whisper("public-talk", "client-typing", &json!(1));
    one.whisper("private-talk", "client-typing", &json!("x".repeat(11_000)));
    stranger.whisper("private-talk", "client-typing", &json!(1));
    one.expect("pusher:error");
    for client in [&mut one, &mut stranger] {
        assert_eq!(client.expect("pusher:error").data["code"], 4301);
    }
    two.expect_nothing();
    (0..30).for_each(|number| one.whisper("private-talk", "client-typing", &json!(number)));
    assert_eq!(one.expect("pusher:error").data["code"], 4301);
    let mut shop = Client::connect(at, SHOP);
    shop.subscribe("private-talk", None);
    shop.whisper("private-talk", "client-typing", &json!(1));
    assert_eq!(shop.expect("pusher:error").data["code"], 4301);
}

#[test]
fn the_last_event_of_a_cache_channel_waits_for_newcomers() {
    let at = shared().address();
    CHAT.trigger(at, "cache-score", "score", "1");
    CHAT.trigger(at, "cache-score", "score", "2");
    let mut late = Client::connect(at, CHAT);
    late.subscribe("cache-score", None);
    assert_eq!(late.expect("score").data, 2);
    late.subscribe("private-cache-score", None);
    late.expect("pusher:cache_miss");
}

#[test]
fn users_sign_in_and_are_sent_away() {
    let at = shared().address();
    let mut one = Client::connect(at, CHAT);
    let own = json!({"channel": "#server-to-user-7"});
    one.say("pusher:subscribe", &own);
    one.expect("pusher:subscription_error");
    let data = json!({"id": "7", "user_info": {"name": "ann"}}).to_string();
    let signature = CHAT.sign(&format!("{}::user::{data}", one.socket));
    let sign_in = json!({"auth": format!("chat-key:{signature}"), "user_data": data});
    one.say("pusher:signin", &sign_in);
    one.expect("pusher:signin_success");
    one.say("pusher:subscribe", &own);
    one.expect("pusher_internal:subscription_succeeded");
    CHAT.trigger(at, "#server-to-user-7", "hello", "");
    one.expect("hello");
    // Another one's.
    let mut two = Client::connect(at, CHAT);
    two.say("pusher:signin", &sign_in);
    assert_eq!(two.end(), (vec!["pusher:error".to_owned()], 4009));
    for (app, ends) in [(SHOP, false), (CHAT, true)] {
        let answer = app.post(at, "/users/7/terminate_connections", &json!({}));
        assert_eq!(answer.expect(200).json(), json!({}));
        match ends {
            false => one.expect_nothing(),
            true => assert_eq!(one.end(), (vec!["pusher:error".to_owned()], 4009)),
        }
    }
}

/// Who reads slowly loses its connection, and costs the others nothing.
#[test]
fn a_client_that_does_not_read_has_to_come_again() {
    let at = shared().address();
    let mut slow = websocket::Client::open(at, &Client::path(CHAT.key));
    let subscribe = json!({"event": "pusher:subscribe", "data": {"channel": "flood"}});
    slow.text(&subscribe.to_string());
    let mut quick = Client::connect(at, CHAT);
    quick.subscribe("flood", None);
    // What the system keeps for a connection has to fill first.
    let data = "x".repeat(10_000);
    let batch: Vec<Value> = (0..10)
        .map(|_| json!({"name": "e", "channel": "flood", "data": data}))
        .collect();
    for _ in 0..150 {
        CHAT.post(at, "/batch_events", &json!({"batch": batch}))
            .expect(200);
        (0..10).for_each(|_| _ = quick.expect("e"));
    }
    let (_, code) = surus_tests::pusher::ending(&mut slow);
    assert_eq!(code, 4100);
}
