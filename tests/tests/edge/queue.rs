//! Requests above the number that is worked on at a time wait in line.

use std::io;
use std::time::{Duration, Instant};

use surus_tests::surus::{Mode, Surus};

use super::{get, go_on, held_so_far, hold, sent, server};

/// Until the worker has seen what was sent, or closed, before: connections have their turns one after the other.
fn settle(server: &Surus) {
    for _ in 0..3 {
        get(server, "/livez").expect(200);
    }
}

#[test]
fn requests_wait_in_line_first_come_first_served() -> io::Result<()> {
    let config =
        "[server]\nliveness = \"/livez\"\n[app.app]\nmax_requests_in_flight = 1\nmax_queue = 3\n\
                  queue_timeout = \"60s\"\nrequest_timeout = \"60s\"\n";
    for mode in Mode::ISOLATES {
        let server = server(mode, config).start();
        let request = |name: &str| format!("GET /hold?name={name} HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut all = vec![hold(&server, "first")?];
        for name in ["second", "third"] {
            all.push(sent(&server, &request(name))?);
            settle(&server);
        }
        let left = sent(&server, &request("left"))?;
        settle(&server);
        let response = get(&server, "/");
        assert_eq!(response.header("retry-after"), Some("1"));
        response.expect(503);
        drop(left);
        settle(&server);
        assert_eq!(held_so_far(&server), "first;", "{mode:?}");
        go_on(&server);
        for each in &mut all {
            assert_eq!(each.response("GET")?.expect(200).text(), "held");
        }
        get(&server, "/").expect(200);
        assert_eq!(held_so_far(&server), "first;second;third;", "{mode:?}");
    }
    Ok(())
}

#[test]
fn the_wait_in_line_has_an_end() -> io::Result<()> {
    let config =
        "[app.app]\nmax_requests_in_flight = 1\nmax_queue = 3\nqueue_timeout = \"200ms\"\n";
    for mode in Mode::ISOLATES {
        let server = server(mode, config).start();
        let mut first = hold(&server, "first")?;
        let start = Instant::now();
        let response = get(&server, "/");
        assert_eq!(response.header("retry-after"), Some("1"));
        response.expect(503);
        let took = start.elapsed();
        // Ten seconds are the default.
        assert!(took >= Duration::from_millis(200) && took < Duration::from_secs(8));
        go_on(&server);
        first.response("GET")?.expect(200);
        get(&server, "/").expect(200);
    }
    Ok(())
}
