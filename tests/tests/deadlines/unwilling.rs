//! Requests that were told to end and do not want to: five seconds for what they have to do, then it is over.

use std::thread;
use std::time::{Duration, Instant};

use surus_tests::surus::Mode;

use super::{ask, expect_log, expect_notes, notes, server, SOON};

/// As in src/watch.rs.
const UNWIND_TIME: Duration = Duration::from_secs(5);

const FORCED: &str = "it did not finish in time after it had been cancelled";

/// Sends the request and waits for its notes; the time from its 504 to them.
fn end(mode: Mode, call: &str, expected: &str, forced: bool) -> Duration {
    let server = server(mode, "request_timeout = \"500ms\"").start();
    let pid = ask(&server, "case=pid").expect(200).text();
    ask(&server, &format!("case=end&call={call}&id={call}")).expect(504);
    let start = Instant::now();
    let neighbour = || ask(&server, "case=pid").expect(200).text();
    let is_pid = |other: String| mode == Mode::Process || other == pid;
    assert!(is_pid(neighbour()), "{call}: while it ends");
    expect_notes(&server, call, expected, UNWIND_TIME + SOON);
    if forced {
        expect_log(&server, FORCED);
    }
    let took = start.elapsed();
    assert!(is_pid(neighbour()), "{call}: after it has ended");
    assert_eq!(notes(&server, call), expected, "{call}: it has gone on");
    took
}

fn ends_by_itself(call: &str, expected: &str) {
    for mode in Mode::ALL {
        let took = end(mode, call, expected, false);
        assert!(took < UNWIND_TIME, "{mode:?} {call}: {took:?}");
    }
}

fn ends_by_force(call: &str, expected: &str) {
    for mode in Mode::ISOLATES {
        let took = end(mode, call, expected, true);
        assert!(took > UNWIND_TIME - SOON, "{mode:?} {call}: {took:?}");
    }
}

#[test]
fn a_finally_block_may_wait() {
    ends_by_itself("finally_waits", "begun;slept in finally;shutdown;");
}

#[test]
fn a_finally_block_may_not_wait_for_ever() {
    ends_by_force("finally_waits_long", "begun;shutdown;");
}

#[test]
fn a_loop_in_a_finally_block_is_stopped() {
    for mode in Mode::ISOLATES {
        // In a coroutine application its own requests wait for a fiber that computes.
        let server = server(mode, "request_timeout = \"500ms\"\npreempt_fibers = true").start();
        ask(&server, "case=end&call=finally_loops&id=loops").expect(504);
        assert_eq!(notes(&server, "loops"), "begun;");
        ask(&server, "case=pid").expect(200);
        expect_notes(&server, "loops", "begun;shutdown;", UNWIND_TIME + SOON);
        ask(&server, "case=pid").expect(200);
    }
}

/// `return` in a finally block drops an exception: not this one.
#[test]
fn returning_from_a_finally_block_does_not_help() {
    ends_by_itself("finally_returns", "begun;finally;went on;shutdown;");
}

#[test]
fn throwing_in_a_finally_block_does_not_help() {
    ends_by_itself("finally_throws", "begun;caught;shutdown;");
}

#[test]
fn a_loop_around_such_a_block_does_not_help() {
    ends_by_itself("stubborn", "begun;shutdown;");
}

#[test]
fn a_shutdown_function_may_not_wait_for_ever() {
    ends_by_force("shutdown_waits", "begun;shutdown;waits;");
}

#[test]
fn a_loop_in_a_shutdown_function_is_stopped() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "request_timeout = \"500ms\"\npreempt_fibers = true").start();
        ask(&server, "case=end&call=shutdown_loops&id=loops").expect(504);
        expect_notes(&server, "loops", "begun;shutdown;loops;", SOON);
        expect_log(&server, FORCED);
        ask(&server, "case=pid").expect(200);
    }
}

/// What cannot be unwound is left for good, with its isolate; the worker is replaced.
#[test]
fn c_code_that_does_not_end_is_given_up() {
    thread::scope(|scope| {
        for mode in Mode::ALL {
            scope.spawn(move || {
                let server = server(mode, "request_timeout = \"500ms\"").start();
                let pid = ask(&server, "case=pid").expect(200).text();
                ask(&server, "case=end&call=sqlite&id=sqlite").expect(504);
                let start = Instant::now();
                ask(&server, "case=pid").expect(200);
                expect_log(&server, "does not end: its isolate is given up");
                assert!(start.elapsed() > 2 * UNWIND_TIME - SOON, "{mode:?}");
                assert_eq!(notes(&server, "sqlite"), "begun;", "{mode:?}");
                while ask(&server, "case=pid").expect(200).text() == pid {
                    assert!(
                        start.elapsed() < 6 * UNWIND_TIME,
                        "{mode:?}: {}",
                        server.log()
                    );
                    thread::sleep(Duration::from_millis(20));
                }
            });
        }
    });
}
