//! Connections that are lost, results without room, reloads and workers that die.

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use surus_tests::http::Request;
use surus_tests::parallel::together;
use surus_tests::surus::Mode;
use surus_tests::waiting::wait_for;

use super::{ask, begin, options, server};

#[test]
fn killed_connections_are_replaced() {
    let server = server(Mode::Coroutine);
    for round in 0..5 {
        together(40, |number| {
            let token = format!("{round}-{number}");
            if number == 20 {
                ask(&server, "step=kill");
                return;
            }
            let found = ask(&server, &format!("step=safe&token={token}"));
            let lost = "Surus\\Postgres\\ConnectionError";
            let is_own = found["returned"]["token"] == token;
            assert!(is_own || found["class"] == lost, "{found}");
        });
        // Nothing is left of it.
        wait_for("it works again", || {
            ask(&server, "step=safe&token=x")["returned"]["token"] == "x"
        });
    }
}

/// The server says goodbye to a connection that nobody uses: nobody gets that for an answer.
#[test]
fn idle_connections_that_are_ended_are_not_used() {
    for mode in [Mode::Coroutine, Mode::Classic] {
        let server = server(mode);
        for round in 0..5 {
            ask(&server, &format!("step=echo&token={round}"));
            assert_ne!(ask(&server, "step=alone")["count"], 0);
            let found = ask(&server, &format!("step=safe&token={round}"));
            assert_eq!(found["returned"]["token"], round.to_string(), "{found}");
        }
    }
}

#[test]
fn a_result_without_room_is_an_exception_of_its_request() {
    for mode in [Mode::Coroutine, Mode::Classic] {
        let server = server(mode);
        together(4, |number| {
            if number == 0 {
                let found = ask(&server, "step=huge");
                let message = found["message"].as_str().expect("a message");
                assert!(message.contains("memory_limit"), "{found}");
            } else {
                let token = number.to_string();
                let query = format!("step=sleep&seconds=0.05&token={token}");
                assert_eq!(ask(&server, &query)["token"], token);
            }
        });
        assert_eq!(ask(&server, "step=echo&token=x")["token"], "x");
    }
}

/// Rows that fit, and the arrays that are made of them do not: a fatal error of that request.
#[test]
fn arrays_without_room_are_a_fatal_error() {
    for mode in [Mode::Coroutine, Mode::Classic] {
        let server = server(mode);
        for _ in 0..3 {
            let answer = Request::get("/?step=large&rows=100000").send(server.address());
            assert_eq!(answer.status, 500, "{}", answer.text());
            wait_for("it works again", || {
                Request::get("/?step=echo&token=x")
                    .send(server.address())
                    .status
                    == 200
            });
        }
        let log = server.log();
        assert!(log.contains("Allowed memory size"), "{log}");
    }
}

#[test]
fn a_reload_in_the_middle_loses_nothing() {
    let server = server(Mode::Coroutine);
    together(30, |number| {
        if number % 10 == 0 {
            assert_eq!(server.command(&["reload"]).0, Some(0));
        }
        for round in 0..10 {
            let token = format!("{round}-{number}");
            let query = format!("step=sleep&seconds=0.005&token={token}");
            assert_eq!(ask(&server, &query)["token"], token);
        }
    });
}

/// The database ends what a dead worker has begun, and the next worker has clients of its own.
#[test]
fn a_worker_may_die() {
    let server = options(Mode::Coroutine).start();
    let _client = begin(&server, "step=transaction&token=dead&seconds=600");
    wait_for("it runs", || ask(&server, "step=running")["count"] == 1);
    let worker = Pid::from_raw(server.workers()[0]);
    kill(worker, Signal::SIGKILL).expect("a worker");
    wait_for("another one answers", || {
        Request::get("/?step=echo&token=x")
            .try_send(server.address())
            .is_ok_and(|answer| answer.status == 200)
    });
    assert_eq!(ask(&server, "step=count&token=dead")["count"], 0);
}
