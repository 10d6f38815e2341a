//! Many requests on one connection of HTTP, some of which end early: streams that are reset, pipelines that break off.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use surus_tests::http::{Connection, Request};
use surus_tests::http2::{Client, DATA, END_STREAM, HEADERS, RST_STREAM};
use surus_tests::random::Random;
use surus_tests::surus::{Mode, Surus};

use super::{port, server};

/// Persistent connections: the next request gets the one on which another was cut off.
const CLIENTS: [&str; 4] = [
    "pdo_pgsql_emulated",
    "pdo_pgsql_prepared",
    "pdo_mysql_emulated",
    "pgsql",
];
const ROUNDS: u64 = 12;
const AT_A_TIME: u32 = 24;
/// RFC 9113, 7: the client has no need of the stream any more.
const CANCEL: [u8; 4] = [0, 0, 0, 8];

fn target(client: &str, word: &str, random: &mut Random) -> String {
    let seconds = random.below(30) as f64 / 1000.0;
    let port = port(client);
    format!("/?case=ask&client={client}&port={port}&word={word}&seconds={seconds}")
}

/// Half of the streams are reset, at any time. The others have their own answers.
fn streams(server: &Surus, client: &str, round: u64) {
    let mut random = Random::of(round, 2);
    let mut http2 = Client::open(server.address()).expect("a connection");
    let mut open = HashMap::new();
    for number in 0..AT_A_TIME {
        let stream = 2 * number + 1;
        let word = format!("r{round}s{stream}");
        let target = target(client, &word, &mut random);
        http2.get(stream, &target).expect("a request");
        open.insert(stream, word);
    }
    for number in 0..AT_A_TIME {
        let stream = 2 * number + 1;
        if random.once_in(2) {
            thread::sleep(Duration::from_micros(random.below(4000)));
            http2.send(RST_STREAM, 0, stream, &CANCEL).expect("a reset");
            open.remove(&stream);
        }
    }
    let mut heard: HashMap<u32, (Option<u16>, Vec<u8>)> = HashMap::new();
    while !open.is_empty() {
        let frame = http2.frame().expect("a frame");
        let about = heard.entry(frame.stream).or_default();
        match frame.kind {
            HEADERS => about.0 = frame.status(),
            DATA => about.1.extend(&frame.payload),
            _ => continue,
        }
        if frame.flags & END_STREAM == 0 {
            continue;
        }
        if let Some(word) = open.remove(&frame.stream) {
            let (status, text) = about;
            let text = String::from_utf8_lossy(text);
            assert_eq!(
                (*status, text.as_ref()),
                (Some(200), word.as_str()),
                "{client}"
            );
        }
    }
}

/// The client leaves after some of the answers.
fn pipeline(server: &Surus, client: &str, round: u64) {
    let mut random = Random::of(round, 1);
    let mut connection = Connection::open(server.address()).expect("a connection");
    let words: Vec<String> = (0..AT_A_TIME)
        .map(|number| format!("r{round}p{number}"))
        .collect();
    let mut bytes = Vec::new();
    for word in &words {
        let target = target(client, word, &mut random);
        bytes.extend(Request::get(&target).bytes(server.address()));
    }
    connection.write(&bytes).expect("requests");
    let wanted = random.below(u64::from(AT_A_TIME)) as usize;
    for word in &words[..wanted] {
        let response = connection.response("GET").expect("an answer");
        assert_eq!(&response.expect(200).text(), word, "{client}");
    }
    thread::sleep(Duration::from_micros(random.below(4000)));
}

fn check(mode: Mode) {
    let server = server(mode, "").start();
    thread::scope(|scope| {
        for client in CLIENTS {
            let server = &server;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    streams(server, client, round);
                    pipeline(server, client, round);
                }
            });
        }
    });
}

#[test]
fn classic() {
    check(Mode::Classic);
}

#[test]
fn coroutine() {
    check(Mode::Coroutine);
}

#[test]
fn process() {
    check(Mode::Process);
}
