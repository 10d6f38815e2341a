//! Requests that were told to end and do not want to: five seconds for what they have to do, then it is over.

use std::thread;
use std::time::{Duration, Instant};

use surus_tests::surus::Mode;
use surus_tests::waiting::wait_for;

use super::{expect_log, expect_notes, notes, pid, server, time_out};

/// As in src/watch.rs.
const UNWIND_TIME: Duration = Duration::from_secs(5);

/// `request_timeout` of these servers.
const DEADLINE: Duration = Duration::from_millis(500);

const FORCED: &str = "it did not finish in time after it had been cancelled";

/// Sends the request and waits for its notes, and for its end by force if that is expected; the time that this took, and
/// whether it was by force. The time counts from before the request, so that it is never too short, however long the
/// machine leaves the test or the server without a turn.
fn end(mode: Mode, call: &str, expected: &str, forced: bool) -> (Duration, bool) {
    let server = server(mode, "request_timeout = \"500ms\"").start();
    let process = pid(&server);
    let start = Instant::now();
    let id = time_out(&server, &format!("case=end&call={call}"), call);
    let is_process = |other: String| mode == Mode::Process || other == process;
    assert!(is_process(pid(&server)), "{call}: while it ends");
    expect_notes(&server, &id, expected);
    if forced {
        expect_log(&server, FORCED);
    }
    let took = start.elapsed();
    assert!(is_process(pid(&server)), "{call}: after it has ended");
    assert_eq!(notes(&server, &id), expected, "{call}: it has gone on");
    (took, server.log().contains(FORCED))
}

fn ends_by_itself(call: &str, expected: &str) {
    for mode in Mode::ALL {
        // The machine may stand still for most of the time that it has.
        let mut ends = (0..4).map(|_| end(mode, call, expected, false));
        assert!(ends.any(|(_, forced)| !forced), "{mode:?} {call}");
    }
}

fn ends_by_force(call: &str, expected: &str) {
    for mode in Mode::ISOLATES {
        let (took, _) = end(mode, call, expected, true);
        assert!(took > DEADLINE + UNWIND_TIME, "{mode:?} {call}: {took:?}");
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
        let id = time_out(&server, "case=end&call=finally_loops", "loops");
        assert_eq!(notes(&server, &id), "begun;");
        pid(&server);
        expect_notes(&server, &id, "begun;shutdown;");
        pid(&server);
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

/// Less than a time slice, in which a tick may come; a limit of its own is not a reason to end it.
#[test]
fn a_shutdown_function_may_compute_after_its_request_was_stopped() {
    for mode in Mode::ISOLATES {
        let computes = |_| {
            let server = server(mode, "request_timeout = \"500ms\"").start();
            let id = time_out(&server, "case=end&call=shutdown_computes", "computes");
            expect_log(&server, FORCED);
            pid(&server);
            notes(&server, &id) == "begun;shutdown;computed;"
        };
        // A machine that stands still within the slice takes it away.
        assert!((0..4).any(computes), "{mode:?}");
    }
}

#[test]
fn a_loop_in_a_shutdown_function_is_stopped() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "request_timeout = \"500ms\"\npreempt_fibers = true").start();
        let id = time_out(&server, "case=end&call=shutdown_loops", "loops");
        expect_notes(&server, &id, "begun;shutdown;loops;");
        expect_log(&server, FORCED);
        pid(&server);
    }
}

/// What cannot be unwound is left for good, with its isolate; the worker is replaced.
#[test]
fn c_code_that_does_not_end_is_given_up() {
    thread::scope(|scope| {
        for mode in Mode::ALL {
            scope.spawn(move || {
                let server = server(mode, "request_timeout = \"500ms\"").start();
                let process = pid(&server);
                let start = Instant::now();
                let id = time_out(&server, "case=end&call=sqlite", "sqlite");
                pid(&server);
                expect_log(&server, "does not end: its isolate is given up");
                assert!(start.elapsed() > DEADLINE + 2 * UNWIND_TIME, "{mode:?}");
                assert_eq!(notes(&server, &id), "begun;", "{mode:?}");
                wait_for("the worker is not replaced", || pid(&server) != process);
            });
        }
    });
}
