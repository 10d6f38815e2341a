//! What is said about requests: the access log, their ids, and how the server is.

use std::thread;
use std::time::{Duration, Instant};

use surus_tests::http::Request;
use surus_tests::surus::{Mode, Surus};

use super::{get, sent, server};

/// The lines of the access log, once there are so many.
fn lines(server: &mut Surus, count: usize) -> Vec<String> {
    let start = Instant::now();
    loop {
        let output = server.process().stdout();
        let lines: Vec<String> = output
            .lines()
            .filter(|line| !line.starts_with("surus "))
            .map(str::to_owned)
            .collect();
        if lines.len() >= count || start.elapsed() > Duration::from_secs(5) {
            assert_eq!(lines.len(), count, "{output}");
            return lines;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_line_for_each_request() {
    for mode in Mode::ISOLATES {
        let mut server = server(mode, "[server]\naccess_log = true\nrequest_ids = true\n").start();
        Request::get("/large?kilobytes=64")
            .header("User-Agent", "a \"b\"")
            .header("X-Request-Id", "my-id")
            .send(server.address());
        get(&server, "/status?code=404");
        // One that leaves before it has its answer.
        let left = sent(&server, "GET /sleep?seconds=5 HTTP/1.1\r\nHost: a\r\n\r\n");
        thread::sleep(Duration::from_millis(200));
        drop(left);
        let lines: Vec<serde_json::Value> = lines(&mut server, 3)
            .iter()
            .map(|line| serde_json::from_str(line).expect(line))
            .collect();
        assert_eq!(lines[0]["target"], "/large?kilobytes=64");
        assert_eq!(
            (&lines[0]["status"], &lines[0]["bytes"]),
            (&200.into(), &65_536.into())
        );
        assert_eq!(lines[0]["client"], "127.0.0.1");
        assert_eq!(lines[0]["user_agent"], "a \"b\"");
        assert_eq!(lines[0]["request_id"], "my-id");
        assert_eq!(lines[0].get("broken_off"), None);
        assert_eq!(lines[1]["status"], 404);
        assert_eq!(
            (&lines[2]["status"], &lines[2]["broken_off"]),
            (&499.into(), &true.into())
        );
    }
    let mut server = server(Mode::Coroutine, "[server]\naccess_log = \"text\"\n").start();
    get(&server, "/");
    let line = lines(&mut server, 1).remove(0);
    assert!(
        line.starts_with("127.0.0.1 [") && line.contains("\"GET /\" 200 5B "),
        "{line}"
    );
}

#[test]
fn ids_are_accepted_made_and_passed_on() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for mode in Mode::ISOLATES {
        let server = server(mode, "[server]\nrequest_ids = true\n").start();
        let made = get(&server, "/vars");
        let id = made.header("x-request-id").expect("an id").to_owned();
        let seen = made.json();
        assert_eq!(seen["HTTP_X_REQUEST_ID"], id.as_str());
        let parent = seen["HTTP_TRACEPARENT"].as_str().expect("a trace");
        assert_eq!(parent.split('-').nth(1), Some(id.as_str()));
        assert_ne!(
            get(&server, "/vars").header("x-request-id"),
            Some(id.as_str())
        );
        let given = Request::get("/vars")
            .header("X-Request-Id", "abc-1")
            .header("traceparent", PARENT)
            .send(server.address());
        assert_eq!(given.header("x-request-id"), Some("abc-1"));
        assert_eq!(given.json()["HTTP_TRACEPARENT"], PARENT);
    }
    let server = server(Mode::Coroutine, "").start();
    assert_eq!(get(&server, "/vars").header("x-request-id"), None);
}

/// While PHP has its hands full.
#[test]
fn liveness_and_readiness_need_no_php() {
    let config = "[server]\nliveness = \"/livez\"\nreadiness = \"/readyz\"\n[app.app]\nmax_requests_in_flight = 1\nmax_queue = 0\n";
    for mode in Mode::ISOLATES {
        let server = server(mode, config).start();
        thread::scope(|scope| {
            let busy = scope.spawn(|| get(&server, "/sleep?seconds=1").expect(200));
            thread::sleep(Duration::from_millis(300));
            get(&server, "/").expect(503);
            for path in ["/livez", "/readyz"] {
                let answer = get(&server, path).expect(200);
                assert_eq!(answer.header("cache-control"), Some("no-store"));
            }
            busy.join().expect("the one in flight");
        });
    }
}
