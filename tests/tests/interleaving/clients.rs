//! What a request has to do with its own client: that one leaves, or reads while the request still runs.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{json, Value};
use surus_tests::http::{Connection, Request};
use surus_tests::surus::Mode;
use surus_tests::temp::TempDir;

use super::{ask, both_have_met, path, server, PATIENCE};

/// The requests 1 and 2, both at their first meeting.
fn begin(mode: Mode, name: &str, folder: &Path) -> [Connection; 2] {
    let both = [1, 2].map(|number| {
        let mut connection = Connection::open(server(mode)).expect("a connection");
        let request = Request::get(&path(name, number, folder)).bytes(server(mode));
        connection.write(&request).expect("sent");
        connection
    });
    both_have_met(folder);
    both
}

fn wait_for(file: &Path) {
    let start = Instant::now();
    while !file.exists() {
        assert!(start.elapsed() < PATIENCE, "no {}", file.display());
        thread::sleep(Duration::from_millis(1));
    }
}

fn look(mode: Mode, name: &str, folder: &Path) -> Value {
    ask(server(mode), name, 0, folder)["look"].clone()
}

/// The client of one request leaves; the first one goes on and knows it, the second one ends. The other request and a
/// third one notice nothing.
#[test]
fn connection_status() {
    const NAME: &str = "connection_status";
    for mode in Mode::ALL {
        for leaver in [1, 2] {
            let folder = TempDir::new(NAME);
            let folder = folder.path();
            let present = json!([0, 0, 0]);
            assert_eq!(look(mode, NAME, folder), present, "{mode:?} before");
            let [mut first, mut second] = begin(mode, NAME, folder);
            let answer = if leaver == 1 {
                drop(first);
                wait_for(&folder.join("found1"));
                let found = fs::read_to_string(folder.join("found1")).expect("a note");
                assert_eq!(found, "[1,1,1]", "{mode:?}: the first without its client");
                assert!(!folder.join("2-finally").exists(), "{mode:?}: the second");
                assert_eq!(look(mode, NAME, folder), present, "{mode:?} meanwhile");
                fs::write(folder.join("go"), "").expect("a sign");
                second.response("GET").expect("an answer").expect(200)
            } else {
                drop(second);
                wait_for(&folder.join("2-finally"));
                assert!(!folder.join("found2").exists(), "{mode:?}: the second");
                assert!(!folder.join("1-finally").exists(), "{mode:?}: the first");
                assert_eq!(look(mode, NAME, folder), present, "{mode:?} meanwhile");
                fs::write(folder.join("go"), "").expect("a sign");
                first.response("GET").expect("an answer").expect(200)
            };
            // The one that is left ignores only what it was told to ignore.
            let expected = json!([0, 0, leaver - 1]);
            assert_eq!(answer.json()["found"], expected, "{mode:?} {leaver}");
            assert_eq!(look(mode, NAME, folder), present, "{mode:?} afterwards");
        }
    }
}

/// What the client has got so far, up to this text.
fn read_until(connection: &mut Connection, text: &str) -> String {
    let start = Instant::now();
    let mut got = String::new();
    while !got.contains(text) {
        assert!(start.elapsed() < PATIENCE, "no {text:?} in {got:?}");
        let more = connection.some();
        let more = more.unwrap_or_else(|error| panic!("no {text:?} in {got:?}: {error}"));
        got += &String::from_utf8_lossy(&more);
    }
    got
}

/// Each client reads the first part while both requests wait, then its own second part.
#[test]
fn flush() {
    const NAME: &str = "flush";
    for mode in Mode::ALL {
        let folder = TempDir::new(NAME);
        let folder = folder.path();
        assert_eq!(look(mode, NAME, folder), false, "{mode:?} before");
        let mut both = begin(mode, NAME, folder);
        println!("{mode:?}");
        for (number, connection) in (1..).zip(&mut both) {
            let got = read_until(connection, &format!("first {number};"));
            let header = format!("x-own: own {number}");
            assert!(got.to_lowercase().contains(&header), "{mode:?}: {got}");
            assert!(!got.contains(&format!("first {};", 3 - number)), "{got}");
        }
        assert_eq!(look(mode, NAME, folder), false, "{mode:?} meanwhile");
        fs::write(folder.join("go"), "").expect("a sign");
        for (number, connection) in (1..).zip(&mut both) {
            let got = read_until(connection, "\"found\":true}");
            assert!(
                got.contains(&format!("second {number};")),
                "{mode:?}: {got}"
            );
            assert!(!got.contains(&format!("second {};", 3 - number)), "{got}");
        }
        assert_eq!(look(mode, NAME, folder), false, "{mode:?} afterwards");
    }
}
