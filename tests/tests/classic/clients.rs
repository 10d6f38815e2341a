//! Clients that are not one request on one connection.

use std::collections::HashSet;
use std::time::Duration;

use surus_tests::http::{Connection, Request};
use surus_tests::parallel::together;
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

use crate::{surus, MODE, PROCESSES};

#[test]
fn keep_alive() {
    let address = surus().address();
    let mut connection = Connection::open(address).expect("connect");
    for number in 0..20 {
        let request = Request::get(&format!("/info.php?number={number}"));
        connection.write(&request.bytes(address)).expect("write");
        let response = connection.response("GET").expect("a response").expect(200);
        assert_eq!(response.json()["get"]["number"], number.to_string());
    }
}

/// Answers come in the order of the requests, whatever each takes.
#[test]
fn pipelined() {
    let address = surus().address();
    let targets = [
        "/pid.php?usleep=200000",
        "/headers.php?case=code",
        "/asset/notes.txt",
        "/buffers.php?case=big",
        "/missing.php",
        "/headers.php?case=no-content",
        "/stream.php",
        "/info.php?last=1",
    ];
    let bytes: Vec<u8> = targets
        .iter()
        .flat_map(|target| Request::get(target).bytes(address))
        .collect();
    let mut connection = Connection::open(address).expect("connect");
    connection.write(&bytes).expect("write");
    let responses: Vec<_> = targets
        .map(|target| connection.response("GET").expect(target))
        .into();
    let statuses: Vec<_> = responses.iter().map(|response| response.status).collect();
    assert_eq!(statuses, [200, 418, 200, 200, 404, 204, 200, 200]);
    assert_eq!(responses[2].text(), "plain text\n");
    assert_eq!(responses[3].body.len(), 2_000_000);
    assert_eq!(responses[6].text(), "first\nlast\n");
    assert_eq!(responses[7].json()["get"]["last"], "1");
}

/// A request that comes in small pieces, body included.
#[test]
fn slow_sender() {
    let address = surus().address();
    let bytes = Request::post("/info.php")
        .form(&[("name", "slow")])
        .bytes(address);
    let mut connection = Connection::open(address).expect("connect");
    for piece in bytes.chunks(16) {
        connection.write(piece).expect("write");
        std::thread::sleep(Duration::from_millis(10));
    }
    let response = connection.response("POST").expect("a response").expect(200);
    assert_eq!(response.json()["post"]["name"], "slow");
}

/// A chunked body has no length, and PHP must see all of it.
#[test]
fn chunked_body() {
    let address = surus().address();
    let mut connection = Connection::open(address).expect("connect");
    let head = "POST /info.php HTTP/1.1\r\nHost: surus.test\r\nContent-Type: application/x-www-form-urlencoded\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    connection.write(head.as_bytes()).expect("write");
    connection
        .write(b"5\r\na=1&b\r\n2\r\n=2\r\n0\r\n\r\n")
        .expect("write");
    let response = connection.response("POST").expect("a response").expect(200);
    assert_eq!(
        response.json()["post"],
        serde_json::json!({"a": "1", "b": "2"})
    );
}

/// In processes of one request each they take turns.
#[test]
fn many_at_once() {
    let address = surus().address();
    let times = (0..12).map(|_| {
        let (pids, took) = together(100, |_| {
            Request::get("/pid.php?usleep=300000")
                .send(address)
                .expect(200)
                .text()
        });
        let pids: HashSet<&String> = pids.iter().collect();
        assert!(pids.len() <= PROCESSES, "{pids:?}");
        took
    });
    let at_most = match PROCESSES {
        1 => Duration::from_millis(1500),
        _ => Duration::from_secs(10),
    };
    // The machine may stand still in some of them.
    assert!(
        times.into_iter().any(|took| took < at_most),
        "100 requests that wait 0.3 s take longer"
    );
}

/// A client that leaves does not end a script that ignores it, nor the server.
#[test]
fn leaving_client() {
    let folder = TempDir::new("signs");
    let address = surus().address();
    let pids = || -> HashSet<String> {
        let ask = |_| Request::get("/pid.php?usleep=50000").send(address).text();
        together(PROCESSES * 5, ask).0.into_iter().collect()
    };
    let before = pids();
    let files: Vec<_> = (0..10)
        .map(|number| folder.path().join(number.to_string()))
        .collect();
    for file in &files {
        let target = format!("/signs.php?usleep=300000&file={}", file.display());
        let mut connection = Connection::open(address).expect("connect");
        connection
            .write(&Request::get(&target).bytes(address))
            .expect("write");
        // Not before the script has said that it ignores it: with other tests at work it may still wait in line.
        wait_for("no script began", || file.with_extension("begun").exists());
    }
    wait_for("a script ended with its client", || {
        files.iter().all(|file| file.exists())
    });
    assert!(pids().union(&before).count() <= PROCESSES);
}

/// A client that sends and is gone at once, as WordPress starts its cron: the script runs.
#[test]
fn fire_and_forget() {
    let folder = TempDir::new("signs");
    let surus = Surus::serve(&surus_tests::fixture("classic"))
        .argument("--mode")
        .argument(MODE)
        .start();
    for (number, body) in [None, Some("some=thing")].into_iter().enumerate() {
        let file = folder.path().join(number.to_string());
        let target = format!("/signs.php?usleep=10000&file={}", file.display());
        let mut request = Request::post(&target);
        if let Some(body) = body {
            request = request.body("application/x-www-form-urlencoded", body);
        }
        let mut connection = Connection::open(surus.address()).expect("connect");
        let bytes = request.bytes(surus.address());
        connection.write(&bytes).expect("write");
        drop(connection);
        wait_for("the script did not run", || file.exists());
    }
}
