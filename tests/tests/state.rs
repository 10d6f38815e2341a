//! State that all workers share: `Surus\Store`, `Surus\Counter`, `Surus\Lock`.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::{json, Value};
use surus_tests::fixture;
use surus_tests::http::Request;
use surus_tests::parallel::together;
use surus_tests::surus::{Options, Surus};
use surus_tests::temp::TempDir;

/// A mode, and the script that is served in it.
const MODES: [(&str, &str); 5] = [
    ("classic", "index.php"),
    ("coroutine", "app.php"),
    ("worker", "worker.php"),
    ("snapshot", "worker.php"),
    ("process", "index.php"),
];

fn options((mode, script): (&str, &str)) -> Options {
    let options = Surus::serve(&fixture("state").join(script));
    let options = options.argument("--mode").argument(mode).workers(2);
    match mode {
        "process" => options.argument("--set").argument("processes=2"),
        _ => options,
    }
}

fn ask(server: &Surus, query: &str) -> Value {
    let target = format!("/?case={query}");
    let answer = Request::get(&target).send(server.address());
    answer.expect(200).json()
}

/// From two processes.
fn from_all(server: &Surus, query: &str, expected: &Value) {
    let mut readers = BTreeSet::new();
    let end = Instant::now() + Duration::from_secs(60);
    while readers.len() < 2 {
        let (read, _) = together(4, |_| ask(server, query));
        for read in read {
            assert_eq!(read[0], *expected, "by {}", read[1]);
            readers.insert(read[1].as_i64());
        }
        assert!(Instant::now() < end, "only {readers:?} answer");
    }
}

#[test]
fn values_are_those_of_all_workers_in_each_mode() {
    for mode in MODES {
        let server = options(mode).start();
        ask(&server, "set&value=one");
        from_all(&server, "get", &json!("one"));
        let (code, text) = server.command(&["reload"]);
        assert_eq!(code, Some(0), "{text}");
        from_all(&server, "get", &json!("one"));
        let (counted, _) = together(8, |_| ask(&server, "many&times=500"));
        assert!(counted.contains(&json!(4000)), "{mode:?}: {counted:?}");
        assert_eq!(ask(&server, "counted"), json!(4000), "{mode:?}");
    }
}

#[test]
fn operations() {
    for mode in MODES {
        let server = options(mode).start();
        let expected = json!([
            1, false, true, false, true, false, false, true, true, {"new": 5, "none": "default"}, true,
            42, 41, true, false, true, false, null, "x", null, null, 1,
            null, ["x"], false, false, null, "gone", false, true, 2
        ]);
        assert_eq!(ask(&server, "operations"), expected, "{mode:?}");
        let errors = ask(&server, "errors");
        let parts = [
            "Surus\\StoreException: The value of \"large\" is too large: one value may have a fiftieth of the setting shared_memory",
            "\"none\"",
            "Surus\\StoreException: The value of \"text\" is not an integer",
            "Surus\\StoreException: The sum for \"most\" is larger than an integer",
            "InvalidArgumentException: A time to live is more than 0 seconds",
            "Exception: Serialization of 'Closure' is not allowed",
            "InvalidArgumentException: A name has up to 64 bytes, and no NUL byte",
            "\"no key\"",
            "\"long key\"",
            "\"unreadable\"",
        ];
        assert_eq!(
            errors.as_array().map(Vec::len),
            Some(parts.len()),
            "{errors}"
        );
        for (at, part) in parts.iter().enumerate() {
            let text = errors[at].as_str().expect("a text");
            assert!(text.starts_with(part), "{mode:?}: {text}");
        }
    }
}

#[test]
fn full_memory_keeps_what_is_read_and_numbers() {
    let server = options(MODES[1])
        .argument("--set")
        .argument("shared_memory=1M")
        .start();
    let filled = ask(&server, "fill");
    assert_eq!(filled[0], true, "{filled}");
    let message = filled[1].as_str().expect("a message");
    assert!(
        message.contains("a quarter of the setting shared_memory"),
        "{message}"
    );
    let shared = &server.status()["shared_memory"];
    let number = |key: &str| shared[key].as_u64().expect("a number");
    assert!(
        number("entries") > 1000 && number("evictions") > 10_000,
        "{shared}"
    );
    assert!(
        number("hits") >= 20_000 && number("kept_bytes") > 100_000,
        "{shared}"
    );
    assert!(number("kept_bytes") < number("used_bytes"), "{shared}");
    assert!(number("used_bytes") < number("bytes"), "{shared}");
    assert!(number("bytes") < 1 << 20, "{shared}");
    let (_, text) = server.command(&["status"]);
    assert!(text.contains("shared memory: "), "{text}");
    let server = options(MODES[1])
        .argument("--set")
        .argument("shared_memory=0")
        .start();
    assert_eq!(ask(&server, "get")[0], "none");
    let refused = Request::get("/?case=set&value=1").send(server.address());
    assert_eq!(refused.status, 500);
    assert!(
        server
            .log()
            .contains("there is no shared memory (the setting shared_memory)"),
        "{}",
        server.log()
    );
}

#[test]
fn a_worker_that_is_killed_leaves_what_was_counted() {
    let server = options(MODES[0]).start();
    let mut seen = 0;
    for _ in 0..5 {
        let worker = server.workers()[0];
        std::thread::scope(|scope| {
            let target = "/?case=many&times=50000";
            let counts = scope.spawn(|| Request::get(target).try_send(server.address()));
            while ask(&server, "counted").as_u64().expect("a number") <= seen {}
            kill(Pid::from_raw(worker), Signal::SIGKILL).expect("a worker");
            let _ = counts.join();
        });
        let begun = Instant::now();
        let counted = loop {
            // The successor of the killed one may not serve yet.
            match Request::get("/?case=count").try_send(server.address()) {
                Ok(answer) => break answer.expect(200).json().as_u64().expect("a number"),
                Err(_) => assert!(begun.elapsed() < Duration::from_secs(30)),
            }
        };
        assert!(counted > seen);
        seen = counted;
    }
}

#[test]
fn one_request_at_a_time_has_a_lock() {
    for mode in MODES {
        let server = options(mode).start();
        let (locked, _) = together(40, |_| ask(&server, "locked"));
        let mut locked: Vec<_> = locked.iter().filter_map(Value::as_u64).collect();
        locked.sort_unstable();
        assert!(locked.into_iter().eq(1..=40), "{mode:?}");
        let late = ask(&server, "late&key=late");
        let message = "Others hold the lock \"late\" for longer than 0.05 seconds";
        assert_eq!(late, json!([message, 503]), "{mode:?}");
        assert_eq!(ask(&server, "try&key=late"), true, "{mode:?}");
    }
}

/// However it ends, and although what it holds would outlive it.
#[test]
fn a_lock_ends_with_its_request() {
    for mode in MODES {
        let server = options(mode).start();
        for end in ["", "exit", "throw", "fatal"] {
            let key = format!("ends-{end}");
            let target = format!("/?case=hold&key={key}&value={end}");
            let hold = || Request::get(&target).try_send(server.address());
            let (held, _) = together(3, |_| hold());
            assert!(held.iter().all(Result::is_ok), "{mode:?} {held:?}");
            let free = ask(&server, &format!("await&key={key}"));
            assert_eq!(free[0], true, "{mode:?} {end}");
            assert_eq!(ask(&server, &format!("counted&key=holds%20{key}")), 3);
        }
    }
}

#[test]
fn a_lock_of_a_killed_process_is_the_next_ones() {
    for mode in MODES {
        let server = options(mode).start();
        std::thread::scope(|scope| {
            let target = "/?case=hold&key=killed&value=wait";
            let holder = scope.spawn(|| Request::get(target).try_send(server.address()));
            while ask(&server, "counted&key=holds%20killed") != 1 {}
            // Before there is a second one that waits: each may have a process, and there are few.
            let pid = ask(&server, "get&key=holder")[0]
                .as_i64()
                .expect("a number") as i32;
            let waiter = scope.spawn(|| ask(&server, "await&key=killed"));
            kill(Pid::from_raw(pid), Signal::SIGKILL).expect("a process");
            let _ = holder.join().expect("a client");
            // The waiter may have been a request of the killed process.
            if let Ok(waited) = waiter.join() {
                assert_eq!(waited[0], true, "{mode:?}");
            }
        });
    }
}

#[test]
fn many_misses_are_one_computation() {
    for mode in MODES {
        let server = options(mode).start();
        let (values, _) = together(60, |_| ask(&server, "remember&key=key"));
        assert!(
            values.iter().all(|value| *value == 1),
            "{mode:?}: {values:?}"
        );
        assert_eq!(ask(&server, "counted&key=made%20key"), 1, "{mode:?}");
    }
}

#[test]
fn nothing_that_was_flushed_is_read() {
    for mode in MODES {
        let server = options(mode).start();
        let (answers, _) = together(3, |number| match number {
            0 => ask(&server, "flush&times=3000"),
            _ => ask(&server, "write&times=6000"),
        });
        assert_eq!(
            answers,
            [json!(3000), json!("fine"), json!("fine")],
            "{mode:?}"
        );
    }
}

/// The server's functions answer what those of the extension do.
#[test]
fn functions_of_apcu() {
    let folder = TempDir::new("without-apcu");
    let with = std::env::var("PHP_INI_SCAN_DIR").expect("the tests' extensions");
    let all = std::fs::read_to_string(Path::new(&with).join("extensions.ini")).expect("a list");
    let lines: Vec<_> = all.lines().filter(|line| !line.contains("apcu")).collect();
    assert!(lines.len() < all.lines().count());
    folder.file("extensions.ini", &lines.join("\n"));
    let answer = |directory: &Path| {
        let server = Surus::serve(&fixture("state/apcu.php"))
            .argument("--mode")
            .argument("classic")
            .env("PHP_INI_SCAN_DIR", &directory.to_string_lossy())
            .start();
        let answer = Request::get("/apcu.php").send(server.address());
        answer.expect(200).json()
    };
    let reference = answer(Path::new(&with));
    assert_eq!(reference[0], json!([true, false, false, 2, true, true]));
    assert_eq!(answer(folder.path()), reference);
}
