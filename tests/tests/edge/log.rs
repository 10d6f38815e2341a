//! What is said about requests: the access log, their ids, and how the server is.

use surus_tests::http::Request;
use surus_tests::surus::{Mode, Surus};
use surus_tests::waiting::wait_for;

use super::{get, go_on, hold, server};

/// The lines of the access log, once there are so many.
fn lines(server: &mut Surus, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    wait_for("there are fewer lines", || {
        let output = server.process().stdout();
        // Each is whole, up to its end.
        lines = output
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n') && !line.contains("surus ready on"))
            .map(|line| line.trim_end().to_owned())
            .collect();
        lines.len() >= count
    });
    assert_eq!(lines.len(), count, "{lines:?}");
    lines
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
        drop(hold(&server, "left").expect("a connection"));
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
        let mut busy = hold(&server, "busy").expect("a connection");
        get(&server, "/").expect(503);
        for path in ["/livez", "/readyz"] {
            let answer = get(&server, path).expect(200);
            assert_eq!(answer.header("cache-control"), Some("no-store"));
        }
        go_on(&server);
        busy.response("GET").expect("an answer").expect(200);
    }
}

/// Its output is not a terminal: the lines are for programs.
#[test]
fn requests_are_logged_on_demand() {
    let mut server = server(Mode::Coroutine, "")
        .env("SURUS_ACCESS_LOG", "true")
        .start();
    let answer = get(&server, "/status?code=200");
    assert_eq!(answer.status, 200);
    let line = lines(&mut server, 1).remove(0);
    for part in [
        "\"client\":\"127.0.0.1\"",
        "\"method\":\"GET\"",
        "\"target\":\"/status?code=200\"",
        "\"status\":200",
    ] {
        assert!(line.contains(part), "{line}");
    }
}
