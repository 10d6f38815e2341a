//! What happens when a process dies, or PHP uses up its C stack, which kills php-fpm's process: docs/internals/reliability.md says
//! what is promised.
#![forbid(unsafe_code)]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::Signal;
use surus_tests::fixture;
use surus_tests::http::{Connection, Request, Response};
use surus_tests::surus::{Mode, Options, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

const NEIGHBOURS: usize = 10;

/// From PHP 8.3 on it is an error of PHP's to use up the C stack, where it is not told to leave that alone.
const UNCHECKED: &str = "[php]\n\"zend.max_allowed_stack_size\" = -1\n";

fn server(mode: Mode) -> Options {
    Surus::serve(&mode.script(&fixture("process")))
        .mode(mode)
        .config(UNCHECKED)
}

fn try_ask(server: &Surus, query: &str) -> io::Result<Response> {
    Request::get(&format!("/?{query}")).try_send(server.address())
}

fn pid(server: &Surus) -> String {
    let response = try_ask(server, "case=pid").expect("an answer");
    response.expect(200).text()
}

fn is_parked(server: &Surus, id: impl std::fmt::Display) -> bool {
    server.folder().join(format!("{id}.parked")).exists()
}

/// What a request answers while its neighbours are parked in the same process, and what they answer.
fn among_neighbours(
    server: &Surus,
    query: &str,
) -> (io::Result<Response>, Vec<io::Result<Response>>) {
    let go = server.folder().join("go");
    let _ = fs::remove_file(&go);
    thread::scope(|scope| {
        let neighbours: Vec<_> = (0..NEIGHBOURS)
            .map(|number| scope.spawn(move || try_ask(server, &format!("case=park&id={number}"))))
            .collect();
        wait_for("they are not parked", || {
            (0..NEIGHBOURS).all(|number| is_parked(server, number))
        });
        let response = try_ask(server, query);
        fs::write(go, "").expect("a sign");
        let neighbours = neighbours.into_iter().map(|each| each.join());
        (
            response,
            neighbours
                .map(|answer| answer.expect("a neighbour"))
                .collect(),
        )
    })
}

/// A recursion that PHP code sees nothing of: the isolate is given up, nothing else. What it had open stays open, so the
/// worker is replaced: its other requests finish, another one takes the next.
fn check_recursion(mode: Mode, how: &str) {
    let server = server(mode).start();
    let mut process = pid(&server);
    for round in 0..2 {
        let (response, neighbours) = among_neighbours(&server, &format!("case=recurse&how={how}"));
        let response = response.expect("an answer").expect(500);
        assert!(!response.text().contains("stack"), "{}", response.text());
        for (number, neighbour) in neighbours.into_iter().enumerate() {
            let text = neighbour.expect("an answer").expect(200).text();
            assert_eq!(text, format!("{process} {number} whole"), "{how} {round}");
        }
        if how == "fiber" && Surus::php() >= 80300 {
            continue; // newer versions always look after the stacks of Fibers
        }
        let old = process.clone();
        wait_for("no successor", || {
            process = pid(&server);
            process != old
        });
        // Both accept for a moment: the next round must not meet the one that leaves.
        wait_for("the given up worker stays", || {
            !Path::new("/proc").join(&old).exists()
        });
    }
    let log = server.log();
    if how == "fiber" && Surus::php() >= 80300 {
        assert!(log.contains("Maximum call stack size"), "{log}");
        return;
    }
    assert!(log.contains("C stack overflow"), "{how}: {log}");
    assert!(
        log.contains("an isolate of it was given up"),
        "{how}: {log}"
    );
}

/// A test for each way, in each mode.
macro_rules! recursions {
    ($($name:ident)*) => {
        mod classic {
            use super::*;
            $(#[test] fn $name() { check_recursion(Mode::Classic, stringify!($name)); })*
        }
        mod coroutine {
            use super::*;
            $(#[test] fn $name() { check_recursion(Mode::Coroutine, stringify!($name)); })*
        }
    };
}

recursions! { closures fiber }

/// After the death of `process` its clients' connections are closed, and another process serves the next request.
fn assert_replaced(server: &Surus, process: &str, lost: Vec<io::Result<Response>>) {
    for answer in lost {
        assert!(answer.is_err(), "an answer of a dead process: {answer:?}");
    }
    assert_ne!(pid(server), process);
}

/// Where the stack ends in code that all requests share, it is the process that ends.
#[test]
fn a_stack_that_ends_in_libc_ends_the_worker() {
    for mode in Mode::ISOLATES {
        let server = server(mode).start();
        let process = pid(&server);
        let (response, mut lost) = among_neighbours(&server, "case=recurse&how=libc");
        lost.push(response);
        assert_replaced(&server, &process, lost);
        assert!(server.log().contains("the worker ends"), "{mode:?}");
    }
}

#[test]
fn a_worker_that_dies_is_replaced() {
    for mode in Mode::ISOLATES {
        for signal in [Signal::SIGKILL, Signal::SIGSEGV, Signal::SIGABRT] {
            let server = server(mode).start();
            let process = pid(&server);
            let query = format!("case=signal&signal={}", signal as i32);
            let (response, mut lost) = among_neighbours(&server, &query);
            lost.push(response);
            assert_replaced(&server, &process, lost);
            let log = server.log();
            assert!(log.contains(signal.as_str()), "{mode:?}: {log}");
        }
    }
}

/// OPcache is on, and what one worker has compiled is there for the others. The JIT is off. Scripts see Surus' name.
#[test]
fn workers_share_compiled_scripts() {
    const LOOK: &str = "$other = __DIR__ . '/other.php'; \
        $before = opcache_is_script_cached($other); \
        require $other; \
        $status = opcache_get_status(false); \
        $found = [getmypid(), PHP_SAPI, $status['opcache_enabled'], $status['jit']['on'] ?? false, $before];";
    for mode in Mode::ISOLATES {
        let folder = TempDir::new("compiled");
        let scripts = [
            folder.file("other.php", "<?php return 1;"),
            folder.file(
                "index.php",
                &format!("<?php {LOOK} echo json_encode($found);"),
            ),
            folder.file(
                "app.php",
                &format!("<?php return function () {{ {LOOK} return $found; }};"),
            ),
        ];
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        for script in scripts {
            // OPcache leaves files alone that are younger than two seconds.
            let file = fs::File::options().append(true).open(script);
            file.and_then(|file| file.set_modified(hour_ago))
                .expect("an older file");
        }
        let server = Surus::serve(&mode.script(folder.path()))
            .mode(mode)
            .workers(2)
            .start();
        let mut seen = HashMap::new();
        let start = Instant::now();
        while seen.len() < 2 {
            let found = Request::get("/").send(server.address()).expect(200).json();
            assert_eq!(found[1], "surus", "{mode:?}");
            assert_eq!(found[2], true, "{mode:?}: OPcache is off");
            assert_eq!(found[3], false, "{mode:?}: the JIT is on");
            let pid = found[0].as_i64().expect("a process id");
            let first = seen.is_empty();
            seen.entry(pid).or_insert_with(|| {
                assert_eq!(
                    found[4], !first,
                    "{mode:?}: compiled before, by the other one"
                );
            });
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "{mode:?}: one worker answers"
            );
        }
    }
}

/// A worker that keeps dying is replaced each time.
#[test]
fn a_worker_may_die_again_and_again() {
    let server = server(Mode::Classic).start();
    let mut seen = HashSet::new();
    for _ in 0..4 {
        assert!(seen.insert(pid(&server)), "a dead process answers");
        let dead = try_ask(&server, "case=signal&signal=9");
        assert!(dead.is_err(), "{dead:?}");
    }
    pid(&server);
}

/// A connection and the process at its other end.
fn connect(server: &Surus) -> (Connection, String) {
    let mut connection = Connection::open(server.address()).expect("a connection");
    let text = send(server, &mut connection, "case=pid").expect(200).text();
    (connection, text)
}

fn send(server: &Surus, connection: &mut Connection, query: &str) -> Response {
    let request = Request::get(&format!("/?{query}"));
    connection
        .write(&request.bytes(server.address()))
        .and_then(|()| connection.response("GET"))
        .expect("an answer")
}

#[test]
fn the_other_workers_do_not_notice() {
    for mode in Mode::ISOLATES {
        let server = server(mode).workers(2).start();
        let (mut one, first) = connect(&server);
        let (mut other, mut second) = connect(&server);
        wait_for("only one of two workers answers", || {
            if second == first {
                (other, second) = connect(&server);
            }
            second != first
        });
        thread::scope(|scope| {
            let neighbour = scope.spawn(|| send(&server, &mut other, "case=park&id=other"));
            wait_for("it is not parked", || is_parked(&server, "other"));
            let request = Request::get("/?case=signal&signal=9").bytes(server.address());
            one.write(&request).expect("sent");
            assert!(one.response("GET").is_err(), "{mode:?}");
            fs::write(server.folder().join("go"), "").expect("a sign");
            let text = neighbour.join().expect("a neighbour").expect(200).text();
            assert_eq!(text, format!("{second} other whole"), "{mode:?}");
        });
        let text = send(&server, &mut other, "case=pid").text();
        assert_eq!(text, second, "{mode:?}");
    }
}
