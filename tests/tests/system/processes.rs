//! What would change or end the process of all requests is refused.

use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::{json, Value};
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

use crate::{ask, serve};

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn a_request_cannot_change_or_end_the_server() {
    for mode in Mode::ALL {
        let server = serve(mode).workers(2).start();
        let address = server.address();
        let before = server.workers();
        let limits = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/limits")).ok();
        let limits_before: Vec<_> = before.iter().map(limits).collect();
        thread::scope(|scope| {
            let neighbours: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| ask(address, "wait")))
                .collect();
            for _ in 0..3 {
                let said = json(&ask(address, "on_the_server"));
                for (what, result) in said.as_object().expect("an object") {
                    let result = result.as_str().expect("a text");
                    assert!(
                        result.starts_with("false (") && result.contains("request"),
                        "{} {what}: {result}",
                        mode.name()
                    );
                }
            }
            for neighbour in neighbours {
                neighbour.join().expect("an answer");
            }
        });
        assert_eq!(server.workers(), before, "{}", mode.name());
        let limits_after: Vec<_> = before.iter().map(limits).collect();
        assert_eq!(limits_after, limits_before);
    }
}

#[test]
fn what_changes_nothing_for_others_works() {
    for mode in Mode::ALL {
        let server = serve(mode).start();
        assert_eq!(
            json(&ask(server.address(), "on_others")),
            json!({
                "is it there": "true",
                "a child": "[true,true]",
                "own user": "true",
                "own group": "true",
                "no nicer": "true",
                "programs": "\"ran\"",
            }),
            "{}",
            mode.name()
        );
    }
}

/// Else a lock would be held, and a connection not be at its end, until the program of another request has ended.
#[test]
fn programs_do_not_inherit_what_others_have_open() {
    let folder = TempDir::new("held");
    for mode in Mode::ALL {
        let server = serve(mode).start();
        let address = server.address();
        let file = folder.path().join(mode.name());
        // What the server itself was started with.
        let alone = json(&ask(address, "inherited"));
        thread::scope(|scope| {
            let held = scope.spawn(|| ask(address, &format!("hold&name={}", file.display())));
            // It is in the middle of its wait.
            wait_for("the file is there", || file.exists());
            thread::sleep(Duration::from_millis(500));
            assert_eq!(json(&ask(address, "inherited")), alone, "{}", mode.name());
            assert_eq!(held.join().expect("an answer"), "true", "{}", mode.name());
        });
    }
}

#[test]
fn a_server_has_no_functions_for_signals_and_forks() {
    for mode in Mode::ALL {
        let server = serve(mode).start();
        assert_eq!(ask(server.address(), "missing"), "[false,false,[]]");
    }
}

#[test]
fn the_command_line_has_them() {
    let folder = TempDir::new("signals");
    let script = folder.file(
        "signals.php",
        "<?php
        pcntl_async_signals(true);
        pcntl_signal(SIGUSR1, function () { echo 'signal '; });
        posix_kill(posix_getpid(), SIGUSR1);
        pcntl_signal(SIGALRM, function () { echo 'alarm '; });
        pcntl_alarm(1);
        sleep(2);
        echo posix_setrlimit(POSIX_RLIMIT_CORE, 0, 0) ? 'limit ' : 'no limit ';
        $child = pcntl_fork();
        if ($child === 0) {
            exit(3);
        }
        pcntl_waitpid($child, $status);
        echo pcntl_wexitstatus($status), ' ';
        pcntl_exec('/bin/echo', ['replaced']);",
    );
    let (code, text) = Surus::run(&["php", script.to_str().expect("UTF-8")]);
    assert_eq!(text, "signal alarm limit 3 replaced\n");
    assert_eq!(code, Some(0));
}
