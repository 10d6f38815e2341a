//! Requests that compute: PHP's own limit, time slices, and the bounds on requests at a time.

use std::thread;
use std::time::{Duration, Instant};

use surus_tests::http::{Request, Response};
use surus_tests::parallel::together;
use surus_tests::surus::{Mode, Surus};

use super::{ask, begin, expect_log, expect_notes, server, SOON};

const SECOND: Duration = Duration::from_secs(1);

/// `set_time_limit()` counts the time that the request computes. The others do not notice.
#[test]
fn a_time_limit_ends_a_loop() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "preempt_fibers = true").start();
        thread::scope(|scope| {
            let neighbour = scope.spawn(|| ask(&server, "case=sleep&seconds=2").expect(200));
            let start = Instant::now();
            let response = ask(&server, "case=limit&seconds=0&id=limit").expect(500);
            let took = start.elapsed();
            assert!(took > SECOND * 8 / 10, "{mode:?}: {took:?}");
            assert!(!response.text().contains("execution time"), "{mode:?}");
            neighbour.join().expect("the neighbour");
        });
        expect_log(&server, "Maximum execution time of 1 second exceeded");
        // Shutdown functions have no limit, as ever.
        expect_notes(&server, "limit", "shutdown 0;", SOON);
    }
}

#[test]
fn waiting_does_not_count_for_a_time_limit() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        let response = ask(&server, "case=parked_limit&seconds=2").expect(200);
        assert_eq!(response.text(), "not counted", "{mode:?}");
    }
}

/// One request's limit is not another's.
#[test]
fn a_time_limit_is_one_requests_own() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "preempt_fibers = true").start();
        thread::scope(|scope| {
            let other = scope.spawn(|| ask(&server, "case=compute&seconds=2.5").expect(200));
            ask(&server, "case=limit&seconds=0&id=limit").expect(500);
            other.join().expect("the other one");
        });
        // Nor the next one's, which may get the same fiber.
        ask(&server, "case=compute&seconds=1.5").expect(200);
    }
}

#[test]
fn max_execution_time_is_the_limit_of_each_request() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "\n[php]\nmax_execution_time = 1").start();
        for _ in 0..2 {
            ask(&server, "case=compute&seconds=0").expect(500);
            ask(&server, "case=parked_limit&seconds=1.2").expect(200);
        }
        expect_log(&server, "Maximum execution time of 1 second exceeded");
    }
}

/// The answers that `get` got while one request computed for a second, slowest first, and how long that one took.
fn while_computing(server: &Surus, get: impl Fn() -> Response) -> (Vec<Duration>, Duration) {
    thread::scope(|scope| {
        let computing = scope.spawn(|| {
            let start = Instant::now();
            ask(server, "case=compute&seconds=1").expect(200);
            start.elapsed()
        });
        thread::sleep(Duration::from_millis(50));
        let mut times = Vec::new();
        while !computing.is_finished() {
            let start = Instant::now();
            get();
            times.push(start.elapsed());
            thread::sleep(Duration::from_millis(5));
        }
        times.sort_by(|a, b| b.cmp(a));
        (times, computing.join().expect("the computing request"))
    })
}

/// An answer takes a few slices of the other's time; on a machine that has nothing else to do that is some 20 ms.
fn assert_served(what: &str, times: &[Duration], computed: Duration) {
    let median = times[times.len() / 2];
    println!(
        "{what}: {} answers, median {median:?}, slowest {:?}, computing {computed:?}",
        times.len(),
        times[0]
    );
    assert!(times.len() >= 10, "{what}: {} answers", times.len());
    assert!(median < computed / 15, "{what}: {median:?}");
    assert!(times[0] < computed / 2, "{what}: {times:?}");
}

#[test]
fn a_computing_isolate_gives_way_to_others() {
    let server = server(Mode::Classic, "").start();
    for query in ["case=pid", "case=sleep&seconds=0.001"] {
        let (times, computed) = while_computing(&server, || ask(&server, query).expect(200));
        assert_served(query, &times, computed);
    }
}

#[test]
fn a_computing_isolate_gives_way_to_files() {
    let server = server(Mode::Classic, "").start();
    let (times, computed) = while_computing(&server, || {
        Request::get("/static.txt")
            .send(server.address())
            .expect(200)
    });
    assert_served("files", &times, computed);
}

#[test]
fn computing_isolates_share_the_time() {
    for slice in ["10ms", "2ms"] {
        let server = server(Mode::Classic, &format!("preempt_after = \"{slice}\"")).start();
        let start = Instant::now();
        let (mut ends, _) = together(3, |_| {
            ask(&server, "case=work").expect(200);
            start.elapsed()
        });
        ends.sort();
        assert!(
            ends[0] > ends[2] / 2,
            "{slice}: one after the other: {ends:?}"
        );
    }
}

/// In a coroutine application what needs no PHP is served, and its own requests wait, unless asked for.
#[test]
fn a_computing_fiber_gives_way_when_asked_for() {
    let without = server(Mode::Coroutine, "").start();
    let (times, computed) = while_computing(&without, || {
        Request::get("/nowhere").send(without.address()).expect(404)
    });
    assert_served("404", &times, computed);
    let (times, computed) = while_computing(&without, || ask(&without, "case=pid").expect(200));
    assert!(times[0] > computed / 2, "served meanwhile: {times:?}");

    let with = server(Mode::Coroutine, "preempt_fibers = true").start();
    let (times, computed) = while_computing(&with, || ask(&with, "case=pid").expect(200));
    assert_served("fibers", &times, computed);
}

/// A request that has to wait for a computing fiber until its own deadline is not begun any more.
#[test]
fn a_deadline_counts_from_the_start_of_the_wait() {
    let server = server(Mode::Coroutine, "request_timeout = \"800ms\"").start();
    let id = "waiting";
    thread::scope(|scope| {
        let computing: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| ask(&server, "case=compute&seconds=0").expect(504)))
            .collect();
        thread::sleep(Duration::from_millis(200));
        let start = Instant::now();
        let response = ask(&server, &format!("case=wait&call=sleep&id={id}"));
        let took = start.elapsed();
        response.expect(504);
        assert!(took > SECOND / 2 && took < SECOND * 2, "{took:?}");
        for each in computing {
            each.join().expect("a computing request");
        }
    });
    ask(&server, "case=pid").expect(200);
}

fn expect_busy(response: Response) {
    assert_eq!(
        response.header("retry-after"),
        Some("1"),
        "{:?}",
        response.headers
    );
    response.expect(503);
}

#[test]
fn too_many_requests_in_flight_are_refused() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "max_requests_in_flight = 2\nmax_queue = 0").start();
        thread::scope(|scope| {
            let running: Vec<_> = (0..2)
                .map(|_| scope.spawn(|| ask(&server, "case=sleep&seconds=1").expect(200)))
                .collect();
            thread::sleep(Duration::from_millis(400));
            expect_busy(ask(&server, "case=pid"));
            for each in running {
                each.join().expect("a running request");
            }
        });
        ask(&server, "case=pid").expect(200);
    }
}

/// Classic requests for which there is no isolate wait in line, in order, as long as the bound allows.
#[test]
fn classic_requests_wait_in_line() {
    let app = "isolates = { min = 1, max = 1 }\nmax_requests_in_flight = 1\nmax_queue = 3";
    let server = server(Mode::Classic, app).start();
    thread::scope(|scope| {
        let start = Instant::now();
        let mut waiting = Vec::new();
        for number in 1..=3u32 {
            let server = &server;
            waiting.push(scope.spawn(move || {
                ask(server, "case=sleep&seconds=0.5").expect(200);
                (number, start.elapsed())
            }));
            thread::sleep(Duration::from_millis(60));
        }
        // The fourth leaves while it waits: nobody waits for it.
        let left = begin(&server, "case=sleep&seconds=0.5").expect("a connection");
        thread::sleep(Duration::from_millis(60));
        expect_busy(ask(&server, "case=pid"));
        drop(left);
        for each in waiting {
            let (number, took) = each.join().expect("a waiting request");
            let turn = Duration::from_millis(500) * number;
            assert!(took >= turn, "{number}: {took:?}");
            assert!(
                took < turn + Duration::from_millis(450),
                "{number}: {took:?}"
            );
        }
    });
    ask(&server, "case=pid").expect(200);
}

#[test]
fn waiting_in_line_has_an_end() {
    let app = "isolates = { min = 1, max = 1 }\nrequest_timeout = \"600ms\"";
    let server = server(Mode::Classic, app).start();
    thread::scope(|scope| {
        let end = scope.spawn(|| ask(&server, "case=end&call=finally_waits&id=end").expect(504));
        thread::sleep(Duration::from_millis(200));
        let start = Instant::now();
        // Its deadline passes while the first one is still in its finally block.
        expect_busy(ask(&server, "case=pid"));
        assert!(start.elapsed() < SECOND, "{:?}", start.elapsed());
        end.join().expect("the first one");
    });
}
