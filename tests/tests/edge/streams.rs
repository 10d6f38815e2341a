//! Responses that are sent while PHP still makes them.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use surus_tests::http::{Connection, Request};
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

use super::{get, go_on, sent, server};

/// PHP waits for the client to have it.
#[test]
fn what_is_flushed_is_there_at_once() -> io::Result<()> {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        // Not in chunks, but as it is.
        let mut connection = sent(&server, "GET /steps?held=1 HTTP/1.0\r\n\r\n")?;
        let mut seen = Vec::new();
        while !seen.ends_with(b"\r\n\r\none;") {
            let more = connection.some()?;
            assert!(!more.is_empty(), "{}", String::from_utf8_lossy(&seen));
            seen.extend(more);
        }
        go_on(&server);
        assert_eq!(connection.rest()?, b"two;three;");
    }
    Ok(())
}

/// Much more than PHP may have: what is printed does not pile up, however slow the client is.
#[test]
fn what_is_printed_without_flush_is_streamed_too() {
    let config = "[app.app]\nmemory_limit = \"16M\"\nresponse_disk = \"1M\"\n";
    for mode in Mode::ISOLATES {
        let mut server = server(mode, config).start();
        get(&server, "/").expect(200);
        let before = server.process().memory();
        let request = "GET /print?kilobytes=102400 HTTP/1.1\r\nHost: a\r\n\r\n";
        let mut connection = sent(&server, request).expect("a connection");
        thread::sleep(Duration::from_secs(1));
        let growth = server.process().memory().saturating_sub(before);
        assert!(growth < 8 << 20, "{mode:?}: {growth}");
        let response = connection.response("GET").expect("an answer").expect(200);
        assert_eq!(response.body.len(), 100 << 20);
        assert!(response
            .body
            .chunks_exact(16)
            .all(|chunk| chunk == b"0123456789abcdef"));
    }
}

/// Their responses wait in files, and the isolates, or processes, are free.
#[test]
fn clients_that_do_not_read_do_not_occupy_isolates() -> io::Result<()> {
    let places = [
        (
            Mode::Classic,
            "isolates = { min = 1, max = 2 }\nmax_requests_in_flight = 2\n",
        ),
        (Mode::Process, "processes = 2\n"),
    ];
    for (mode, places) in places {
        let config = format!("[app.app]\n{places}max_queue = 8\nqueue_timeout = \"20s\"\n");
        let server = server(mode, &config).start();
        let request = "GET /print?kilobytes=16384 HTTP/1.1\r\nHost: a\r\n\r\n";
        let mut slow = Vec::new();
        for _ in 0..6 {
            slow.push(sent(&server, request)?);
            thread::sleep(Duration::from_millis(50));
        }
        let start = Instant::now();
        get(&server, "/").expect(200);
        assert!(start.elapsed() < Duration::from_secs(15), "{mode:?}");
        for mut connection in slow {
            let response = connection.response("GET")?.expect(200);
            assert_eq!(response.body.len(), 16 << 20);
            assert!(response
                .body
                .chunks_exact(16)
                .all(|chunk| chunk == b"0123456789abcdef"));
        }
    }
    Ok(())
}

/// Small pieces do not wait until the client has acknowledged the ones before (`TCP_NODELAY`), which takes it 40 ms.
#[test]
fn small_pieces_do_not_wait_for_each_other() {
    let folder = TempDir::new("pieces");
    let piece = "flush(); usleep(2000);";
    let app = format!(
        "<?php return function () {{ echo 'a'; {piece} echo 'b'; {piece} echo 'c'; return ''; }};"
    );
    let script = folder.file("app.php", &app);
    let server = Surus::serve(&script).start();
    let mut connection = Connection::open(server.address()).expect("a connection");
    let request = Request::get("/").bytes(server.address());
    // The first answers are acknowledged at once, since the connection is new. Some of the others are quick.
    let mut count = 0;
    wait_for("each waits for the one before", || {
        count += 1;
        let start = Instant::now();
        connection.write(&request).expect("sent");
        let response = connection.response("GET").expect("an answer");
        assert_eq!(response.text(), "abc");
        count > 20 && start.elapsed() < Duration::from_millis(30)
    });
}
