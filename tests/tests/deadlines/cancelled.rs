//! Wherever a request waits or computes: its deadline, or its client's leaving, ends it there. `catch` blocks do not
//! run, `finally` blocks, destructors and shutdown functions do.

use std::fs::{self, File};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use surus_tests::http2::{self, Client};
use surus_tests::postgres::Postgres;
use surus_tests::slow::SlowServer;
use surus_tests::surus::Mode;
use surus_tests::waiting::wait_up_to;

use super::{
    ask, begin, expect_log, expect_notes, expect_notes_within, notes, pid, server, time_out,
};

/// What a request waits for takes ten seconds.
const TOO_LATE: Duration = Duration::from_secs(9);

/// What ends the request.
#[derive(Clone, Copy, Debug)]
enum End {
    Deadline,
    Client,
}

fn port(call: &str) -> u16 {
    match call {
        "pdo_pgsql" => Postgres::shared().port(),
        "curl" | "file_get_contents" => SlowServer::shared().port(),
        _ => 0,
    }
}

fn check(mode: Mode, call: &str) {
    for end in [End::Deadline, End::Client] {
        check_end(mode, call, end);
    }
}

fn check_end(mode: Mode, call: &str, end: End) {
    let port = port(call);
    let timeout = match end {
        End::Deadline => "500ms",
        End::Client => "0",
    };
    let server = server(mode, &format!("request_timeout = \"{timeout}\"")).start();
    // Held until the test is over, for the call that waits for it.
    let lock = File::create(server.folder().join("lock")).expect("create the lock");
    let _lock = Flock::lock(lock, FlockArg::LockExclusive).expect("take the lock");
    let process = pid(&server);

    // Twice: what ends one request must not harm the next.
    for round in 0..2 {
        let id = format!("{call}-{round}-");
        let query = format!("case=wait&call={call}&port={port}");
        let (id, status) = match end {
            End::Deadline => {
                let start = Instant::now();
                let id = time_out(&server, &query, &id);
                let took = start.elapsed();
                assert!(took >= Duration::from_millis(500), "{call}: {took:?}");
                assert!(took < TOO_LATE, "{call}: {took:?}");
                (id, 2)
            }
            End::Client => {
                let query = format!("{query}&id={id}");
                let client = begin(&server, &query).expect("a connection");
                expect_notes(&server, &id, "begun;");
                thread::sleep(Duration::from_millis(200));
                assert_eq!(notes(&server, &id), "begun;", "{call}");
                drop(client);
                (id, 1)
            }
        };
        let expected = format!("begun;finally;destructor;shutdown {status};");
        expect_notes_within(TOO_LATE, &server, &id, &expected);
        let next = pid(&server);
        assert!(mode == Mode::Process || next == process, "{call}");
    }
}

/// A test for each call, in each mode; in processes PHP is told in another way, and does the same.
macro_rules! calls {
    ($($name:ident)*; $($in_processes:ident)*) => {
        mod classic {
            use super::*;
            $(#[test] fn $name() { check(Mode::Classic, stringify!($name)); })*
        }
        mod coroutine {
            use super::*;
            $(#[test] fn $name() { check(Mode::Coroutine, stringify!($name)); })*
        }
        mod process {
            use super::*;
            $(#[test] fn $in_processes() { check(Mode::Process, stringify!($in_processes)); })*
        }
    };
}

calls! {
    endless calls sleep usleep deep pdo_pgsql curl file_get_contents pipe full_pipe proc_close
    pclose socket_accept socket_recvfrom socket_write flock fiber loop_in_fiber generator callback sort
    output_callback destructor;
    endless sleep pdo_pgsql proc_close fiber output_callback
}

/// A program whose end its request did not live to see goes on, as it would without a parent, and is no zombie after it.
#[test]
fn a_program_that_is_not_waited_for_leaves_no_zombie() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "request_timeout = \"500ms\"").start();
        let process = pid(&server);
        let file = format!("/proc/{process}/task/{process}/children");
        let children = || fs::read_to_string(&file).expect("the worker's children");
        for call in ["proc_close", "pclose"] {
            time_out(&server, &format!("case=wait&call={call}"), call);
            assert_ne!(children(), "", "{mode:?}: {call}");
        }
        wait_up_to(3 * TOO_LATE, || children().is_empty(), children);
    }
}

/// Over HTTP/2 a client gives up one request, parked or running, and goes on with others.
#[test]
fn a_stream_of_http_2_that_is_reset_cancels_its_request() -> io::Result<()> {
    const CANCEL: [u8; 4] = [0, 0, 0, 8];
    for mode in Mode::ALL {
        let server = server(mode, "request_timeout = \"0\"").start();
        let mut client = Client::open(server.address())?;
        for (stream, call) in [(1, "sleep"), (5, "endless")] {
            client.get(stream, &format!("/?case=wait&call={call}&id={call}"))?;
            expect_notes(&server, call, "begun;");
            client.send(http2::RST_STREAM, 0, stream, &CANCEL)?;
            let expected = "begun;finally;destructor;shutdown 1;";
            expect_notes(&server, call, expected);
            client.get(stream + 2, "/?case=pid")?;
            assert_eq!(client.next(http2::DATA)?.stream, stream + 2);
        }
    }
    Ok(())
}

/// Neighbours of the isolate and of the process do not notice: they wait before that and after it.
#[test]
fn neighbours_of_a_cancelled_request_finish() {
    let check = |mode| {
        let server = server(mode, "request_timeout = \"7s\"").start();
        let mut late = begin(&server, "case=wait&call=sleep&id=late").expect("a connection");
        expect_notes(&server, "late", "begun;");
        // Their own deadlines are this much later, which is enough to let them go.
        thread::sleep(Duration::from_secs(5));
        let neighbours: Vec<_> = (0..10)
            .map(|number| {
                let id = format!("neighbour{number}");
                let query = format!("case=hold&id={id}");
                (begin(&server, &query).expect("a connection"), id)
            })
            .collect();
        for (_, id) in &neighbours {
            expect_notes(&server, id, "begun;");
        }
        late.response("GET").expect("an answer").expect(504);
        for (_, id) in &neighbours {
            fs::write(server.folder().join(format!("{id}.go")), "").expect("a sign");
        }
        for (mut neighbour, _) in neighbours {
            neighbour.response("GET").expect("an answer").expect(200);
        }
    };
    thread::scope(|scope| {
        for mode in Mode::ALL {
            scope.spawn(move || check(mode));
        }
    });
}

/// `ignore_user_abort(true)`: the wait is not cut short, and the request learns what has happened.
#[test]
fn a_request_may_go_on_without_its_client() {
    for mode in Mode::ALL {
        let server = server(mode, "request_timeout = \"30s\"").start();
        let client = begin(&server, "case=ignore&seconds=1&id=ignore").expect("a connection");
        expect_notes(&server, "ignore", "begun;");
        drop(client);
        let expected = "begun;slept;status 1 1;wrote;";
        expect_notes(&server, "ignore", expected);
    }
}

/// The same of one that computes all the while.
#[test]
fn a_computing_request_may_go_on_without_its_client() {
    for mode in Mode::ALL {
        let server = server(mode, "request_timeout = \"30s\"").start();
        let client = begin(&server, "case=ignore_computing&id=ignore").expect("a connection");
        expect_notes(&server, "ignore", "begun;");
        drop(client);
        expect_notes(&server, "ignore", "begun;status 1 1;");
    }
}

#[test]
fn a_stream_may_go_on_without_its_client() {
    for mode in Mode::ALL {
        let server = server(mode, "request_timeout = \"30s\"").start();
        let mut client = begin(&server, "case=ignore_streaming&id=stream").expect("a connection");
        client.some().expect("its beginning");
        drop(client);
        expect_notes(&server, "stream", "wrote 1;");
    }
}

/// What has to be done after the answer is done, as under php-fpm.
#[test]
fn a_shutdown_function_is_not_cut_short_by_the_client() {
    for mode in Mode::ALL {
        let server = server(mode, "request_timeout = \"30s\"").start();
        let client = begin(&server, "case=long_shutdown&id=shutdown").expect("a connection");
        expect_notes(&server, "shutdown", "begun;");
        drop(client);
        expect_notes(&server, "shutdown", "begun;slept 1;");
    }
}

/// Its deadline ends also a request that goes on without its client.
#[test]
fn a_request_without_client_has_a_deadline() {
    for mode in Mode::ALL {
        let server = server(mode, "request_timeout = \"700ms\"").start();
        let query = "case=ignore&seconds=20&id=ignore";
        let client = begin(&server, query).expect("a connection");
        expect_notes(&server, "ignore", "begun;");
        drop(client);
        expect_log(&server, "request timed out");
        thread::sleep(Duration::from_millis(600));
        assert_eq!(notes(&server, "ignore"), "begun;", "{mode:?}");
    }
}

/// A client that leaves while it is being sent a stream.
#[test]
fn a_stream_ends_with_its_client() {
    for mode in Mode::ALL {
        let server = server(mode, "request_timeout = \"30s\"").start();
        let mut client = begin(&server, "case=stream&id=stream").expect("a connection");
        client.some().expect("its beginning");
        thread::sleep(Duration::from_millis(100));
        assert_eq!(notes(&server, "stream"), "", "{mode:?}");
        drop(client);
        let expected = "finally;destructor;shutdown 1;";
        expect_notes(&server, "stream", expected);
    }
}

/// The deadline in the middle of a stream: the client can tell that it has not got the whole.
#[test]
fn a_stream_that_is_cut_off_looks_so() {
    for mode in Mode::ALL {
        let server = server(mode, "request_timeout = \"500ms\"").start();
        let mut count = 0;
        // Where the machine stands still its deadline is before its beginning.
        let error = loop {
            count += 1;
            assert!(count < 20, "{mode:?}: it does not begin");
            let query = format!("case=stream&id=stream{count}");
            let mut client = begin(&server, &query).expect("a connection");
            match client.response("GET") {
                Ok(response) => drop(response.expect(504)),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("closed before"), "{mode:?}: {error}");
        let expected = "finally;destructor;shutdown 2;";
        expect_notes(&server, &format!("stream{count}"), expected);
    }
}

/// A client that has stopped reading: the request waits for it, and its deadline ends that.
#[test]
fn a_request_whose_client_does_not_read_ends() {
    for mode in Mode::ALL {
        let server = server(mode, "request_timeout = \"700ms\"").start();
        let client = begin(&server, "case=flood&id=flood").expect("a connection");
        expect_log(&server, "request timed out");
        expect_notes(&server, "flood", "finally;");
        drop(client);
    }
}

/// The backtrace of a request over the threshold, once, whatever it does at that moment.
#[test]
fn slow_requests_are_logged_with_their_backtrace() {
    const FRAMES: [(&str, &[&str]); 4] = [
        (
            "sleep",
            &["sleep() [internal]", "wait_in() at ", "wait_noted() at "],
        ),
        ("endless", &["wait_in() at ", "wait_noted() at "]),
        ("deep", &["sleep() [internal]", "deep() at "]),
        (
            "fiber",
            &[
                "sleep() [internal]",
                "{closure",
                "Fiber::resume() [internal]",
                "wait_in() at ",
            ],
        ),
    ];
    let check = |mode| {
        for (call, frames) in FRAMES {
            let app = "request_timeout = \"3s\"\nslow_log = \"1s\"";
            let server = server(mode, app).start();
            ask(&server, &format!("case=wait&call={call}&id=slow")).expect(504);
            expect_notes(&server, "slow", "begun;finally;destructor;shutdown 2;");
            let log = server.log();
            assert_eq!(
                log.matches("slow request: GET /?case=wait").count(),
                1,
                "{log}"
            );
            let mut rest = log.as_str();
            for frame in frames {
                let at = rest
                    .find(frame)
                    .unwrap_or_else(|| panic!("{mode:?} {call}: no {frame:?} in its place: {log}"));
                rest = &rest[at..];
            }
            assert!(log.contains("waits.php:"), "{log}");
        }
    };
    thread::scope(|scope| {
        for mode in Mode::ALL {
            scope.spawn(move || check(mode));
        }
    });
}

/// A request that is slow in a call that cannot be left is known when it ends.
#[test]
fn slow_calls_that_cannot_be_left_are_logged_at_the_end() {
    for mode in Mode::ALL {
        let server = server(mode, "slow_log = \"200ms\"").start();
        ask(&server, "case=locked").expect(200);
        let expected = "slow request: GET /?case=locked took";
        expect_log(&server, expected);
        let log = server.log();
        assert_eq!(log.matches(expected).count(), 1, "{log}");
    }
}

#[test]
fn quick_requests_are_not_logged_as_slow() {
    for mode in Mode::ALL {
        let server = server(mode, "slow_log = \"8s\"").start();
        ask(&server, "case=sleep&seconds=0.05").expect(200);
        ask(&server, "case=locked").expect(200);
        let log = server.log();
        assert!(!log.contains("slow request"), "{log}");
    }
}
