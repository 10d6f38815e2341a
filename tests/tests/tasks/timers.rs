//! Timers of an application.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use surus_tests::fixture;
use surus_tests::http::Request;
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

/// The file in which timers note what they do.
pub(super) struct Notes(pub(super) PathBuf);

impl Notes {
    pub(super) fn new(folder: &TempDir) -> Notes {
        Notes(folder.path().join("notes"))
    }

    /// Which process has noted what.
    fn lines(&self) -> Vec<(i32, String)> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines
            .map(|(pid, what)| (pid.parse().expect("a process id"), what.to_owned()))
            .collect()
    }

    pub(super) fn count(&self, what: &str) -> usize {
        self.lines().iter().filter(|line| line.1 == what).count()
    }

    /// Waits until it was noted so many times more.
    fn wait_for(&self, what: &str, more: usize) {
        self.reach(what, self.count(what) + more);
    }

    /// Waits until it was noted so many times.
    pub(super) fn reach(&self, what: &str, count: usize) {
        wait_for(&format!("{what} is not noted"), || {
            self.count(what) >= count
        });
    }

    fn last_process(&self) -> i32 {
        self.lines().last().expect("a line").0
    }
}

/// The timers in `surus status`, in whichever worker has them.
fn timers(server: &Surus) -> Vec<Value> {
    let status = server.status();
    let workers = status["workers"].as_array().expect("workers");
    let timers = workers
        .iter()
        .filter_map(|worker| worker["timers"].as_array());
    timers.flatten().cloned().collect()
}

#[test]
fn one_worker_runs_the_timers_and_another_one_when_it_dies() {
    let folder = TempDir::new("timers");
    let notes = Notes::new(&folder);
    let mut server = Surus::serve(&fixture("tasks").join("timers.php"))
        .workers(3)
        .env("NOTES", &notes.0.display().to_string())
        .start();
    notes.wait_for("fails", 1);
    // Its fatal error has ended the isolate: the others go on in the next one.
    for what in ["ends", "throws", "exits"] {
        notes.wait_for(what, 2);
    }
    let first = notes.last_process();
    kill(Pid::from_raw(first), Signal::SIGKILL).expect("a process");
    wait_for("no other worker runs the timers", || {
        notes.last_process() != first
    });
    notes.wait_for("ends", 3);
    let shown = timers(&server);
    assert_eq!(shown.len(), 6, "{shown:?}");
    for timer in &shown {
        let about = timer["timer"].as_str().expect("what it is");
        assert!(about.contains(" at timers.php:"), "{about}");
        if about.starts_with("cron 30 4 * * mon") {
            let next = timer["next_s"].as_f64().expect("a time");
            assert!(next > 0.0 && next <= 7.1 * 86_400.0, "{next}");
        }
    }
    assert_eq!(Request::get("/").send(server.address()).text(), "served");
    wait_for("an exception is not logged", || {
        let log = server.log();
        log.contains("A timer has failed: every 0.1 s at timers.php:")
            && log.contains("a timer is wrong")
    });
    let (_, text) = server.command(&["status"]);
    assert!(text.contains("every 0.05 s at timers.php:"), "{text}");
    server.process().signal(Signal::SIGTERM);
    wait_for("the server does not end", || {
        server.process().ended().is_some()
    });
    let lines = notes.lines();
    // Of one worker each, one after another; and the last one has ended.
    for pid in [first, notes.last_process()] {
        let own = lines.iter().filter(|line| line.0 == pid);
        let runs: Vec<&str> = own
            .map(|line| line.1.as_str())
            .filter(|what| matches!(*what, "begins" | "ends"))
            .collect();
        let is_cut = pid == first;
        for pair in runs.chunks(2) {
            assert!(pair == ["begins", "ends"] || is_cut, "{runs:?}");
        }
    }
    let at = lines.iter().rposition(|line| line.0 == first);
    let after = &lines[at.expect("a line") + 1..];
    assert!(after.iter().all(|line| line.0 != first));
    assert!(lines[..at.unwrap_or(0)].iter().all(|line| line.0 == first));
    assert_eq!(notes.count("cron"), 0);
    // What may have been the failure does not run again in the process that goes on.
    let fails = (first, "fails".to_owned());
    assert_eq!(lines.iter().filter(|line| **line == fails).count(), 1);
}

#[test]
fn a_reload_replaces_the_timers() {
    let folder = TempDir::new("timers");
    let notes = Notes::new(&folder);
    let script = |name: &str| {
        let file = notes.0.display();
        let code = format!(
            "<?php Surus\\every(0.02, function () {{
                file_put_contents('{file}', getmypid() . \" begins\\n\", FILE_APPEND);
                usleep(300_000);
                file_put_contents('{file}', getmypid() . \" {name}\\n\", FILE_APPEND);
            }}); return fn () => '{name}';"
        );
        folder.file("app.php", &code)
    };
    let server = Surus::serve(&script("first")).start();
    notes.wait_for("first", 1);
    script("second");
    // In the middle of a run: the new version begins when that has ended.
    let (code, text) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{text}");
    notes.wait_for("second", 2);
    let lines = notes.lines();
    let names: Vec<&str> = lines.iter().map(|line| line.1.as_str()).collect();
    for pair in names.chunks_exact(2) {
        assert!(pair[0] == "begins" && pair[1] != "begins", "{names:?}");
    }
    let second = names.iter().position(|name| *name == "second");
    assert!(!names[second.expect("it has run")..].contains(&"first"));
}

#[test]
fn what_is_wrong_with_a_timer_ends_the_boot() {
    let folder = TempDir::new("timers");
    let error = |code: &str, mode: &str| {
        let script = folder.file("app.php", &format!("<?php {code}; return fn () => 1;"));
        let options = Surus::serve(&script).argument("--mode").argument(mode);
        options.boot_error()
    };
    for (code, expected) in [
        (
            "Surus\\cron('61 * * * *', fn () => 1)",
            "Surus\\cron(\"61 * * * *\"): the minute \"61\" is none: numbers from 0 to 59",
        ),
        (
            "Surus\\cron('0 0 30 2 *', fn () => 1)",
            "there is no such day",
        ),
        (
            "Surus\\every(0, fn () => 1)",
            "Surus\\every(): Argument #1 ($seconds) must be at least 0.01, 0 given",
        ),
        (
            "Surus\\after(-1, fn () => 1)",
            "Surus\\after(): Argument #1 ($seconds) must be a time from 0 on, -1 given",
        ),
    ] {
        let error = error(code, "coroutine");
        assert!(error.contains(expected), "{error}");
    }
    let error = error("Surus\\every(1, fn () => 1)", "worker");
    let expected =
        "Timers are declared by the script of an application while it boots, in coroutine mode";
    assert!(error.contains(expected), "{error}");
    let script = folder.file(
        "app.php",
        "<?php return function () { try { Surus\\every(1, fn () => 1); } catch (Error $e) { return $e->getMessage(); } };",
    );
    let server = Surus::serve(&script).start();
    let text = Request::get("/").send(server.address()).text();
    assert!(text.contains(expected), "{text}");
}

#[test]
fn the_end_of_the_server_waits_for_a_run() {
    let folder = TempDir::new("timers");
    let file = folder.path().join("notes");
    let code = format!(
        "<?php Surus\\after(0, function () {{ file_put_contents('{0}', 'begins'); sleep(1); file_put_contents('{0}', 'ends'); }});
        return fn () => 1;",
        file.display()
    );
    let mut server = Surus::serve(&folder.file("app.php", &code)).start();
    let noted = |what: &str| fs::read_to_string(&file).is_ok_and(|text| text == what);
    wait_for("it does not begin", || noted("begins"));
    thread::sleep(Duration::from_millis(50));
    server.process().signal(Signal::SIGTERM);
    wait_for("the server does not end", || {
        server.process().ended().is_some()
    });
    assert!(noted("ends"));
}

#[test]
fn what_runs_once_runs_once_and_every_run_has_a_time_limit() {
    let folder = TempDir::new("timers");
    let notes = Notes::new(&folder);
    let script = folder.file(
        "app.php",
        "<?php
        function noted(string $what): void {
            file_put_contents((string) getenv('NOTES'), getmypid() . \" $what\\n\", FILE_APPEND);
        }
        function endless(string $what): void {
            try { sleep(1000); } finally { noted($what); }
        }
        Surus\\after(0.05, fn () => noted('version'));
        Surus\\after(0.05, fn () => noted('version'));
        Surus\\after(0.05, fn () => noted('server'), reloads: false);
        Surus\\after(0.05, reloads: false, job: fn () => noted('server'));
        Surus\\after(0.3, fn () => noted('later'));
        Surus\\every(0.05, fn () => endless('cut'));
        return function (): string { Surus\\background(fn () => endless('background')); return 'ok'; };",
    );
    let server = Surus::serve(&script)
        .env("NOTES", &notes.0.display().to_string())
        .config("[app.app]\ntimer_timeout = \"100ms\"\nbackground_timeout = \"100ms\"\n")
        .start();
    let counts = |names: [&str; 3]| names.map(|name| notes.count(name));
    let all = ["version", "server", "later"];
    wait_for("they do not run", || counts(all) == [2, 2, 1]);
    notes.wait_for("cut", 1);
    Request::get("/").send(server.address()).expect(200);
    notes.wait_for("background", 1);
    wait_for("it is not logged", || {
        let log = server.log();
        log.matches("endless()").count() >= 2
    });
    // Neither the next worker nor a reload runs again what has run.
    let pid = notes.last_process();
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("a process");
    wait_for("no other worker runs the timers", || {
        notes.last_process() != pid
    });
    notes.wait_for("cut", 3);
    assert_eq!(counts(all), [2, 2, 1]);
    let (code, text) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{text}");
    wait_for("they do not run in the new version", || {
        counts(all) == [4, 2, 2]
    });
    let status = server.status();
    let shown = status["workers"][0]["timers"].as_array().expect("timers");
    let over = shown.iter().filter(|timer| timer["next_s"].is_null());
    assert_eq!(over.count(), 5, "{shown:?}");
}
