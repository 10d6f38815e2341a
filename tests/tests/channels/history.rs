//! Histories: order, recovery, and what is lost.

use std::collections::HashSet;
use std::thread;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use surus_tests::http::Request;
use surus_tests::surus::Surus;
use surus_tests::waiting::wait_for;
use surus_tests::websocket::Client;

use super::events::Events;
use super::{options, publish, serve, stream};

fn history(server: &Surus, query: &str) -> (String, Vec<String>) {
    let said = Request::get(&format!("/history?{query}"))
        .send(server.address())
        .expect(200)
        .json();
    let data = said[1].as_array().expect("a list").iter();
    let data = data
        .map(|one| one.as_str().expect("a text").to_owned())
        .collect();
    (said[0].as_str().unwrap_or_default().to_owned(), data)
}

#[test]
fn a_client_goes_on_from_where_it_was_as_far_as_the_history_goes() {
    let server = serve(2);
    let (start, none) = history(&server, "channel=kept/short/a");
    assert!(none.is_empty() && start.ends_with(":0"), "{start}");
    let positions: Vec<_> = (1..=5)
        .map(|n| publish(&server, "kept/short/a", &n.to_string()))
        .collect();
    assert_eq!(history(&server, "channel=kept/short/a").1, ["3", "4", "5"]);
    assert_eq!(
        history(&server, "channel=kept/short/a&limit=2").1,
        ["4", "5"]
    );
    let since =
        |position: &str| history(&server, &format!("channel=kept/short/a&since={position}")).1;
    assert_eq!(since(&positions[2]), ["4", "5"]);
    assert_eq!(since(&positions[0]), ["null"]);
    assert_eq!(
        history(&server, "channel=plain"),
        (String::new(), vec!["null".to_owned()])
    );
    // An event stream, by its header and by what the page has said.
    let mut covered = stream(&server, "kept/short/a", Some(&positions[1]));
    assert_eq!(covered.all(3), ["3", "4", "5"]);
    let target = format!("/stream?channels=kept/short/a&since={}", positions[3]);
    let mut page = Events::open(&server, &target, None);
    assert_eq!(page.data(), "5");
    let other = positions[4].replacen(|c: char| c != ':', "f", 1);
    for lost in [
        &positions[0],
        &start,
        &other,
        "nonsense",
        "1:99999999999999999999",
    ] {
        let mut events = stream(&server, "kept/short/a", Some(lost));
        let event = events.next().expect("an event");
        assert_eq!(
            (&*event.kind, &*event.data),
            ("missed", "kept/short/a"),
            "{lost}"
        );
        assert_eq!(events.last_id, positions[4]);
    }
    // A WebSocket.
    let mut socket = Client::open(server.address(), "/socket");
    socket.next_text();
    for (position, expected) in [
        (&positions[3], vec!["5", "> recovered"]),
        (&positions[0], vec!["> missed"]),
        (&String::new(), vec!["> recovered"]),
    ] {
        socket.text(&format!("subscribe kept/short/a {position}"));
        for text in expected {
            assert_eq!(socket.next_text(), text);
        }
    }
    // Several channels have a position each.
    let mut both = stream(&server, "kept/short/a,plain,kept/b", None);
    let last = publish(&server, "kept/b", "x");
    assert_eq!(both.data(), "x");
    assert_eq!(both.last_id, format!("{},-,{last}", positions[4]));
    let id = both.last_id.clone();
    drop(both);
    publish(&server, "kept/b", "y");
    publish(&server, "kept/short/a", "6");
    let mut again = stream(&server, "kept/short/a,plain,kept/b", Some(&id));
    assert_eq!(again.all(2), ["6", "y"]);
    // One that is named once more keeps its place, also for a client that comes again.
    let mut twice = Events::open(&server, "/twice", None);
    let last = publish(&server, "kept/b", "z");
    assert_eq!(
        (twice.data(), twice.last_id),
        ("z".into(), format!("{last},-"))
    );
    let next = publish(&server, "kept/b", "0");
    let mut again = Events::open(&server, "/twice", Some(&format!("{last},-")));
    assert_eq!(
        (again.data(), again.last_id),
        ("0".into(), format!("{next},-"))
    );
    assert_eq!(socket.next_text(), "6");
}

/// Publications of several workers at a time, of which one is killed in the middle: who is there gets all of them in one order, who comes
/// in between misses none.
#[test]
fn all_get_the_same_in_order_and_once_whoever_is_killed() {
    let server = options()
        .config("[channel.\"kept/*\"]\nhistory = 50000\n")
        .workers(3)
        .start();
    let rounds: usize =
        std::env::var("CHANNELS_ROUNDS").map_or(2, |n| n.parse().expect("a number"));
    let start = history(&server, "channel=kept/a").0;
    for round in 0..rounds {
        let publishing = |name: usize| {
            let mut sent = 0;
            for _ in 0..8 {
                let query =
                    format!("/publish?channel=kept/a&text={round}-{name}&times=20&from={sent}");
                if let Ok(answer) = Request::get(&query).try_send(server.address()) {
                    if answer.status == 200 {
                        sent += 20;
                    }
                }
            }
        };
        thread::scope(|scope| {
            for name in 0..3 {
                scope.spawn(move || publishing(name));
            }
            let victim = server.workers()[0];
            let mut last = start.clone();
            for turn in 0..6 {
                // So that there is something to read when the others have ended.
                let own = format!("/publish?channel=kept/a&text=own{round}{turn}&times=5");
                let _ = Request::get(&own).try_send(server.address());
                // Its connection may be one of the worker that is killed.
                let mut events = stream_of(&server, &last);
                for _ in 0..5 {
                    if events.next().is_none() {
                        break;
                    }
                }
                last = events.last_id.clone();
                if turn == 2 {
                    kill(Pid::from_raw(victim), Signal::SIGKILL).expect("kill");
                }
            }
        });
        wait_for("the worker is not replaced", || server.workers().len() == 3);
    }
    // Nobody holds a lock.
    let end = publish(&server, "kept/a", "end");
    let count: usize = end
        .split_once(':')
        .expect("a position")
        .1
        .parse()
        .expect("a number");
    let all = history(&server, "channel=kept/a&limit=50000").1;
    assert_eq!(all.len(), count, "there are holes");
    // Each request's texts are there in its order, as far as it came.
    let distinct: HashSet<_> = all.iter().collect();
    assert!(
        distinct.len() + 60 * rounds >= all.len(),
        "{} of {}",
        distinct.len(),
        all.len()
    );
    let mut seen = stream_of(&server, &start);
    assert_eq!(seen.all(count), all);
    assert_eq!(seen.last_id, end);
}

fn stream_of(server: &Surus, last: &str) -> Events {
    stream(server, "kept/a", Some(last))
}

/// What is published by others while clients come and go reaches each of them once, in the order of the history.
#[test]
fn nothing_is_lost_or_doubled_between_history_and_live() {
    let server = options()
        .config("[channel.\"kept/*\"]\nhistory = 5000\n")
        .workers(2)
        .start();
    let start = history(&server, "channel=kept/a").0;
    thread::scope(|scope| {
        let publishers: Vec<_> = (0..2)
            .map(|name| {
                let server = &server;
                scope.spawn(move || {
                    for from in 0..10 {
                        let query = format!(
                            "/publish?channel=kept/a&text={name}&times=40&from={}",
                            from * 40
                        );
                        Request::get(&query).send(server.address()).expect(200);
                    }
                })
            })
            .collect();
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let (server, start) = (&server, &start);
                scope.spawn(move || {
                    let (mut got, mut last) = (Vec::new(), start.clone());
                    while got.len() < 800 {
                        let mut events = stream_of(server, &last);
                        let count = (800 - got.len()).min(37);
                        got.extend(events.all(count));
                        last = events.last_id.clone();
                    }
                    got
                })
            })
            .collect();
        for publisher in publishers {
            publisher.join().expect("it has published");
        }
        let all = history(&server, "channel=kept/a&limit=5000").1;
        assert_eq!(all.len(), 800);
        for reader in readers {
            assert_eq!(reader.join().expect("it has read"), all);
        }
    });
}

/// The memory is full of other things: a client knows that it has missed something.
#[test]
fn a_full_memory_forgets_histories_and_says_so() {
    let server = options()
        .config("[app.app]\nshared_memory = \"2M\"\n[channel.\"kept/*\"]\nhistory = 50\n")
        .workers(2)
        .start();
    let mut events = stream(&server, "kept/a", None);
    let first = publish(&server, "kept/a", "1");
    assert_eq!(events.data(), "1");
    publish(&server, "kept/a", "2");
    assert_eq!(events.data(), "2");
    Request::get("/fill").send(server.address()).expect(204);
    let mut again = stream(&server, "kept/a", Some(&first));
    assert_eq!(again.next().expect("an event").kind, "missed");
    // It goes on.
    publish(&server, "kept/a", "3");
    assert_eq!((events.data(), again.data()), ("3".into(), "3".into()));
}
