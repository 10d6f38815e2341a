//! Calls that block the event loop are counted, listed and logged; what gives way is not.

use serde_json::Value;

use surus_tests::surus::{Mode, Surus};
use surus_tests::waiting::wait_for;

use crate::{ask, serve};

fn start(mode: Mode, app: &str) -> Surus {
    let ffi = "[php]\n\"ffi.enable\" = \"1\"\n";
    serve(mode)
        .workers(1)
        .config(&format!("[app.app]\n{app}\n{ffi}"))
        .start()
}

/// What the only worker says of itself.
fn worker(server: &Surus) -> Value {
    let mut worker = Value::Null;
    wait_for("there is no status", || {
        let (code, text) = server.command(&["status", "--json"]);
        let status: Value = serde_json::from_str(&text).expect("a status in JSON");
        worker = status["workers"][0].clone();
        code == Some(0) && worker["blocking_calls"].is_array()
    });
    worker
}

fn places(server: &Surus) -> Vec<String> {
    let worker = worker(server);
    let calls = worker["blocking_calls"].as_array().expect("a list").iter();
    calls
        .map(|call| format!("{} {}", call["place"], call["call"]))
        .collect()
}

#[test]
fn what_blocks_the_event_loop_is_named() {
    for mode in Mode::ISOLATES {
        let server = start(mode, "");
        for (case, function, call) in [
            ("stall_computing", "hash_pbkdf2() at ", "computing"),
            (
                "stall_waiting",
                "FFI::syscall() at ",
                "in the system call nanosleep()",
            ),
        ] {
            ask(server.address(), case);
            let found = places(&server);
            let is_it = |each: &&String| each.contains("stalls.php:") && each.contains(call);
            let found = found.iter().find(is_it);
            let found = found.unwrap_or_else(|| panic!("{mode:?} {case}: {:?}", places(&server)));
            // A function that is called through a handler of its own kind has no name.
            assert!(
                case == "stall_waiting" || found.contains(function),
                "{found}"
            );
            let said = format!("GET {} blocked the event loop for ", "/");
            let log = server.log();
            assert!(
                log.contains(&said) && log.contains(call),
                "{mode:?} {case}: {log}"
            );
            assert!(log.contains("stalls.php:"), "the backtrace: {log}");
        }
        let worker = worker(&server);
        assert!(
            worker["blocking_calls_total"].as_u64() >= Some(2),
            "{worker}"
        );
        assert!(worker["blocking_s"].as_f64() > Some(0.2), "{worker}");
        let (_, text) = server.command(&["status"]);
        assert!(text.contains("calls that blocked an event loop"), "{text}");
        assert!(text.contains("hash_pbkdf2() at "), "{text}");
    }
}

#[test]
fn code_that_gives_way_is_not_reported() {
    for mode in Mode::ISOLATES {
        let server = start(mode, "");
        for case in ["stall_in_php", "pid"] {
            ask(server.address(), case);
        }
        let found = places(&server);
        assert!(
            !found.iter().any(|each| each.contains("stalls.php:")),
            "{mode:?}: {found:?}"
        );
    }
}

#[test]
fn nothing_is_looked_for_without_a_threshold() {
    let server = start(Mode::Coroutine, "blocking_threshold = \"0s\"");
    ask(server.address(), "stall_computing");
    assert_eq!(worker(&server)["blocking_calls_total"], 0);
    assert!(
        !server.log().contains("blocked the event loop"),
        "{}",
        server.log()
    );
}
