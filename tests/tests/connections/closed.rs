//! A request closes what another one waits for: that one gets an error, and who has the number next is not disturbed.

use std::time::{Duration, Instant};

use surus_tests::surus::{Mode, Surus};

use super::server;
use super::shared::{answer, expect_in_use, get, start};

fn step(server: &Surus, name: &str, client: &str, word: &str) -> String {
    get(
        server,
        &format!("/{name}?case=close&client={client}&word={word}&id=x"),
    )
}

fn begin(
    server: &Surus,
    name: &str,
    client: &str,
    word: &str,
    id: &str,
) -> surus_tests::http::Connection {
    let target = format!("/{name}?case=close&client={client}&word={word}");
    start(server, &target, id)
}

fn check(client: &str) {
    let server = server(Mode::Coroutine, "").start();
    for round in 0..3 {
        assert_eq!(step(&server, "orders", client, "listen"), "listens");
        let alice = begin(&server, "orders", client, "wait", &format!("alice{round}"));
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(step(&server, "users", client, "close"), "closed");
        let carol = begin(&server, "carol", client, "next", &format!("carol{round}"));
        let begun = Instant::now();
        assert_eq!(answer(alice), "got false", "{client}");
        assert!(begun.elapsed() < Duration::from_secs(2), "{client}: late");
        assert_eq!(step(&server, "dave", client, "wake"), "wakes");
        assert_eq!(answer(carol), "woken\n", "{client}");
        assert!(begun.elapsed() < Duration::from_secs(2), "{client}: late");
    }
    let log = server.log();
    for part in [
        "is closed by GET /users in ",
        "while another request waits for it: GET /orders in ",
    ] {
        assert!(log.contains(part), "{client}: {log}");
    }
}

macro_rules! clients {
    ($($name:ident)*) => {
        $(#[test] fn $name() { check(stringify!($name)); })*
    };
}

clients! { stream_select socket_select socket_accept }

/// PHP uses the stream again when it goes on.
#[test]
fn a_stream_on_which_a_client_is_awaited_is_not_closed() {
    let server = server(Mode::Coroutine, "").start();
    let client = "stream_accept";
    assert_eq!(step(&server, "orders", client, "listen"), "listens");
    let alice = begin(&server, "orders", client, "wait", "alice");
    let bob = begin(&server, "orders", client, "wait", "bob");
    std::thread::sleep(Duration::from_millis(50));
    expect_in_use(&step(&server, "users", client, "close"), "A stream");
    assert_eq!(answer(alice), "got false");
    assert_eq!(answer(bob), "got false");
    assert_eq!(step(&server, "users", client, "close"), "closed");
}

/// A stream that is also a socket is one connection, whichever way it is used.
#[test]
fn a_stream_and_its_socket_are_one() {
    let server = server(Mode::Coroutine, "").start();
    for reads in ["stream", "socket"] {
        for ends in ["stream", "socket"] {
            assert_eq!(step(&server, "orders", reads, "pair"), "opened");
            let id = format!("{reads}-{ends}");
            let alice = begin(&server, "orders", reads, "read", &id);
            std::thread::sleep(Duration::from_millis(50));
            expect_in_use(&step(&server, "users", ends, "end"), "A stream");
            assert_eq!(step(&server, "users", reads, "wake"), "wakes");
            assert_eq!(answer(alice), "read woken\n", "{id}");
            assert_eq!(step(&server, "users", ends, "end"), "closed", "{id}");
        }
    }
}
