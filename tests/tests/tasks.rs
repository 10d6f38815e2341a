//! Tasks: pieces of one request's work that wait at the same time (`Surus\all()` and its like), in each mode.
#![forbid(unsafe_code)]

#[path = "tasks/background.rs"]
mod background;
#[path = "tasks/deferred.rs"]
mod deferred;
#[path = "tasks/offload.rs"]
mod offload;
#[path = "tasks/script.rs"]
mod script;
#[path = "tasks/timers.rs"]
mod timers;

use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::{json, Value};
use surus_tests::fixture;
use surus_tests::http::{encode, Connection, Request, Response};
use surus_tests::parallel::together;
use surus_tests::postgres::Postgres;
use surus_tests::surus::Surus;
use surus_tests::waiting::wait_for;

const MODES: [(&str, &str); 4] = [
    ("classic", "index.php"),
    ("coroutine", "app.php"),
    ("worker", "worker.php"),
    ("process", "index.php"),
];

fn serve((mode, script): (&str, &str), settings: &[&str]) -> Surus {
    let mut options = Surus::serve(&fixture("tasks").join(script))
        .argument("--mode")
        .argument(mode)
        .env("POSTGRES", &Postgres::shared().port().to_string());
    for setting in settings {
        options = options.argument("--set").argument(*setting);
    }
    options.start()
}

fn get(server: &Surus, case: &str) -> Response {
    Request::get(&format!("/?case={case}")).send(server.address())
}

fn ask(server: &Surus, case: &str) -> Value {
    let text = get(server, case).expect(200).text();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{case}: {text}\n{}", server.log()))
}

/// What a case answers, with or without `//` comments on why.
fn expected() -> Vec<(&'static str, Value)> {
    let squares: serde_json::Map<_, _> = (0..12).map(|i| (format!("k{i}"), json!(i * i))).collect();
    let state = json!([[1, 1, 1], [[1, 2, 3], [3, 2, 1]], ["setstate"]]);
    let channel = json!([
        [
            0,
            1,
            2,
            3,
            4,
            5,
            "Nothing can be sent: the channel is closed"
        ],
        [0, 1, 2, 3, 4, 5],
        210
    ]);
    let held = "A task waits for a mutex that it holds";
    let cancelled = "The task was cancelled 0";
    let composite = "2 tasks have failed: x: RuntimeException: one; y: RuntimeException: two";
    vec![
        ("overlap", json!([["one", "two", "three", "release"], 4])),
        ("results", json!([squares, 4, [], ["a task"]])),
        (
            "failure",
            json!(["DomainException", "wrong", 0, "cases.php", ["a", "b"]]),
        ),
        (
            "any",
            json!(["good", [{"x": "one", "y": "two"}, composite, 0]]),
        ),
        ("race", json!(["fast", true, "kept"])),
        (
            "timeout",
            json!([
                "It was not done within 0.02 s, and was cancelled",
                0,
                true,
                "done"
            ]),
        ),
        (
            "cancel",
            json!([[cancelled, cancelled, cancelled], 2, 0, true]),
        ),
        ("scope", json!([true, true])),
        ("skipped", json!("complete")),
        (
            "nested",
            json!([
                [["first", null, "very deep"], ["first", null, "very deep"]],
                ["first", null, "very deep"]
            ]),
        ),
        ("output", json!(["abcd", true])),
        ("state", state),
        ("channel", channel),
        ("semaphore", json!([2, "next", "both free"])),
        ("mutex", json!([5, held, 0])),
        (
            "wait_group",
            json!([3, "More was done than was added to the wait group"]),
        ),
        ("handed_over", json!([7])),
        ("pool", json!([2, 6])),
        ("compute", json!(["begins", "ends", "other"])),
        ("uncaught", json!("fine")),
        ("left", json!("left")),
    ]
}

#[test]
fn tasks_wait_at_the_same_time() {
    for mode in MODES {
        let server = serve(mode, &[]);
        for (case, answer) in expected() {
            let target = server.folder().join(case);
            let case = match case {
                "left" => format!("left&file={}", encode(&target.display().to_string())),
                _ => case.to_owned(),
            };
            assert_eq!(ask(&server, &case), answer, "{mode:?} {case}");
            if case.starts_with("left") {
                let ended = fs::read_to_string(&target).ok();
                assert_eq!(ended.as_deref(), Some("ended"), "{mode:?}");
            }
        }
        let log = server.log();
        assert!(log.contains("nobody awaits this"), "{mode:?}: {log}");
        assert!(!log.contains("this is ignored"), "{mode:?}: {log}");
    }
}

#[test]
fn a_connection_serves_one_task_at_a_time() {
    for mode in MODES {
        let server = serve(mode, &[]);
        let answer = ask(&server, "shared_connection");
        let message = answer[0].as_str().unwrap_or_default();
        assert!(
            message.contains("PDO is in use by another task of the request")
                && message.contains("docs/concurrency.md"),
            "{mode:?}: {answer}"
        );
        assert_eq!(
            (&answer[1], &answer[2]),
            (&json!("mine"), &json!(2)),
            "{mode:?}"
        );
        let streams = ["persistent stream", "stream"];
        assert_eq!(
            ask(&server, "persistent"),
            json!([6, streams[0], [streams[1], streams[1]]]),
            "{mode:?}"
        );
    }
}

#[test]
fn what_ends_a_task_for_good_ends_the_request() {
    for mode in MODES {
        let server = serve(mode, &["request_timeout=20s"]);
        let exit = get(&server, "exit");
        assert_eq!(
            (exit.status, exit.text().as_str()),
            (200, "off and on"),
            "{mode:?}"
        );
        for case in ["fatal", "overflow", "abandoned", "fatal"] {
            let answer = get(&server, case);
            assert_eq!(answer.status, 500, "{mode:?} {case}: {}", answer.text());
            assert!(!answer.text().contains("not reached"), "{mode:?} {case}");
            assert_eq!(ask(&server, "race"), json!(["fast", true, "kept"]));
        }
    }
}

#[test]
fn a_request_that_must_end_ends_its_tasks() {
    for mode in MODES {
        let server = serve(
            mode,
            &["request_timeout=300ms", "cancel_on_disconnect=true"],
        );
        let file = server.folder().join("deadline");
        let target = |file: &std::path::Path| {
            let file = encode(&file.display().to_string());
            format!("/?case=left&wait=1&file={file}")
        };
        let answer = Request::get(&target(&file)).send(server.address());
        assert_eq!(answer.status, 504, "{mode:?}");
        wait_for("the tasks of a late request do not end", || file.exists());
        let file = server.folder().join("client");
        let mut client = Connection::open(server.address()).expect("a connection");
        client
            .write(&Request::get(&target(&file)).bytes(server.address()))
            .expect("a request");
        thread::sleep(Duration::from_millis(50));
        drop(client);
        wait_for("the tasks of a client that left do not end", || {
            file.exists()
        });
        assert_eq!(
            ask(&server, "race"),
            json!(["fast", true, "kept"]),
            "{mode:?}"
        );
    }
}

/// Its `finally` waits for ever: when nothing of the request may wait any more, nothing of the task may either.
#[test]
fn a_task_that_does_not_end_is_ended() {
    let servers: Vec<Surus> = MODES[..3]
        .iter()
        .map(|mode| serve(*mode, &["request_timeout=100ms"]))
        .collect();
    for server in &servers {
        assert_eq!(get(server, "end_twice").status, 504);
    }
    for server in &servers {
        server.wait_for_in_flight(0);
        assert_eq!(ask(server, "compute"), json!(["begins", "ends", "other"]));
    }
}

/// One of each request's tasks never waits: it keeps all others from running, those of its own request too.
#[test]
fn tasks_that_compute_for_ever_end_with_their_requests() {
    for mode in &MODES[..3] {
        let server = serve(*mode, &["request_timeout=300ms"]);
        let (answers, _) = together(4, |_| get(&server, "endless").status);
        assert_eq!(answers, [504; 4], "{mode:?}");
        server.wait_for_in_flight(0);
        let log = server.log();
        assert!(!log.contains("did not end in time"), "{mode:?}: {log}");
    }
}

#[test]
fn mistakes_have_clear_messages() {
    let server = serve(MODES[0], &[]);
    let of = |what: &str| format!("{what} in cases.php");
    let expected = [
        "TypeError: Surus\\all(): Argument #1 ($jobs) must have callables and tasks, but \"0\" is int",
        "ValueError: Surus\\all(): Argument #2 ($concurrency) must be at least 1, 0 given",
        "ValueError: Surus\\race(): Argument #1 ($jobs) must not be empty",
        "ValueError: Surus\\delay(): Argument #1 ($seconds) must be a time from 0 on, -1 given",
        "ValueError: Surus\\delay(): Argument #1 ($seconds) must be a time from 0 on, NAN given",
        "Error: This request has 1000 tasks that have not ended: give Surus\\all() a concurrency, or await some",
        "LogicException: A task awaits itself",
    ];
    assert_eq!(
        ask(&server, "errors"),
        json!(expected.map(of)),
        "{}",
        server.log()
    );
    let late = get(&server, "shutdown").text();
    assert!(late.contains("The request has ended"), "{late}");
    let folder = surus_tests::temp::TempDir::new("tasks");
    let script = folder.file(
        "app.php",
        "<?php Surus\\async(fn () => 1); return fn () => 1;",
    );
    let error = Surus::serve(&script).boot_error();
    assert!(
        error.contains("Tasks are for code that serves a request"),
        "{error}"
    );
}

/// A static property keeps them for the next request of a coroutine application.
#[test]
fn tasks_are_for_their_own_request() {
    let server = serve(MODES[1], &[]);
    thread::scope(|scope| {
        let first = scope.spawn(|| ask(&server, "foreign"));
        server.wait_for_in_flight(1);
        let task = "This is a task of another request";
        let semaphore = "A Surus\\Semaphore is for the tasks of the request that has made it: make one in each request";
        assert_eq!(
            ask(&server, "foreign"),
            json!([task, task, task, semaphore])
        );
        assert_eq!(first.join().expect("an answer"), json!([]));
    });
}

#[test]
fn tasks_write_to_a_slow_client_and_read_its_body() {
    for mode in MODES {
        let server = serve(mode, &[]);
        let mut client = Connection::open_narrow(4096, server.address()).expect("a connection");
        client
            .write(&Request::get("/?case=streams").bytes(server.address()))
            .expect("a request");
        thread::sleep(Duration::from_millis(50));
        let text = client.response("GET").expect("a response").text();
        for letter in ['a', 'b'] {
            assert_eq!(text.matches(letter).count(), 64 * 16_384, "{mode:?}");
        }
        let body = vec![b'x'; 300_000];
        let request = Request::post("/?case=body").body("text/plain", body);
        let hashes = request.send(server.address()).expect(200).json();
        assert_eq!(
            hashes,
            json!(["d408ed46ebcc326f9e7c6bb9c77af1cd"]),
            "{mode:?}"
        );
    }
}
