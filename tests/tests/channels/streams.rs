//! Event streams without PHP.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::sys::signal::Signal;
use surus_tests::fixture;
use surus_tests::http::{Connection, Request};
use surus_tests::http2;
use surus_tests::random::Random;
use surus_tests::surus::Surus;
use surus_tests::waiting::wait_for;
use surus_tests::websocket::Client;

use super::events::Event;
use super::{options, publish, serve, stream, RULES};

#[test]
fn who_has_subscribed_gets_it() {
    let server = serve(1);
    let mut red = stream(&server, "red", None);
    let mut both = stream(&server, "red,blue", None);
    let mut green = stream(&server, "green", None);
    assert_eq!(red.retry, "2000");
    publish(&server, "red", "1");
    publish(&server, "blue", "2");
    publish(&server, "yellow", "3");
    publish(&server, "red", "a%0Ab%0D%0Ac%0Dd%26&event=told%0Aevil");
    assert_eq!(red.data(), "1");
    assert_eq!(both.all(2), ["1", "2"]);
    let told = Event {
        kind: "toldevil".into(),
        data: "a\nb\nc\nd&".into(),
    };
    assert_eq!((red.next(), both.next()), (Some(told.clone()), Some(told)));
    publish(&server, "green", "only");
    assert_eq!(green.data(), "only");
    // No request is in flight, and a client that leaves is noticed.
    let status = server.status();
    let worker = &status["workers"][0];
    assert_eq!(
        (&worker["in_flight"], &worker["event_streams"]),
        (&0.into(), &3.into())
    );
    drop((red, both));
    wait_for("they are not noticed", || {
        let worker = &server.status()["workers"][0];
        worker["event_streams"] == 1 && worker["channel_subscriptions"] == 1
    });
    // HEAD has a head; what is no event stream does not become one.
    let head = Request::new("HEAD", "/stream?channels=red").send(server.address());
    assert_eq!((head.status, head.body.len()), (200, 0));
    let refused = Request::get("/refused").send(server.address());
    assert_eq!((refused.status, refused.body.len()), (403, 0));
    let said = Request::get("/wrong").send(server.address()).json();
    let texts = [
        "1 to 200",
        "1 to 200",
        "UTF-8",
        "65536",
        "at most 200",
        "1 to 200",
        "at most 100",
    ];
    for (said, text) in said.as_array().expect("a list").iter().zip(texts) {
        let said = said.to_string();
        assert!(said.contains(text) && said.contains("app.php"), "{said}");
    }
    wait_for("HEAD has left one", || {
        server.status()["workers"][0]["event_streams"] == 1
    });
}

/// PHP publishes and opens streams in each mode, and is free while they are open.
#[test]
fn in_every_mode() {
    for mode in ["classic", "worker", "snapshot", "process"] {
        let script = fixture("channels").join("index.php");
        let server = Surus::serve(&script)
            .argument("--mode")
            .argument(mode)
            .config(&format!(
                "[app.app]\nmax_requests_in_flight = 2\nisolates = {{ max = 1 }}\n{RULES}"
            ))
            .workers(2)
            .start();
        let mut streams: Vec<_> = (0..6).map(|_| stream(&server, "kept/a", None)).collect();
        let position = publish(&server, "kept/a", "1");
        assert!(position.ends_with(":1"), "{mode}: {position}");
        for events in &mut streams {
            assert_eq!(events.data(), "1", "{mode}");
            assert_eq!(events.last_id, position);
        }
        publish(&server, "kept/a", "2");
        let mut again = stream(&server, "kept/a", Some(&position));
        assert_eq!(again.data(), "2", "{mode}");
        let refused = Request::get("/refused").send(server.address());
        assert_eq!(refused.status, 403, "{mode}");
    }
}

#[test]
fn a_silent_one_beats_and_outlives_the_time_of_a_request() {
    let settings =
        "[app.app]\nheartbeat = \"1s\"\nrequest_timeout = \"1s\"\nstream_timeout = \"1s\"\n";
    let server = options().config(&format!("{settings}{RULES}")).start();
    let mut events = stream(&server, "news", None);
    for _ in 0..2 {
        events.wait_for_comment();
    }
    publish(&server, "news", "late");
    assert_eq!(events.data(), "late");
}

/// Nobody waits for it. Where publications are kept, it gets them when it reads; else it is cut off, and knows.
#[test]
fn who_does_not_read_holds_up_nobody() {
    let server = options()
        .config("[channel.\"kept/*\"]\nhistory = 1000\n")
        .start();
    let narrow = |channel: &str| {
        let mut connection = Connection::open_narrow(4096, server.address()).expect("a connection");
        let target = format!("/stream?channels={channel}");
        let request = Request::get(&target).bytes(server.address());
        connection.write(&request).expect("sent");
        connection
    };
    let (mut kept, mut plain) = (narrow("kept/a"), narrow("a"));
    let open = |count: u64| server.status()["workers"][0]["event_streams"] == count;
    wait_for("they are not open", || open(2));
    let mut quick = stream(&server, "kept/a", None);
    let mut count = 0;
    // Neither is told more than what waits for it.
    while server.status()["workers"][0]["channel_subscriptions"] != 1 || count < 200 {
        assert!(count < 700, "they are still told");
        for channel in ["kept/a", "a"] {
            let query = format!("channel={channel}&text=x&times=10&from={count}&size=50000");
            let request = Request::get(&format!("/publish?{query}"));
            request.send(server.address()).expect(200);
        }
        count += 10;
        for text in quick.all(10) {
            assert!(text.starts_with("x "));
        }
    }
    let text = plain.rest().unwrap_or_default();
    assert!(text.len() < count * 50_000);
    let (mut text, mut seen) = (Vec::new(), 0);
    while seen < count {
        let some = kept.some().expect("the rest");
        assert!(!some.is_empty(), "it is cut off");
        let from = text.len().saturating_sub(5);
        text.extend(some);
        let new = text[from..].windows(6);
        seen += new.filter(|bytes| *bytes == b"data: ").count();
    }
    let text = String::from_utf8_lossy(&text);
    let numbers: Vec<usize> = text
        .split("data: x ")
        .skip(1)
        .filter_map(|rest| rest.split(' ').next()?.parse().ok())
        .collect();
    assert!(
        numbers.windows(2).all(|two| two[1] == two[0] + 1),
        "{numbers:?}"
    );
    assert!(!text.contains("missed"));
}

#[test]
fn over_http_2_each_is_a_stream() {
    let server = serve(1);
    let mut client = http2::Client::open(server.address()).expect("a connection");
    client.get(1, "/stream?channels=kept/a").expect("sent");
    client.get(3, "/stream?channels=kept/b").expect("sent");
    let open = |count: u64| {
        wait_for("not so many are open", || {
            server.status()["workers"][0]["event_streams"] == count
        });
    };
    open(2);
    publish(&server, "kept/a", "first");
    publish(&server, "kept/b", "second");
    let mut texts = [String::new(), String::new()];
    while !(texts[0].contains("data: first\n\n") && texts[1].contains("data: second\n\n")) {
        let frame = client.next(http2::DATA).expect("a frame");
        let text = &mut texts[frame.stream as usize / 2];
        text.push_str(&String::from_utf8_lossy(&frame.payload));
    }
    let cancel = 8_u32.to_be_bytes();
    client.send(http2::RST_STREAM, 0, 1, &cancel).expect("sent");
    open(1);
    drop(client);
    open(0);
}

#[test]
fn new_code_leaves_them_and_the_end_of_the_server_ends_them() {
    let mut server = serve(1);
    let mut events = stream(&server, "kept/a", None);
    let (code, text) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{text}");
    publish(&server, "kept/a", "after");
    assert_eq!(events.data(), "after");
    server.process().signal(Signal::SIGTERM);
    assert_eq!(events.next(), None);
}

/// Clients that subscribe, unsubscribe and vanish at random get what they have subscribed to then, and nothing else.
#[test]
fn nobody_gets_what_it_has_not_subscribed_to() {
    const NAMES: [&str; 6] = ["c", "cc", "c/1", "kept/c", "kept/cc", "kept/c/1"];
    let server = serve(2);
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        let publisher = scope.spawn(|| {
            let mut count = 0;
            while !end.load(Ordering::Relaxed) {
                for name in NAMES {
                    publish(&server, name, name);
                    count += 1;
                }
            }
            count
        });
        let mut clients = Vec::new();
        for seed in 0..6 {
            let server = &server;
            clients.push(scope.spawn(move || {
                let mut random = Random::of(seed, 0);
                let mut heard = 0;
                for _ in 0..4 {
                    heard += talk(server, &mut random, &NAMES);
                    let chosen = any(&mut random, &NAMES);
                    let other = any(&mut random, &NAMES);
                    let mut events = stream(server, &format!("{chosen},{other}"), None);
                    for text in events.all(3) {
                        assert!(text == chosen || text == other, "{text}: {chosen}, {other}");
                    }
                }
                heard
            }));
        }
        let heard: usize = clients
            .into_iter()
            .map(|one| one.join().expect("a client"))
            .sum();
        end.store(true, Ordering::Relaxed);
        assert!(heard > 0 && publisher.join().expect("the publisher") > 0);
    });
}

fn any<'a>(random: &mut Random, all: &[&'a str]) -> &'a str {
    let place = random.below(all.len() as u64);
    all[place as usize]
}

/// A WebSocket, until it vanishes. How much it has heard.
fn talk(server: &Surus, random: &mut Random, names: &[&str]) -> usize {
    let mut client = Client::open(server.address(), "/socket");
    client.next_text();
    let (mut subscribed, mut heard) = (BTreeSet::new(), 0);
    for _ in 0..12 {
        let name = any(random, names);
        let what = any(random, &["subscribe", "unsubscribe"]);
        client.text(&format!("{what} {name}"));
        if what == "subscribe" {
            subscribed.insert(name);
        }
        loop {
            let text = client.next_text();
            if text.starts_with("> ") {
                break;
            }
            assert!(subscribed.contains(&*text), "{text}: {subscribed:?}");
            heard += 1;
        }
        if what == "unsubscribe" {
            subscribed.remove(name);
        }
    }
    heard
}
