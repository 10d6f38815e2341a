//! Requests above the number that is worked on at a time wait in line.

use std::thread;
use std::time::{Duration, Instant};

use surus_tests::surus::Mode;

use super::{get, sent, server};

#[test]
fn requests_wait_in_line_first_come_first_served() {
    let config = "[app.app]\nmax_requests_in_flight = 1\nmax_queue = 3\n";
    for mode in Mode::ISOLATES {
        let server = server(mode, config).start();
        thread::scope(|scope| {
            let start = Instant::now();
            let mut waiting = Vec::new();
            for number in 1..=3u32 {
                let server = &server;
                waiting.push(scope.spawn(move || {
                    get(server, "/sleep?seconds=0.4").expect(200);
                    (number, start.elapsed())
                }));
                thread::sleep(Duration::from_millis(60));
            }
            let left = sent(
                &server,
                "GET /sleep?seconds=0.4 HTTP/1.1\r\nHost: a\r\n\r\n",
            );
            thread::sleep(Duration::from_millis(60));
            let response = get(&server, "/");
            assert_eq!(response.header("retry-after"), Some("1"));
            response.expect(503);
            drop(left);
            let mut before = Duration::ZERO;
            for each in waiting {
                let (number, took) = each.join().expect("a waiting request");
                let turn = Duration::from_millis(400) * number;
                assert!(took >= turn, "{number}: {took:?}");
                assert!(took > before, "{number}: {took:?} after {before:?}");
                before = took;
            }
        });
        get(&server, "/").expect(200);
    }
}

#[test]
fn the_wait_in_line_has_an_end() {
    let config =
        "[app.app]\nmax_requests_in_flight = 1\nmax_queue = 3\nqueue_timeout = \"200ms\"\n";
    for mode in Mode::ISOLATES {
        let server = server(mode, config).start();
        thread::scope(|scope| {
            let first = scope.spawn(|| get(&server, "/sleep?seconds=1").expect(200));
            thread::sleep(Duration::from_millis(200));
            let start = Instant::now();
            let response = get(&server, "/");
            assert_eq!(response.header("retry-after"), Some("1"));
            response.expect(503);
            let took = start.elapsed();
            assert!(took >= Duration::from_millis(200) && took < Duration::from_millis(600));
            first.join().expect("the first one");
        });
        get(&server, "/").expect(200);
    }
}
