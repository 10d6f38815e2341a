//! From a request to a connection, or to the application.

use serde_json::json;
use surus_tests::http::Request;
use surus_tests::http2::{self, ACK, DATA, END_HEADERS, HEADERS, SETTINGS};
use surus_tests::pusher::{ending, Client};
use surus_tests::surus::Mode;
use surus_tests::waiting::wait_for;
use surus_tests::websocket::{self, handshake};

use super::{options, shared, CHAT, MODES, SMALL};

#[test]
fn it_is_there_in_every_mode() {
    for mode in MODES {
        let server = options(mode).start();
        let at = server.address();
        let mut client = Client::connect(at, CHAT);
        client.subscribe("news", None);
        CHAT.trigger(at, "news", "made", "{\"a\":1}");
        let event = client.expect("made");
        assert_eq!(event.data, json!({"a": 1}), "{mode:?}");
        let page = Request::get("/page").send(at).expect(200).text();
        assert_eq!(page, "PHP: GET /page 0", "{mode:?}");
        // New code is no reason to come again.
        let (code, text) = server.command(&["reload"]);
        assert_eq!(code, Some(0), "{mode:?}: {text}");
        CHAT.trigger(at, "news", "again", "");
        client.expect("again");
        client.expect_nothing();
    }
}

#[test]
fn refusals_have_pushers_codes() {
    let at = shared().address();
    let refused = |target: &str, lines: &[&str]| {
        let mut client = websocket::Client::ask(at, handshake(at, target, lines));
        assert!(client.is_open(), "{}", client.head);
        let (names, code) = ending(&mut client);
        assert_eq!(names, ["pusher:error"]);
        code
    };
    assert_eq!(refused("/app/nobody?protocol=7", &[]), 4001);
    assert_eq!(refused("/app/chat-key", &[]), 4008);
    assert_eq!(refused("/app/chat-key?protocol=x", &[]), 4006);
    assert_eq!(refused("/app/chat-key?protocol=4", &[]), 4007);
    let path = Client::path(CHAT.key);
    for origin in ["https://evil.example", "http://www.example.com", "null"] {
        assert_eq!(
            refused(&path, &[&format!("Origin: {origin}")]),
            4009,
            "{origin}"
        );
    }
    let own = format!("Origin: http://{at}");
    for origin in ["Origin: https://www.example.com", &own] {
        let mut client = websocket::Client::ask(at, handshake(at, &path, &[origin]));
        assert!(
            client.next_text().contains("connection_established"),
            "{origin}"
        );
    }
    // Neither a WebSocket nor PHP's.
    Request::get(&path).send(at).expect(426);
}

#[test]
fn paths_beside_it_are_the_applications() {
    let at = shared().address();
    for path in [
        "/app",
        "/app/",
        "/app/other",
        "/app/chat-key/x",
        "/apps/1001",
        "/apps/1001/edit",
        "/apps/1001/events",
        "/apps/7/events",
    ] {
        let page = Request::get(path).send(at).expect(200).text();
        assert_eq!(page, format!("PHP: GET {path} 0"));
    }
    let long = "x".repeat(300_000);
    let page = Request::post("/apps/7/events")
        .body("text/plain", long)
        .send(at);
    assert_eq!(page.expect(200).text(), "PHP: POST /apps/7/events 300000");
}

#[test]
fn an_application_has_as_many_connections_as_it_may() {
    let at = shared().address();
    let mut clients: Vec<Client> = (0..3).map(|_| Client::connect(at, SMALL)).collect();
    let mut more = websocket::Client::open(at, &Client::path(SMALL.key));
    assert_eq!(ending(&mut more), (vec!["pusher:error".to_owned()], 4004));
    Client::connect(at, CHAT).close();
    clients.pop().expect("one").close();
    let opens = || {
        let mut again = websocket::Client::open(at, &Client::path(SMALL.key));
        again.next_text().contains("connection_established")
    };
    wait_for("there is no room again", opens);
}

/// Clients are told to connect to the worker that takes the place of theirs.
#[test]
fn a_server_that_ends_says_so() {
    let mut server = options(Mode::Classic).start();
    let mut client = Client::connect(server.address(), CHAT);
    server.process().signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(client.end(), (vec![], 4200));
}

#[test]
fn messages_of_clients_are_bounded() {
    let at = shared().address();
    let mut client = Client::connect(at, CHAT);
    for wrong in [
        "",
        "[]",
        "{\"event\":\"pusher:subscribe\"}",
        "{\"event\":7}",
    ] {
        client.text(wrong);
        let error = client.expect("pusher:error");
        assert_eq!(error.data["code"], json!(null), "{wrong}");
    }
    client.text(&"x".repeat(100_000));
    assert_eq!(client.end(), (vec![], 1009));
}

/// Over HTTP/2 a connection is a stream (RFC 8441).
#[test]
fn browsers_may_use_http_2() {
    let mut client = http2::Client::open(shared().address()).expect("connect");
    client.send(SETTINGS, ACK, 0, b"").expect("send");
    let lines = [(":protocol", "websocket"), ("sec-websocket-version", "13")];
    let head = http2::head("CONNECT", &Client::path(CHAT.key), &lines);
    client.send(HEADERS, END_HEADERS, 1, &head).expect("send");
    assert_eq!(client.next(HEADERS).expect("a head").status(), Some(200));
    let subscribe = json!({"event": "pusher:subscribe", "data": {"channel": "over-2"}}).to_string();
    let text = websocket::frame(websocket::FIN | websocket::TEXT, subscribe.as_bytes());
    client.send(DATA, 0, 1, &text).expect("send");
    let mut received = String::new();
    while !received.contains("subscription_succeeded") {
        let data = client.next(DATA).expect("data").payload;
        received.push_str(&String::from_utf8_lossy(&data));
    }
    assert!(received.contains("pusher:connection_established"));
}
