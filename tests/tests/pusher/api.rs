//! The HTTP API, as libraries for servers use it.

use serde_json::{json, Value};
use surus_tests::http::Request;
use surus_tests::pusher::Client;

use super::{shared, CHAT, SHOP};

#[test]
fn events_reach_several_channels_but_not_who_has_caused_them() {
    let at = shared().address();
    let mut one = Client::connect(at, CHAT);
    let mut two = Client::connect(at, CHAT);
    for client in [&mut one, &mut two] {
        client.subscribe("api-a", None);
        client.subscribe("api-b", None);
    }
    let body = json!({
        "name": "App\\Events\\Made", "channels": ["api-a", "api-b"], "data": "{\"x\":\"ä\"}", "socket_id": one.socket,
        "info": "subscription_count",
    });
    let answer = CHAT.post(at, "/events", &body).expect(200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let about = json!({"subscription_count": 2});
    assert_eq!(
        answer.json(),
        json!({"channels": {"api-a": about, "api-b": about}})
    );
    for channel in ["api-a", "api-b"] {
        let event = two.expect("App\\Events\\Made");
        assert_eq!(
            (&*event.channel, &event.data),
            (channel, &json!({"x": "ä"}))
        );
    }
    one.expect_nothing();
    let events: Vec<Value> = (0..10)
        .map(|number| json!({"name": "n", "channel": "api-a", "data": number.to_string()}))
        .collect();
    let answer = CHAT.post(at, "/batch_events", &json!({"batch": events}));
    assert_eq!(answer.expect(200).json(), json!({}));
    for number in 0..10 {
        assert_eq!(one.expect("n").data, number);
    }
    let channels = CHAT.get(at, "/channels", &[("filter_by_prefix", "api-")]);
    assert_eq!(channels, json!({"channels": {"api-a": {}, "api-b": {}}}));
    one.close();
    two.close();
}

#[test]
fn what_is_not_signed_is_refused() {
    let at = shared().address();
    let mut client = Client::connect(at, CHAT);
    client.subscribe("closed", None);
    let body = json!({"name": "e", "channel": "closed", "data": ""}).to_string();
    let right = CHAT.request("POST", "/events", &[], &body);
    let target = right.target().to_owned();
    let post = |target: &str, body: &str| Request::post(target).body("application/json", body);
    let other = body.replace("\"e\"", "\"f\"");
    for (target, body, status) in [
        ("/apps/1001/events?auth_key=chat-key", &body, 401),
        (&*target, &other, 401),
        (
            &*target.replace("auth_timestamp=1", "auth_timestamp=2"),
            &body,
            401,
        ),
        (&*format!("{target}0"), &body, 401),
        (&*target.replace("1001", "shop"), &body, 401),
        (&*target.replace("1001", "nobody"), &body, 404),
    ] {
        let answer = post(target, body).send(at).expect(status);
        assert!(answer.json()["error"].is_string(), "{target}");
    }
    client.expect_nothing();
    right.send(at).expect(200);
    client.expect("e");
}

#[test]
fn requests_are_bounded() {
    let at = shared().address();
    let event = |length: usize| json!({"name": "e", "channel": "a", "data": "x".repeat(length)});
    CHAT.post(at, "/events", &event(10_240)).expect(200);
    CHAT.post(at, "/events", &event(10_241)).expect(413);
    SHOP.post(at, "/events", &event(1_025)).expect(413);
    CHAT.post(at, "/events", &event(400_000)).expect(413);
    let batch = |count: usize| json!({"batch": vec![event(10_240); count]});
    CHAT.post(at, "/batch_events", &batch(10)).expect(200);
    CHAT.post(at, "/batch_events", &batch(11)).expect(400);
    // What nobody has signed is not even read.
    let endless = "x".repeat(500_000);
    Request::post("/apps/1001/events?auth_key=chat-key")
        .body("text/plain", endless)
        .send(at)
        .expect(401);
}
