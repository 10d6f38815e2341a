//! What a request does after its response: `Surus\defer()`, in each mode.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{json, Value};
use surus_tests::http::{encode, Connection, Request};
use surus_tests::parallel::together;
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;
use surus_tests::waiting::{wait_for, wait_up_to};

use super::{ask, get, serve, MODES};

/// The file in which a request notes what it does.
struct Notes(PathBuf);

impl Notes {
    fn new(server: &Surus, name: &str) -> Notes {
        Notes(server.folder().join(name))
    }

    fn case(&self, case: &str) -> String {
        let file = encode(&self.0.display().to_string());
        format!("{case}&file={file}")
    }

    /// What was deferred goes on.
    fn go_on(&self) {
        fs::write(self.0.with_extension("go"), "").expect("a file");
    }

    fn lines(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        let lines = text.lines().map(serde_json::from_str);
        lines.filter_map(Result::ok).collect()
    }

    fn wait_for(&self, what: &[Value]) {
        wait_for(&format!("{what:?} is not noted"), || self.lines() == what);
    }
}

/// The log is written later than things happen.
fn expect_log(server: &Surus, text: &str, times: usize) {
    wait_up_to(
        Duration::from_secs(60),
        || server.log().matches(text).count() >= times,
        || format!("{text} is not logged {times} times: {}", server.log()),
    );
    assert_eq!(server.log().matches(text).count(), times);
}

#[test]
fn what_is_deferred_runs_after_the_response() {
    for mode in MODES {
        let server = serve(mode, &[]);
        let (one, other) = (Notes::new(&server, "one"), Notes::new(&server, "other"));
        for notes in [&one, &other] {
            // It waits for a file that is not there: the response was sent before.
            let text = get(&server, &notes.case("deferred")).expect(200).text();
            assert_eq!(
                text, "\"the response\" and of a shutdown function",
                "{mode:?}"
            );
            assert_eq!(notes.lines(), [Value::Null; 0], "{mode:?}");
        }
        for notes in [&other, &one] {
            notes.go_on();
            notes.wait_for(&[
                json!([true, true, true, true]),
                json!([null, "a task"]),
                json!("of a task"),
                json!("deferred later"),
            ]);
        }
        let exit = Notes::new(&server, "exit");
        let text = get(&server, &exit.case("deferred_exit")).expect(200).text();
        assert_eq!(text, "exit", "{mode:?}");
        exit.wait_for(&[json!("after exit")]);
        expect_log(&server, "Deferred by GET /, and failed:", 2);
        expect_log(&server, "Uncaught DomainException: it failed later", 2);
        assert_eq!(ask(&server, "race"), json!(["fast", true, "kept"]));
    }
}

#[test]
fn a_client_that_leaves_and_a_deadline_do_not_end_what_is_deferred() {
    for mode in MODES {
        let server = serve(
            mode,
            &["request_timeout=300ms", "cancel_on_disconnect=true"],
        );
        let late = Notes::new(&server, "late");
        late.go_on();
        let answer = get(&server, &(late.case("deferred_stays") + "&wait=1"));
        assert_eq!(answer.status, 504, "{mode:?}");
        late.wait_for(&[json!("it has stayed")]);
        let left = Notes::new(&server, "left");
        let target = format!("/?case={}&wait=1", left.case("deferred_stays"));
        let mut client = Connection::open(server.address()).expect("a connection");
        client
            .write(&Request::get(&target).bytes(server.address()))
            .expect("a request");
        thread::sleep(Duration::from_millis(50));
        drop(client);
        // The request's own deadline, which it would have missed, is no longer its.
        thread::sleep(Duration::from_millis(400));
        left.go_on();
        left.wait_for(&[json!("it has stayed")]);
    }
}

#[test]
fn what_is_deferred_has_a_time_limit_of_its_own() {
    for mode in MODES {
        let server = serve(mode, &["defer_timeout=200ms"]);
        for how in ["waits", "computes"] {
            let notes = Notes::new(&server, how);
            let case = format!("{}&{how}=1", notes.case("deferred_long"));
            assert_eq!(get(&server, &case).expect(200).text(), "\"long\"");
            notes.wait_for(&[json!("finally")]);
        }
        server.wait_for_in_flight(0);
        let over = "1 deferred by GET / did not run: the time was over";
        expect_log(&server, over, 2);
    }
}

#[test]
fn a_fatal_error_ends_what_is_deferred() {
    for mode in MODES {
        let server = serve(mode, &[]);
        let notes = Notes::new(&server, "fatal");
        for (how, status) in [("alone", 200), ("task", 200), ("before", 500)] {
            let case = format!("{}&{how}=1", notes.case("deferred_fatal"));
            assert_eq!(get(&server, &case).status, status, "{mode:?} {how}");
            assert_eq!(ask(&server, "race"), json!(["fast", true, "kept"]));
        }
        server.wait_for_in_flight(0);
        let undone = "deferred by GET / did not run";
        expect_log(
            &server,
            &format!("1 {undone}: a fatal error came before"),
            2,
        );
        expect_log(
            &server,
            &format!("2 {undone}: the request had a fatal error"),
            1,
        );
        assert_eq!(notes.lines(), [Value::Null; 0], "{mode:?}");
    }
}

/// Longer than for a request whose client has left.
#[test]
fn a_reload_and_a_stop_wait_for_what_is_deferred() {
    together(MODES.len(), |number| {
        let mode = MODES[number];
        let mut server = serve(mode, &[]);
        let reload = Notes::new(&server, "reload");
        get(&server, &reload.case("deferred_stays")).expect(200);
        let (code, text) = server.command(&["reload"]);
        assert_eq!(code, Some(0), "{mode:?}: {text}");
        let stop = Notes::new(&server, "stop");
        get(&server, &stop.case("deferred_stays")).expect(200);
        server.process().signal(Signal::SIGTERM);
        thread::sleep(Duration::from_millis(3500));
        assert!(server.process().ended().is_none(), "{mode:?}");
        for notes in [reload, stop] {
            notes.go_on();
            notes.wait_for(&[json!("it has stayed")]);
        }
        wait_for("the server does not end", || {
            server.process().ended().is_some()
        });
    });
}

#[test]
fn values_of_a_request_are_its_own_and_its_tasks() {
    for mode in MODES {
        let server = serve(mode, &[]);
        let names = ["one", "two", "three"];
        together(names.len(), |number| {
            let name = names[number];
            let notes = Notes::new(&server, name);
            let case = format!("{}&name={name}", notes.case("context"));
            let first = "of the first task";
            let all = json!([{"other": 1, "null": null, "name": name}]);
            let expected = json!([
                null,
                "none",
                [],
                name,
                [[first, [first]], name],
                all,
                [null, null],
                name
            ]);
            assert_eq!(ask(&server, &case), expected, "{mode:?}");
            notes.wait_for(&[json!(name)]);
        });
    }
}

#[test]
fn there_is_nothing_to_defer_after_without_a_request() {
    let server = serve(MODES[1], &[]);
    let notes = Notes::new(&server, "late");
    let late = get(&server, &notes.case("deferred_late")).text();
    let expected =
        "The request has ended: shutdown functions and destructors after it cannot defer anything";
    assert!(late.contains(expected), "{late}");
    let folder = TempDir::new("deferred");
    let script: &Path = &folder.file(
        "app.php",
        "<?php Surus\\defer(fn () => 1); return fn () => 1;",
    );
    let error = Surus::serve(script).boot_error();
    let expected = "Surus\\defer() is for code that serves a request";
    assert!(error.contains(expected), "{error}");
}
