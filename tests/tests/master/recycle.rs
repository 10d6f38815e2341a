//! Workers that are replaced: because they have served for long enough, and because they do not answer any more.

use std::thread;
use std::time::{Duration, Instant};

use surus_tests::http::Request;
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;

use crate::load::during;

const APP: &str = "<?php return function ($request) {
    if ($request->path() === '/stuck') {
        // One call into C that computes and never waits: nothing can interrupt it.
        hash_pbkdf2('sha512', 'password', 'salt', 2_000_000_000);
    }
    static $kept = [];
    if ($request->path() === '/leak') {
        usleep(50_000); // about 100 MB a second: it is looked at once a second
        $kept[] = str_repeat('x', 1_000_000);
    }
    return 'served';
};";

fn restarts(server: &Surus) -> u64 {
    let status = server.status();
    let workers = status["workers"].as_array().unwrap();
    workers
        .iter()
        .map(|each| each["restarts"].as_u64().unwrap())
        .sum()
}

fn check_recycling(limit: &str, target: &str, reason: &str) {
    let folder = TempDir::new("recycle");
    folder.file("app.php", APP);
    let server = Surus::serve(&folder.path().join("app.php"))
        .workers(2)
        .config(&format!(
            "[server]\n{limit}\n[app.app]\nmemory_limit = '1G'\n"
        ))
        .start();
    let before = server.workers();
    let ((), seen) = during(server.address(), 6, target, || {
        let begun = Instant::now();
        // The connections decide which of them is replaced first, and how often.
        while restarts(&server) < 2 || before.iter().any(|pid| server.workers().contains(pid)) {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "{}",
                server.log()
            );
            thread::sleep(Duration::from_millis(50));
        }
    });
    assert_eq!(seen.failures, [""; 0], "{}", server.log());
    assert!(server.log().contains(reason), "{}", server.log());
    let after = server.workers();
    assert!(before.iter().all(|pid| !after.contains(pid)));
}

#[test]
fn workers_are_replaced_after_so_many_requests() {
    check_recycling("max_requests = 100", "/", "is replaced: it has served ");
}

#[test]
fn workers_are_replaced_after_so_long() {
    check_recycling("max_age = '1s'", "/", "is replaced: it has served for ");
}

#[test]
fn workers_are_replaced_above_so_much_memory() {
    check_recycling("max_memory = '150M'", "/leak", "is replaced: it uses ");
}

#[test]
fn a_worker_that_stands_still_is_killed_and_replaced() {
    let folder = TempDir::new("stuck");
    folder.file("app.php", APP);
    let server = Surus::serve(&folder.path().join("app.php"))
        .config("[server]\nwatchdog = '1s'\n")
        .start();
    thread::sleep(Duration::from_millis(1100));
    let before = server.workers();
    let begun = Instant::now();
    let stuck = Request::get("/stuck").try_send(server.address());
    assert!(stuck.is_err(), "{stuck:?}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(
        Request::get("/").send(server.address()).expect(200).text(),
        "served"
    );
    assert_ne!(server.workers(), before);
    assert!(
        server.log().contains("has not answered for"),
        "{}",
        server.log()
    );
}
