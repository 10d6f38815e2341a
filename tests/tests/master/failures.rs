//! Reloads, upgrades and kills under constant load. Reloads and upgrades fail no request; a kill fails only what that
//! worker held.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use surus_tests::http::Request;
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

use crate::load::during;

const APP: &str = "<?php return function ($request) { usleep(2000); return 'served'; };";
const CLIENTS: usize = 8;

/// Who waits for a worker that is not there waits for longer.
const LONG: Duration = Duration::from_secs(10);

fn server(folder: &TempDir, workers: usize) -> Surus {
    folder.file("app.php", APP);
    Surus::serve(folder.path()).workers(workers).start()
}

#[test]
fn twenty_reloads_fail_no_request() {
    let folder = TempDir::new("reloads");
    let server = server(&folder, 2);
    let ((), seen) = during(server.address(), CLIENTS, "/", || {
        for _ in 0..20 {
            let (code, text) = server.command(&["reload"]);
            assert_eq!(code, Some(0), "{text}");
            thread::sleep(Duration::from_millis(20));
        }
    });
    assert_eq!(seen.failures, [""; 0]);
    assert!(seen.answered() > 100, "{seen:?}");
    assert_eq!(server.status()["reloads"]["done"], 20);
}

/// Two clients at a time may be inside of a worker that dies; nobody else notices, and nobody waits for long.
#[test]
fn a_kill_fails_only_what_that_worker_held() {
    let folder = TempDir::new("kills");
    let server = server(&folder, 3);
    let kills = 20;
    let ((), seen) = during(server.address(), CLIENTS, "/", || {
        for _ in 0..kills {
            let workers = server.workers();
            kill(Pid::from_raw(workers[0]), Signal::SIGKILL).unwrap();
            wait_for("it is not replaced", || server.workers().len() == 3);
        }
    });
    // A worker holds at most every client's one request, and on average a third of them.
    assert!(
        seen.failures.len() <= kills * CLIENTS / 2,
        "{:?}",
        seen.failures
    );
    assert!(seen.answered() > 100, "{seen:?}");
    assert!(seen.slowest < LONG, "{seen:?}");
    let restarts: u64 = server.status()["workers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|worker| worker["restarts"].as_u64().unwrap())
        .sum();
    assert_eq!(restarts, kills as u64);
}

#[test]
fn three_upgrades_fail_no_request() {
    let folder = TempDir::new("upgrades");
    let server = server(&folder, 2);
    let mut masters = vec![server.status()["pid"].as_u64().unwrap()];
    let ((), seen) = during(server.address(), CLIENTS, "/", || {
        for _ in 0..3 {
            let (code, text) = server.command(&["upgrade"]);
            assert_eq!(code, Some(0), "{text}{}", server.log());
            // The old master is still there for its last requests.
            let old = masters[masters.len() - 1];
            let exe = format!("/proc/{old}/exe");
            wait_for("the old master does not end", || {
                !std::fs::metadata(&exe).is_ok_and(|_| !zombie(old))
            });
            masters.push(server.status()["pid"].as_u64().unwrap());
        }
    });
    assert_eq!(seen.failures, [""; 0], "{}", server.log());
    masters.dedup();
    assert_eq!(masters.len(), 4, "{masters:?}");
    let last = masters[3] as i32;
    kill(Pid::from_raw(last), Signal::SIGTERM).unwrap();
}

/// Who has upgraded means the new one, also while the old one has its last requests.
#[test]
fn the_successor_is_found_while_its_predecessor_drains() {
    let folder = TempDir::new("drains");
    folder.file(
        "app.php",
        "<?php return function ($request) {
            while ($request->path() === '/slow' && !file_exists(__DIR__ . '/go')) {
                touch(__DIR__ . '/begun');
                usleep(10_000);
                clearstatcache();
            }
            return 'served';
        };",
    );
    let server = Surus::serve(folder.path()).start();
    let address = server.address();
    let slow = thread::spawn(move || Request::get("/slow").send(address).expect(200));
    wait_for("no request", || folder.path().join("begun").exists());
    let old = server.status()["pid"].as_i64().expect("a process id");
    let (code, text) = server.command(&["upgrade"]);
    assert_eq!(code, Some(0), "{text}{}", server.log());
    let status = server.status();
    assert_ne!(status["pid"], old);
    assert_eq!(status["predecessor"], old);
    let (code, text) = server.command(&["status", "--json", "--pid", &old.to_string()]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(&format!("\"pid\": {old},")), "{text}");
    folder.file("go", "");
    slow.join().expect("the slow request");
    wait_for("the old one does not end", || {
        server.status()["predecessor"].is_null()
    });
    assert_eq!(server.command(&["stop"]).0, Some(0));
}

fn zombie(pid: u64) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}

#[test]
fn an_upgrade_to_what_does_not_start_changes_nothing() {
    let folder = TempDir::new("no-upgrade");
    let server = server(&folder, 1);
    let master = server.status()["pid"].clone();
    folder.file("app.php", "<?php throw new Exception('not today');");
    let (code, text) = server.command(&["upgrade"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("exited with 1"), "{text}");
    assert!(server.log().contains("not today"), "{}", server.log());
    assert_eq!(server.status()["pid"], master);
    folder.file("app.php", APP);
    let (code, text) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{text}");
}

/// A socket of a chosen name is the successor's only once that one serves.
#[test]
fn after_an_upgrade_that_has_failed_the_server_is_found_by_its_name() {
    let folder = TempDir::new("named");
    folder.file("app.php", APP);
    let socket = folder.path().join("control.sock");
    let named = socket.to_str().expect("a path").to_owned();
    let server = Surus::serve(&folder.path().join("app.php"))
        .argument("--set")
        .argument(format!("control={named}"))
        .start();
    let command = |name: &str| server.command(&[name, "--control", &named]);
    folder.file("app.php", "<?php throw new Exception('not today');");
    assert_eq!(command("upgrade").0, Some(1));
    assert_eq!(command("status").0, Some(0));
    folder.file("app.php", APP);
    let (code, text) = command("upgrade");
    assert_eq!(code, Some(0), "{text}");
    wait_for("the successor is not found", || {
        command("status").0 == Some(0)
    });
    assert_eq!(command("stop").0, Some(0));
    wait_for("it does not end", || !socket.exists());
}

/// The new binary may have read the code before it changed: it reloads when it serves.
#[test]
fn a_reload_during_an_upgrade_is_not_lost() {
    let folder = TempDir::new("both");
    let booting = "<?php touch(__DIR__ . '/booting');
        while (!file_exists(__DIR__ . '/go')) { usleep(10_000); clearstatcache(); }
        return fn () => ";
    folder.file("go", "");
    folder.file("app.php", &format!("{booting} 'old';"));
    let server = Surus::serve(folder.path()).start();
    let get = || Request::get("/").send(server.address()).expect(200).text();
    for file in ["go", "booting"] {
        std::fs::remove_file(folder.path().join(file)).expect("a file");
    }
    let master = server.status()["pid"].as_i64().expect("a process id") as i32;
    thread::scope(|scope| {
        let upgrade = scope.spawn(|| server.command(&["upgrade"]));
        wait_for("no new binary boots", || {
            folder.path().join("booting").exists()
        });
        folder.file("app.php", &format!("{booting} 'new';"));
        kill(Pid::from_raw(master), Signal::SIGHUP).expect("SIGHUP");
        // Until the master has seen it: it has had a turn then.
        assert_eq!(server.status()["pid"], master);
        folder.file("go", "");
        let (code, text) = upgrade.join().expect("the command");
        assert_eq!(code, Some(0), "{text}{}", server.log());
    });
    wait_for("it serves the old code", || get() == "new");
    let successor = server.status()["pid"].as_i64().expect("a process id") as i32;
    assert_ne!(successor, master);
    kill(Pid::from_raw(successor), Signal::SIGTERM).expect("SIGTERM");
}

/// A worker that cannot start again, since the code is broken by now: the others answer for it.
#[test]
fn a_seat_without_a_worker_is_kept_by_its_neighbours() {
    let folder = TempDir::new("kept");
    folder.file("app.php", APP);
    // What has changed is noticed at once.
    let server = Surus::serve(folder.path())
        .workers(2)
        .config("[php]\n'opcache.revalidate_freq' = 0\n")
        .start();
    folder.file("app.php", "<?php throw new Exception('not today');");
    let ((), seen) = during(server.address(), CLIENTS, "/", || {
        let workers = server.workers();
        wait_for("it answers nobody", || {
            server.status()["workers"][0]["requests_total"].as_u64() > Some(0)
        });
        kill(Pid::from_raw(workers[0]), Signal::SIGKILL).unwrap();
        thread::sleep(Duration::from_millis(1500));
        assert_eq!(server.workers(), [workers[1]]);
    });
    assert!(seen.failures.len() <= CLIENTS, "{:?}", seen.failures);
    assert!(seen.slowest < LONG, "{seen:?}");
    // It is shown with its numbers, between two attempts.
    let mut waiting = serde_json::Value::Null;
    wait_for("there is no attempt", || {
        let status = server.status();
        let mut workers = status["workers"].as_array().unwrap().iter();
        let found = workers.find(|worker| worker["state"] == "waiting");
        waiting = found.cloned().unwrap_or_default();
        found.is_some()
    });
    assert!(waiting["requests_total"].as_u64() > Some(0), "{waiting}");
    assert!(waiting["pid"].is_null(), "{waiting}");
    let (code, text) = server.command(&["status"]);
    assert_eq!(code, Some(0), "{text}");
    folder.file("app.php", APP);
    wait_for("it is not replaced", || server.workers().len() == 2);
}

/// A server whose answers are the process ids of its workers.
fn pids(folder: &TempDir, workers: usize) -> Surus {
    folder.file("app.php", "<?php return fn () => (string) getmypid();");
    Surus::serve(folder.path()).workers(workers).start()
}

fn pid(server: &Surus) -> i32 {
    let answer = Request::get("/").send(server.address()).expect(200);
    answer.text().parse().unwrap()
}

#[test]
fn every_worker_gets_connections() {
    let folder = TempDir::new("connections");
    let server = pids(&folder, 2);
    let seen: HashSet<i32> = (0..50).map(|_| pid(&server)).collect();
    assert_eq!(seen, server.workers().into_iter().collect());
    assert_eq!(seen.len(), 2);
}

#[test]
fn a_worker_that_dies_is_replaced() {
    let folder = TempDir::new("replaced");
    let mut server = pids(&folder, 1);
    let master = server.process().id();
    let child = || {
        let path = format!("/proc/{master}/task/{master}/children");
        let children = std::fs::read_to_string(path).unwrap_or_default();
        let first = children.split_whitespace().next();
        first.map(|pid| pid.parse::<i32>().unwrap())
    };
    thread::sleep(Duration::from_millis(1100));
    let first = child().expect("a worker");
    kill(Pid::from_raw(first), Signal::SIGKILL).unwrap();
    wait_for("there is no other worker", || {
        child().is_some_and(|pid| pid != first)
    });
    // Connects before the new worker is ready, and is served when it is.
    assert_eq!(Some(pid(&server)), child());
    kill(Pid::from_raw(master as i32), Signal::SIGTERM).unwrap();
    let mut status = None;
    wait_for("it does not end", || {
        status = server.process().ended();
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(0));
    let log = server.log();
    let mut lines = log
        .lines()
        .filter(|line| !line.contains("PHP runs as root"));
    let expected = "surus: worker 1 was killed by SIGKILL; starting another";
    assert_eq!((lines.next(), lines.next()), (Some(expected), None));
}
