//! Workers that are replaced: because they have served for long enough, and because they do not answer any more.

use std::thread;
use std::time::Duration;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use surus_tests::http::Request;
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;
use surus_tests::waiting::{wait_for, wait_up_to};

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

fn workers(server: &Surus) -> Vec<Value> {
    server.status()["workers"].as_array().unwrap().clone()
}

fn until(server: &Surus, happened: impl Fn(&Surus) -> bool) {
    wait_up_to(
        Duration::from_secs(60),
        || happened(server),
        || server.log(),
    );
}

fn restarts(server: &Surus) -> u64 {
    workers(server)
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
        // The connections decide which of them is replaced first, and how often.
        until(&server, |server| {
            let now = server.workers();
            restarts(server) >= 2 && before.iter().all(|pid| !now.contains(pid))
        });
    });
    assert_eq!(seen.failures, [""; 0], "{}", server.log());
    assert!(server.log().contains(reason), "{}", server.log());
    let after = server.workers();
    assert!(before.iter().all(|pid| !after.contains(pid)));
}

/// However many have served for long enough: each of them serves until its successor does. Requests that take long are
/// finished by the old ones.
#[test]
fn workers_are_replaced_one_at_a_time() {
    let folder = TempDir::new("staggered");
    folder.file(
        "app.php",
        "<?php return function ($request) { usleep(300_000); return 'served'; };",
    );
    let server = Surus::serve(&folder.path().join("app.php"))
        .workers(3)
        .config("[server]\nmax_age = '1s'\n")
        .start();
    let ((), seen) = during(server.address(), 8, "/", || {
        until(&server, |server| {
            let found = workers(server);
            let count = |state: &str| found.iter().filter(|each| each["state"] == state).count();
            assert!(count("ready") >= 3, "{found:?}");
            assert!(count("starting") <= 1, "{found:?}");
            restarts(server) >= 6
        });
    });
    assert_eq!(seen.failures, [""; 0], "{}", server.log());
    assert!(seen.answered() > 20, "{seen:?}");
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

/// What keeps a class of its own in each isolate: its name tells them apart, and goes with it.
const NAMED: &str = "<?php
    $name = bin2hex(random_bytes(4));
    return function ($request) use ($name) {
        static $kept = [];
        if ($request->path() === '/leak') {
            usleep(20_000);
            $kept[] = str_repeat('x', 500_000);
        }
        return $name;
    };";

/// The isolates of the application are replaced, the workers are not, and nobody notices.
fn check_isolates(limits: &str, target: &str, reason: &str) {
    let folder = TempDir::new("isolates");
    folder.file("app.php", NAMED);
    let server = Surus::serve(&folder.path().join("app.php"))
        .workers(2)
        .config(&format!("[app.app]\nisolates = {{ {limits} }}\n"))
        .start();
    let before = server.workers();
    let ((), seen) = during(server.address(), 6, target, || {
        until(&server, |server| {
            workers(server)
                .iter()
                .all(|worker| worker["isolates_replaced"].as_u64() >= Some(2))
        });
    });
    assert_eq!(seen.failures, [""; 0], "{}", server.log());
    assert!(server.log().contains(reason), "{}", server.log());
    assert_eq!(server.workers(), before);
    // Some have been there for a second, in which the machine may have stood still.
    assert!(seen.bodies.len() > before.len(), "{:?}", seen.bodies);
}

#[test]
fn isolates_of_an_application_are_replaced_after_so_many_requests() {
    let reason = "the isolate of the application is replaced: it has served ";
    check_isolates("max_requests = 50", "/", reason);
}

#[test]
fn isolates_of_an_application_are_replaced_after_so_long() {
    let reason = "the isolate of the application is replaced: it has served for ";
    check_isolates("max_age = '1s'", "/", reason);
}

#[test]
fn isolates_of_an_application_are_replaced_above_so_much_memory() {
    let reason = "the isolate of the application is replaced: it uses ";
    check_isolates("max_memory = '20M'", "/leak", reason);
}

/// A version that does not boot any more leaves the old one in place; a reload is not undone by what began before it.
#[test]
fn an_isolate_that_cannot_be_replaced_goes_on() {
    let folder = TempDir::new("isolate-stays");
    folder.file("app.php", NAMED);
    let server = Surus::serve(&folder.path().join("app.php"))
        .config(
            "[app.app]\nisolates = { max_requests = 10 }\n[php]\n'opcache.revalidate_freq' = 0\n",
        )
        .start();
    folder.file("app.php", "<?php throw new Exception('not today');");
    let ((), seen) = during(server.address(), 4, "/", || {
        until(&server, |server| {
            server.log().contains("the application did not boot again")
        });
    });
    assert_eq!(seen.failures, [""; 0], "{}", server.log());
    assert_eq!(seen.bodies.len(), 1, "{:?}", seen.bodies);
    assert!(server.log().contains("not today"), "{}", server.log());
    folder.file("app.php", "<?php return fn () => 'new';");
    let (code, text) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(
        Request::get("/").send(server.address()).expect(200).text(),
        "new"
    );
}

#[test]
fn isolates_of_a_site_are_replaced() {
    for (limits, target) in [
        ("max_requests = 20", "/"),
        ("max_age = '200ms'", "/"),
        ("max_memory = '9M'", "/?strings=200"),
    ] {
        let folder = TempDir::new("site-isolates");
        // PHP keeps some of the chunks of memory that its last requests have needed.
        let script = "<?php usleep(2000); $strings = [];
            for ($i = 0; $i < ($_GET['strings'] ?? 0); $i++) { $strings[] = str_repeat('x', 100_000); }
            echo 'served';";
        folder.file("index.php", script);
        let server = Surus::serve(folder.path())
            .config(&format!("[app.app]\nisolates = {{ max = 4, {limits} }}\n"))
            .start();
        let before = server.workers();
        let ((), seen) = during(server.address(), 6, target, || {
            until(&server, |server| {
                workers(server)[0]["isolates_replaced"].as_u64() >= Some(10)
            });
        });
        assert_eq!(seen.failures, [""; 0], "{limits}: {}", server.log());
        assert_eq!(seen.bodies.keys().collect::<Vec<_>>(), ["served"]);
        assert_eq!(server.workers(), before);
        assert!(workers(&server)[0]["isolates"].as_u64() <= Some(4));
    }
}

/// Few requests hold little memory: an isolate below its limits stays.
#[test]
fn isolates_of_a_site_stay_below_their_limits() {
    let folder = TempDir::new("site-stays");
    folder.file("index.php", "<?php echo 'served';");
    let server = Surus::serve(folder.path())
        .config("[app.app]\nisolates = { max_requests = 30, max_memory = '64M', max_age = '1h' }\n")
        .start();
    for _ in 0..29 {
        Request::get("/").send(server.address()).expect(200);
    }
    assert_eq!(workers(&server)[0]["isolates_replaced"], 0);
    Request::get("/").send(server.address()).expect(200);
    wait_for("it is not replaced", || {
        workers(&server)[0]["isolates_replaced"] == 1
    });
}

#[test]
fn processes_are_replaced_after_so_many_requests() {
    for (mode, script) in [
        ("process", "<?php echo getmypid();"),
        ("coroutine", "<?php return fn () => (string) getmypid();"),
    ] {
        let folder = TempDir::new("worn-processes");
        folder.file("app.php", script);
        let server = Surus::serve(&folder.path().join("app.php"))
            .config(&format!(
                "[server]\nmax_requests = 20\n[app.app]\nmode = '{mode}'\nprocesses = 2\n"
            ))
            .start();
        let ((), seen) = during(server.address(), 4, "/", || {
            until(&server, |server| {
                let processes = workers(server);
                let mut processes = processes.iter().filter(|each| each["kind"] == "process");
                processes.all(|each| each["restarts"].as_u64() >= Some(2))
            });
        });
        assert_eq!(seen.failures, [""; 0], "{mode}: {}", server.log());
        assert!(
            server.log().contains("is replaced: it has served 2"),
            "{}",
            server.log()
        );
        // Two of each seat have served their time; who follows them has perhaps served nobody yet.
        let worn = seen.bodies.values().filter(|count| **count >= 20).count();
        assert!(worn >= 4, "{:?}", seen.bodies);
    }
}

#[test]
fn a_worker_that_stands_still_is_killed_and_replaced() {
    let folder = TempDir::new("stuck");
    folder.file("app.php", APP);
    let server = Surus::serve(&folder.path().join("app.php"))
        .config("[server]\nwatchdog = '2s'\n")
        .start();
    thread::sleep(Duration::from_millis(2100));
    let before = server.workers();
    // The default is a minute, and it computes for longer.
    let stuck = Request::get("/stuck").try_send(server.address());
    assert!(stuck.is_err(), "{stuck:?}");
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

/// As a virtual machine that is moved does: what a worker could not do meanwhile is not its fault. It has a question open, and is
/// not as quick to wake up as the master.
#[test]
fn a_machine_that_stands_still_kills_nobody() {
    let folder = TempDir::new("paused");
    folder.file("app.php", APP);
    let mut server = Surus::serve(&folder.path().join("app.php"))
        .config("[server]\nwatchdog = '8s'\n")
        .start();
    let before = server.workers();
    let worker = Pid::from_raw(before[0]);
    let master = Pid::from_raw(i32::try_from(server.process().id()).expect("a process id"));
    kill(worker, Signal::SIGSTOP).expect("stop the worker");
    // It looks every two seconds.
    thread::sleep(Duration::from_millis(2500));
    kill(master, Signal::SIGSTOP).expect("stop the master");
    thread::sleep(Duration::from_millis(9000));
    kill(master, Signal::SIGCONT).expect("continue");
    thread::sleep(Duration::from_millis(500));
    kill(worker, Signal::SIGCONT).expect("continue");
    Request::get("/").send(server.address()).expect(200);
    assert_eq!(server.workers(), before, "{}", server.log());
}
