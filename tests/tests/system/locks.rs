//! A request that is parked below a C library's lock keeps the others from what it guards, and nothing else from going on.

use std::process::Command;
use std::time::Duration;

use surus_tests::fixture;
use surus_tests::http::Request;
use surus_tests::parallel::together;
use surus_tests::process::run;
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;

use crate::{ask, serve};

/// A server with the library `tests/fixtures/system/slow_lock.c`, of which each has one of its own.
fn with_library(mode: Mode, folder: &TempDir, config: &str) -> Surus {
    let library = folder.path().join(format!("{}.so", mode.name()));
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-fopenmp", "-o"])
        .arg(&library);
    compiler.arg(fixture("system/slow_lock.c"));
    compiler.arg("-l:libstdc++.so.6");
    run(compiler);
    serve(mode)
        .config(&format!("{config}\n[php]\n\"ffi.enable\" = \"1\"\n"))
        .env("SLOW_LOCK", library.to_str().expect("UTF-8"))
        .start()
}

#[test]
fn who_is_parked_keeps_its_locks() {
    let folder = TempDir::new("locks");
    for mode in Mode::ISOLATES {
        let server = with_library(mode, &folder, "");
        let address = server.address();
        for kind in [
            "once",
            "static",
            "plain",
            "recursive",
            "writers",
            "region",
            "critical",
            "unnamed",
            "openmp",
        ] {
            let (answers, _) = together(12, |_| ask(address, &format!("lock&name={kind}")));
            for answer in answers {
                assert_eq!(answer, format!("{kind}: 1"), "{}", mode.name());
            }
        }
        let (answers, _) = together(12, |_| ask(address, "lock&name=readers"));
        assert!(
            answers.iter().any(|answer| answer != "readers: 1"),
            "{}: readers share their lock: {answers:?}",
            mode.name()
        );
    }
}

#[test]
fn who_waits_for_a_lock_has_a_deadline_and_others_are_served() {
    let folder = TempDir::new("locks");
    for mode in Mode::ISOLATES {
        let server = with_library(mode, &folder, "[app.app]\nrequest_timeout = \"1s\"");
        let address = server.address();
        let long = |_| {
            Request::get("/?case=long_lock&name=plain")
                .send(address)
                .status
        };
        let (statuses, _) = together(8, |number| match number {
            0..4 => long(number),
            _ => {
                std::thread::sleep(Duration::from_millis(200));
                Request::get("/?case=pid").send(address).status
            }
        });
        assert_eq!(statuses, [504, 504, 504, 504, 200, 200, 200, 200]);
        // All of them have ended, and the lock is free.
        assert_eq!(ask(address, "lock&name=plain"), "plain: 1");
    }
}

/// What a library waits for may be another request's to do, on the same thread.
#[test]
fn a_sign_of_another_request_is_waited_for() {
    let folder = TempDir::new("locks");
    for mode in Mode::ISOLATES {
        let server = with_library(mode, &folder, "");
        let address = server.address();
        let (answers, _) = together(8, |number| match number {
            0..2 => ask(address, "wait_for_sign"),
            2..4 => ask(address, "wait_for_sign_until&name=20"),
            _ => {
                std::thread::sleep(Duration::from_millis(300));
                ask(address, "give_sign")
            }
        });
        assert_eq!(answers, ["1"; 8], "{}", mode.name());
        assert_eq!(ask(address, "wait_for_sign_until&name=1"), "0");
    }
}

/// Each waits 1.5 seconds for a thread that it has made.
#[test]
fn the_end_of_a_thread_is_waited_for_while_others_run() {
    let folder = TempDir::new("locks");
    for mode in Mode::ISOLATES {
        let server = with_library(mode, &folder, "");
        let address = server.address();
        let (answers, took) = together(4, |_| ask(address, "join"));
        assert_eq!(answers, ["1"; 4], "{}", mode.name());
        assert!(took < Duration::from_secs(5), "{}: {took:?}", mode.name());
    }
}

#[test]
fn a_wait_for_a_sign_that_never_comes_has_a_deadline() {
    let folder = TempDir::new("locks");
    for mode in Mode::ISOLATES {
        let server = with_library(mode, &folder, "[app.app]\nrequest_timeout = \"1s\"");
        let address = server.address();
        let (statuses, _) = together(4, |number| {
            if number == 0 {
                Request::get("/?case=wait_for_sign").send(address).status
            } else {
                std::thread::sleep(Duration::from_millis(200));
                Request::get("/?case=pid").send(address).status
            }
        });
        assert_eq!(statuses, [504, 200, 200, 200], "{}", mode.name());
        assert_eq!(ask(address, "give_sign"), "1");
    }
}

/// PHP leaves a library by a fatal error, and its lock is held by nobody who could give it back.
#[test]
fn a_lock_that_was_lost_is_had_by_the_next() {
    let folder = TempDir::new("locks");
    for mode in Mode::ISOLATES {
        let server = with_library(mode, &folder, "");
        let address = server.address();
        for _ in 0..3 {
            let lost = Request::get("/?case=lost_lock").send(address);
            assert_eq!(lost.status, 500, "{}", mode.name());
            assert_eq!(ask(address, "lock&name=plain"), "plain: 1");
        }
    }
}

#[test]
fn two_first_links_to_ldap() {
    let folder = TempDir::new("locks");
    let library = folder.path().join("slow_names.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library);
    compiler.arg(fixture("hooks/slow_names.c"));
    run(compiler);
    for mode in Mode::ISOLATES {
        let server = serve(mode)
            .env("LD_PRELOAD", library.to_str().expect("UTF-8"))
            .start();
        let (answers, _) = together(6, |_| ask(server.address(), "ldap"));
        for answer in answers {
            assert_eq!(answer, "Can't contact LDAP server", "{}", mode.name());
        }
    }
}

#[test]
fn connections_that_share_a_cache_of_sqlite() {
    let folder = TempDir::new("locks");
    for mode in Mode::ISOLATES {
        let server = serve(mode).start();
        let base = folder.path().join(mode.name());
        let case = format!("sqlite&name={}", base.display());
        assert_eq!(ask(server.address(), &case), "42");
        let (answers, _) = together(12, |_| ask(server.address(), &case));
        for answer in answers {
            assert_eq!(answer, "42", "{}", mode.name());
        }
    }
}
