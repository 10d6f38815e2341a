//! Requests that compute: PHP's own limit, time slices, and the bounds on requests at a time.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use surus_tests::http::{Connection, Request, Response};
use surus_tests::process::cpu_time;
use surus_tests::surus::{Mode, Surus};

use super::{ask, begin, expect_log, expect_notes, notes, pid, server, time_out};

const SECOND: Duration = Duration::from_secs(1);

/// `set_time_limit()` counts the time that the request computes. The others do not notice.
#[test]
fn a_time_limit_ends_a_loop() {
    for mode in Mode::ALL {
        let server = server(mode, "preempt_fibers = true\nrequest_timeout = \"0\"").start();
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
        expect_notes(&server, "limit", "shutdown 0;");
    }
}

#[test]
fn waiting_does_not_count_for_a_time_limit() {
    for mode in Mode::ALL {
        let server = server(mode, "").start();
        let response = ask(&server, "case=parked_limit&seconds=2").expect(200);
        assert_eq!(response.text(), "not counted", "{mode:?}");
    }
}

/// One request's limit is not another's.
#[test]
fn a_time_limit_is_one_requests_own() {
    for mode in Mode::ALL {
        let server = server(mode, "preempt_fibers = true\nrequest_timeout = \"0\"").start();
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
    for mode in Mode::ALL {
        let server = server(mode, "\n[php]\nmax_execution_time = 1").start();
        for _ in 0..2 {
            ask(&server, "case=compute&seconds=0").expect(500);
            ask(&server, "case=parked_limit&seconds=1.2").expect(200);
        }
        expect_log(&server, "Maximum execution time of 1 second exceeded");
    }
}

/// What is asked for while a request computes, for as long as the test lasts. An answer takes a few slices of its time,
/// and what it gets until the client wakes up: on a machine that has nothing else to do that is some 20 ms. Who has to
/// wait for its end has no answer.
fn assert_served_meanwhile(server: &Surus, what: &str, get: impl Fn() -> Response) {
    let pid = ask(server, "case=pid").expect(200).text();
    let id = new_id();
    let query = format!("case=compute&seconds=600&id={id}");
    let computing = begin(server, &query).expect("a request");
    expect_notes(server, &id, "begun;");
    let mut times: Vec<Duration> = (0..15)
        .map(|_| {
            let before = cpu_time(&pid);
            get();
            thread::sleep(Duration::from_millis(5));
            cpu_time(&pid).saturating_sub(before)
        })
        .collect();
    assert_eq!(notes(server, &id), "begun;", "{what}: it computes no more");
    drop(computing);
    times.sort();
    let median = times[times.len() / 2];
    println!("{what}: median {median:?} of {times:?}");
    assert!(median < SECOND / 4, "{what}: {times:?}");
}

/// What it asks for comes when a request that computes for a second has done so.
fn assert_served_afterwards(server: &Surus, get: impl Fn() -> Response) {
    let id = new_id();
    let query = format!("case=compute&seconds=1&id={id}");
    let _computing = begin(server, &query).expect("a request");
    expect_notes(server, &id, "begun;");
    get();
    assert_eq!(notes(server, &id), "begun;computed;", "served meanwhile");
}

fn new_id() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("computing{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

#[test]
fn a_computing_isolate_gives_way_to_others() {
    let server = server(Mode::Classic, "").start();
    for query in ["case=pid", "case=sleep&seconds=0.001"] {
        assert_served_meanwhile(&server, query, || ask(&server, query).expect(200));
    }
}

#[test]
fn a_computing_isolate_gives_way_to_files() {
    let server = server(Mode::Classic, "").start();
    assert_served_meanwhile(&server, "files", || {
        Request::get("/static.txt")
            .send(server.address())
            .expect(200)
    });
}

/// When the first of three has done all of the same work, the others have done about as much.
#[test]
fn computing_isolates_share_the_time() {
    for slice in ["10ms", "2ms"] {
        let server = server(Mode::Classic, &format!("preempt_after = \"{slice}\"")).start();
        thread::scope(|scope| {
            let all = [1, 2, 3].map(|number| {
                let query = format!("case=work&id=work{number}");
                let server = &server;
                scope.spawn(move || ask(server, &query).expect(200))
            });
            for number in 1..=3 {
                expect_notes(&server, &format!("work{number}"), "waits;");
            }
            fs::write(server.folder().join("go"), "").expect("a sign");
            for one in all {
                one.join().expect("work");
            }
        });
        let log = notes(&server, "work");
        let end = log.find("10 of 10;").expect("an end");
        for number in 1..=3 {
            let half = format!("work{number} 5 of 10;");
            let half = log.find(&half).expect("the half of its work");
            assert!(half < end, "{slice}: one after the other: {log}");
        }
    }
}

/// In a coroutine application what needs no PHP is served, and its own requests wait, unless asked for.
#[test]
fn a_computing_fiber_gives_way_when_asked_for() {
    let without = server(Mode::Coroutine, "").start();
    assert_served_meanwhile(&without, "404", || {
        Request::get("/nowhere").send(without.address()).expect(404)
    });
    assert_served_afterwards(&without, || ask(&without, "case=pid").expect(200));

    let with = server(Mode::Coroutine, "preempt_fibers = true").start();
    assert_served_meanwhile(&with, "fibers", || ask(&with, "case=pid").expect(200));
}

/// However many compute: who asks for little waits for a few turns of theirs, not for one of each. It is the worker's CPU
/// time that is measured.
#[test]
fn short_requests_go_before_those_that_compute() {
    const COMPUTING: usize = 60;
    const ASKED: usize = 8;
    for (mode, settings) in [
        (Mode::Classic, "isolates = { max = 100 }"),
        (Mode::Coroutine, "preempt_fibers = true"),
    ] {
        let settings = format!("{settings}\nrequest_timeout = \"120s\"");
        let server = server(mode, &settings).start();
        let pid = ask(&server, "case=pid").expect(200).text();
        let computing: Vec<_> = (0..COMPUTING)
            .map(|_| begin(&server, "case=compute&seconds=60&id=many").expect("a request"))
            .collect();
        expect_notes(&server, "many", &"begun;".repeat(COMPUTING));
        let mut times = [(); ASKED].map(|()| {
            let before = cpu_time(&pid);
            ask(&server, "case=pid").expect(200);
            cpu_time(&pid).saturating_sub(before)
        });
        println!("{mode:?}: {ASKED} answers beside {COMPUTING} that compute: {times:?}");
        // A turn of each is 0.6 s, and a new connection with a request had several of them. If it is the client that
        // stands still, they compute on.
        times.sort();
        assert!(times[ASKED / 2] < SECOND / 4, "{mode:?}: {times:?}");
        drop(computing);
    }
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
        assert!(took > SECOND / 2, "{took:?}");
        for each in computing {
            each.join().expect("a computing request");
        }
    });
    pid(&server);
}

/// A request that waits in PHP for [`let_go`], once it does.
fn hold(server: &Surus, id: &str) -> Connection {
    let connection = begin(server, &format!("case=hold&id={id}")).expect("a connection");
    expect_notes(server, id, "begun;");
    connection
}

/// Its answer is there then.
fn let_go(server: &Surus, id: &str, held: &mut Connection) {
    fs::write(server.folder().join(format!("{id}.go")), "").expect("a sign");
    held.response("GET").expect("an answer").expect(200);
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
        let mut running = [0, 1].map(|number| hold(&server, &format!("running{number}")));
        expect_busy(ask(&server, "case=pid"));
        for (number, each) in running.iter_mut().enumerate() {
            let_go(&server, &format!("running{number}"), each);
        }
        ask(&server, "case=pid").expect(200);
    }
}

/// Classic requests for which there is no isolate wait in line, in order, as long as the bound allows.
#[test]
fn classic_requests_wait_in_line() {
    let app = "isolates = { min = 1, max = 1 }\nmax_requests_in_flight = 1\nmax_queue = 3";
    let server = server(Mode::Classic, app).start();
    // Connections have their turns one after the other: what was sent before has been seen then.
    let settle = || {
        for _ in 0..3 {
            let file = Request::get("/static.txt").send(server.address());
            file.expect(200);
        }
    };
    let wait = |id: &str| {
        let query = format!("case=hold&id={id}");
        let connection = begin(&server, &query).expect("a connection");
        settle();
        connection
    };
    let mut line = [hold(&server, "line1"), wait("line2"), wait("line3")];
    // The fourth leaves while it waits: nobody waits for it.
    let left = wait("line4");
    expect_busy(ask(&server, "case=pid"));
    drop(left);
    settle();
    for (number, each) in (1..).zip(&mut line) {
        let id = format!("line{number}");
        expect_notes(&server, &id, "begun;");
        for later in number + 1..=4 {
            assert_eq!(notes(&server, &format!("line{later}")), "", "before {id}");
        }
        let_go(&server, &id, each);
    }
    ask(&server, "case=pid").expect(200);
    assert_eq!(notes(&server, "line4"), "");
}

#[test]
fn waiting_in_line_has_an_end() {
    let app = "isolates = { min = 1, max = 1 }\nrequest_timeout = \"600ms\"";
    let server = server(Mode::Classic, app).start();
    // The next one's deadline passes while this one is still in its finally block: after that it would be served.
    time_out(&server, "case=end&call=finally_waits_long", "end");
    expect_busy(ask(&server, "case=pid"));
}
