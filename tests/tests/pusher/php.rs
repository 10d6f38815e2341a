//! Events from PHP, and who may subscribe by what PHP says.

use std::fs;
use std::process::Command;

use serde_json::{json, Value};
use surus_tests::apps::App;
use surus_tests::fixture;
use surus_tests::http::{Connection, Request};
use surus_tests::pusher::Client;
use surus_tests::surus::{binary, Mode, Surus};

use super::{options, shared, with_apps, CHAT, MODES, SHOP};

#[test]
fn what_php_publishes_reaches_clients() {
    for mode in MODES {
        let server = options(mode).start();
        let at = server.address();
        let mut chat = Client::connect(at, CHAT);
        let mut shop = Client::connect(at, SHOP);
        chat.subscribe("private-news", None);
        shop.subscribe("private-news", None);
        for target in [
            "/?publish=private-news&event=made&data=%7B%22a%22:1%7D",
            "/?publish=private-news&data=plain",
            "/?publish=shop/private-news&data=plain&event=sold",
        ] {
            Request::get(target).send(at).expect(200);
        }
        let made = json!({"event": "made", "channel": "private-news", "data": "{\"a\":1}"});
        assert_eq!(chat.message().whole, made, "{mode:?}");
        let plain = json!({"event": "message", "channel": "private-news", "data": "plain"});
        assert_eq!(chat.message().whole, plain, "{mode:?}");
        shop.expect("sold");
        chat.expect_nothing();
        shop.expect_nothing();
    }
}

/// The other way round: what servers publish over HTTP reaches event streams of PHP.
#[test]
fn what_servers_publish_reaches_php() {
    let server = options(Mode::Coroutine).start();
    let at = server.address();
    let mut stream = Connection::open(at).expect("connect");
    let request = Request::get("/?stream=news").bytes(at);
    stream.write(&request).expect("send");
    let subscribed = || CHAT.get(at, "/channels/news", &[("info", "subscription_count")]);
    surus_tests::waiting::wait_for("the stream does not begin", || {
        subscribed()["subscription_count"] == 1
    });
    CHAT.trigger(at, "news", "made", "{\"a\":1}");
    let mut text = String::new();
    while !text.contains("event: made\ndata: {\"a\":1}\n") {
        let some = stream.some().expect("a stream");
        assert!(!some.is_empty(), "{text}");
        text.push_str(&String::from_utf8_lossy(&some));
    }
    assert!(text.contains("text/event-stream"), "{text}");
}

#[test]
fn commands_publish_over_http() {
    let at = shared().address();
    let mut one = Client::connect(at, CHAT);
    let mut two = Client::connect(at, CHAT);
    for client in [&mut one, &mut two] {
        client.subscribe("news", None);
        client.subscribe("many-150", None);
        client.subscribe("private-encrypted-a", None);
        client.subscribe("private-encrypted-b", None);
    }
    let output = Command::new(binary())
        .arg("php")
        .arg(fixture("pusher").join("publish.php"))
        .args([format!("http://{at}"), one.socket.clone()])
        .output()
        .expect("php");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.len() == 3, "{said}");
    assert!(
        lines[0].contains("401") && lines[0].contains("auth_signature is wrong"),
        "{said}"
    );
    assert!(
        lines[1].contains("413") && lines[1].contains("10240"),
        "{said}"
    );
    assert!(
        lines[2].ends_with(
            "http://127.0.0.1:1/apps/1001/events: Failed to open stream: Connection refused"
        ),
        "{said}"
    );
    for channel in ["news", "many-150"] {
        let event = two.expect("made");
        assert_eq!(
            (&*event.channel, &event.data),
            (channel, &json!({"title": "Grüße"}))
        );
    }
    let boxes = ["private-encrypted-a", "private-encrypted-b"].map(|channel| {
        let event = two.expect("secret");
        assert_eq!(event.channel, channel);
        assert_eq!(event.data, one.expect("secret").data);
        assert!(event.data["nonce"].is_string());
        event.data["ciphertext"].clone()
    });
    assert_ne!(boxes[0], boxes[1]);
    one.expect_nothing();
}

/// Debian's Laravel with the driver `surus`, unchanged but for its configuration.
#[test]
fn laravel_broadcasts_and_authorises() {
    let app = App::new("laravel");
    let overlay = fixture("pusher/laravel");
    for name in [
        "app/Events/Made.php",
        "app/Providers/BroadcastingProvider.php",
        "config/auth.php",
        "config/broadcasting.php",
    ] {
        let folder = app.root().join(name).parent().expect("a folder").to_owned();
        fs::create_dir_all(folder).expect("a folder");
        let text = fs::read_to_string(overlay.join(name)).expect("a file");
        app.file(name, &text);
    }
    let config = fs::read_to_string(app.root().join("config/app.php")).expect("a file");
    let last = "App\\Providers\\RouteServiceProvider::class,";
    let more = format!(
        "{last} Illuminate\\Broadcasting\\BroadcastServiceProvider::class, Surus\\Broadcasting\\LaravelProvider::class, \
         App\\Providers\\BroadcastingProvider::class,"
    );
    assert!(config.contains(last));
    app.file("config/app.php", &config.replace(last, &more));
    let server = with_apps(Surus::serve(app.root())).start();
    let at = server.address();
    let ask = |client: &Client, user: Option<&str>, channel: &str| {
        let form = [("socket_id", &*client.socket), ("channel_name", channel)];
        let request = Request::post("/broadcasting/auth").form(&form);
        match user {
            Some(user) => request.header("X-User", user).send(at),
            None => request.send(at),
        }
    };
    let mut one = Client::connect(at, CHAT);
    let mut two = Client::connect(at, CHAT);
    for (user, channel) in [
        (None, "private-orders.7"),
        (Some("8"), "private-orders.7"),
        (None, "presence-room"),
        (Some("7"), "private-other"),
        (Some("7"), "private-orders.7:x"),
    ] {
        ask(&one, user, channel).expect(403);
    }
    let answer = ask(&one, Some("7"), "private-orders.7");
    assert_eq!(answer.status, 200, "{}\n{}", answer.text(), server.log());
    let auth = answer.json();
    one.ask("private-orders.7", auth["auth"].as_str(), None);
    one.expect("pusher_internal:subscription_succeeded");
    two.ask("private-orders.7", auth["auth"].as_str(), None);
    two.expect("pusher:subscription_error");
    let auth = ask(&two, Some("8"), "presence-room").expect(200).json();
    two.ask(
        "presence-room",
        auth["auth"].as_str(),
        auth["channel_data"].as_str(),
    );
    let members = two.expect("pusher_internal:subscription_succeeded").data;
    assert_eq!(
        members["presence"]["hash"],
        json!({"8": {"name": "User 8"}})
    );
    for client in [&mut one, &mut two] {
        client.subscribe("news", None);
    }
    let made = |title: &str| -> Value { json!({"title": title}) };
    Request::get("/made/first").send(at).expect(200);
    Request::get("/made/second")
        .header("X-Socket-ID", &two.socket)
        .send(at)
        .expect(200);
    for (client, channels) in [
        (
            &mut one,
            ["news", "private-orders.7", "news", "private-orders.7"].as_slice(),
        ),
        (&mut two, &["news", "presence-room"]),
    ] {
        for (place, channel) in channels.iter().enumerate() {
            let event = client.expect("App\\Events\\Made");
            let title = if place < 2 { "first" } else { "second" };
            assert_eq!((&*event.channel, event.data), (*channel, made(title)));
        }
        client.expect_nothing();
    }
}
