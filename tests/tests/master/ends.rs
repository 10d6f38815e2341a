//! The end of a server: in time, and with all of its processes.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use surus_tests::http::{Connection, Request};
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

const APP: &str = "<?php return function ($request) {
    match ($request->path()) {
        '/wait' => sleep(60),
        // One call into C, which nothing can interrupt.
        '/compute' => hash_pbkdf2('sha512', 'password', 'salt', 2_000_000_000),
        default => null,
    };
    return 'hello';
};";

fn begin(server: &Surus, path: &str) -> Connection {
    let mut connection = Connection::open(server.address()).unwrap();
    let request = Request::get(path).bytes(server.address());
    connection.write(&request).unwrap();
    connection
}

/// A request that takes longer than that is cancelled, and the server ends.
#[test]
fn a_drain_has_a_deadline() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let folder = TempDir::new("drain");
        folder.file("app.php", APP);
        let mut server = Surus::serve(folder.path())
            .config("[server]\ndrain_timeout = '1s'\n[app.app]\nrequest_timeout = '50s'\n")
            .start();
        let mut waiting = begin(&server, "/wait");
        server.wait_for_in_flight(1);
        let begun = Instant::now();
        kill(Pid::from_raw(server.process().id() as i32), signal).unwrap();
        let mut status = None;
        wait_for("it does not end", || {
            status = server.process().ended();
            status.is_some()
        });
        assert!(begun.elapsed() >= Duration::from_secs(1), "{signal}");
        let code = status.and_then(|status| status.code());
        assert_eq!(code, Some(0), "{}", server.log());
        assert!(waiting.response("GET").is_err(), "it had no answer");
        let log = server.log();
        assert!(
            log.contains("1 connections were closed before their requests ended"),
            "{log}"
        );
    }
}

/// Whatever they are doing.
#[test]
fn nothing_outlives_the_master() {
    let modes = [
        ("app.php", "mode = 'coroutine'"),
        ("app.php", "mode = 'coroutine'\nprocesses = 2"),
        ("index.php", "mode = 'classic'"),
        ("index.php", "mode = 'process'\nprocesses = 2"),
    ];
    for (script, mode) in modes {
        let folder = TempDir::new("orphans");
        folder.file("app.php", APP);
        folder.file("index.php", "<?php $_SERVER['REQUEST_URI'] === '/wait' ? sleep(60) : hash_pbkdf2('sha512', 'a', 'b', 2_000_000_000);");
        let mut server = Surus::serve(&folder.path().join(script))
            .workers(2)
            .config(&format!("[app.app]\n{mode}\n"))
            .start();
        let _waiting = begin(&server, "/wait");
        let _computing = begin(&server, "/compute");
        thread::sleep(Duration::from_millis(300));
        let master = server.process().id();
        let children =
            fs::read_to_string(format!("/proc/{master}/task/{master}/children")).unwrap();
        let children: Vec<&str> = children.split_whitespace().collect();
        assert!(children.len() >= 2, "{mode}: {children:?}");
        kill(Pid::from_raw(master as i32), Signal::SIGKILL).unwrap();
        // A zombie has ended; who reaps it is another matter.
        let alive = |pid: &&str| {
            fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
        };
        wait_for(&format!("{mode}: one of {children:?} is there"), || {
            !children.iter().any(alive)
        });
    }
}
