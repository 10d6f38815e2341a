//! `Surus\offload()`: jobs in other processes.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::{json, Value};
use surus_tests::http::{Connection, Request};
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

use super::{ask, serve, MODES};

/// Of the kind "process".
fn processes(server: &Surus) -> Vec<i32> {
    let status = server.status();
    let all = status["workers"].as_array().expect("a list");
    let jobs = all.iter().filter(|it| it["kind"] == "process");
    let pids = jobs.filter_map(|it| it["pid"].as_i64());
    pids.map(|pid| i32::try_from(pid).unwrap()).collect()
}

fn begin(server: &Surus, target: &str) -> Connection {
    let mut client = Connection::open(server.address()).unwrap();
    let request = Request::get(target).bytes(server.address());
    client.write(&request).unwrap();
    client
}

fn notes(file: &Path) -> String {
    fs::read_to_string(file)
        .unwrap_or_default()
        .replace('\n', " ")
}

fn expected_errors(script: &str) -> Value {
    let named = "ValueError: Surus\\offload(): Argument #1 ($job) must be a function or [Class::class, 'method'] of a public static method:";
    json!([
        "Surus\\OffloadException: Jobs\\Work::fails: no such row <DomainException>",
        format!("{named} a closure is code of this process"),
        format!("{named} a method of an object belongs to this process"),
        "Surus\\OffloadException: Surus\\offload(): Jobs\\Work::closure has a result that cannot leave its process: Serialization of 'Closure' is not allowed",
        "TypeError: Surus\\offload(): Argument #2 ($string) of strlen() cannot go to another process: Serialization of 'Closure' is not allowed",
        "TypeError: Surus\\offload(): Argument #2 ($value) of count() cannot go to another process: it is or has a resource",
        "Surus\\OffloadException: strlen: strlen() expects exactly 1 argument, 0 given <ArgumentCountError>",
        format!("{named} of_the_script() is declared in {script}, which would serve requests if it was loaded there; give it a file of its own"),
    ])
}

#[test]
fn jobs_run_in_other_processes() {
    for mode in MODES[..3].iter().chain(&[("snapshot", "app.php")]) {
        let server = serve(*mode, &["app.memory_limit=64M"]);
        assert!(processes(&server).is_empty(), "before the first job");
        assert_eq!(
            ask(&server, "offload"),
            json!([42, true, true, {"a": 1, "b": 2}, [], "done", 3 << 20, 9 << 20]),
            "{mode:?}"
        );
        assert_eq!(processes(&server).len(), 4);
        let overlap = json!([["slept", "slept", "slept", "slept"], "at the same time"]);
        assert_eq!(ask(&server, "offload_overlaps"), overlap, "{mode:?}");
        assert_eq!(
            ask(&server, "offload_fresh"),
            json!([[1], true]),
            "{mode:?}"
        );
        assert_eq!(
            ask(&server, "offload_errors"),
            expected_errors(mode.1),
            "{mode:?}"
        );
        assert!(server.log().contains("from the job"), "{}", server.log());
    }
}

#[test]
fn however_a_job_ends_its_caller_is_told() {
    let server = serve(MODES[1], &["app.offload_processes=2"]);
    assert_eq!(
        ask(&server, "offload_ends"),
        json!([
            "Surus\\OffloadException: Surus\\offload(): Jobs\\Work::exits has ended with exit(), without a result",
            "Surus\\OffloadException: Surus\\offload(): Jobs\\Work::fatal has ended with a fatal error: wrong for good in jobs.php:64",
            "Surus\\OffloadException: Surus\\offload(): a fatal error has ended Jobs\\Work::exhausts; it is in the log",
            "Surus\\OffloadException: Surus\\offload(): the process of Jobs\\Work::dies, PID, has died",
            "Surus\\OffloadException: Jobs\\Work::nested: Surus\\offload() cannot run strtoupper: the job is already in another process, and runs all that it calls <Surus\\OffloadException>",
            "\"cba\""
        ])
    );
    // Jobs that crash as soon as their processes have started do not end the server.
    for pid in processes(&server) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
    wait_for("nobody takes their place", || processes(&server).len() == 2);
    assert_eq!(ask(&server, "offload_fresh"), json!([[1], true]));
}

#[test]
fn a_job_ends_with_its_caller() {
    let folder = TempDir::new("offload");
    let file = folder.path().join("notes");
    let server = serve(MODES[1], &["app.offload_processes=1"]);
    let case = |seconds: &str| format!("offload_sleeps&file={}&seconds={seconds}", file.display());
    // Its client leaves.
    let client = begin(&server, &format!("/?case={}", case("60")));
    wait_for("the job does not begin", || notes(&file) == "begins ");
    drop(client);
    wait_for("the job does not end", || notes(&file) == "begins finally ");
    // Its caller's time is over.
    let within = format!("offload_within&file={}", file.display());
    assert_eq!(
        ask(&server, &within),
        json!("Surus\\TimeoutException: It was not done within 0.2 s, and was cancelled")
    );
    wait_for("the job does not end", || {
        notes(&file) == "begins finally begins finally "
    });
    let before = processes(&server);
    assert_eq!(ask(&server, &case("0")), json!("\"slept\""));
    assert_eq!(
        processes(&server),
        before,
        "a job that ends does not cost its process"
    );
    // It computes in C.
    let client = begin(&server, "/?case=offload_computes");
    thread::sleep(Duration::from_millis(200));
    drop(client);
    wait_for("its process is not killed", || {
        let now = processes(&server);
        !now.is_empty() && now != before
    });
    assert_eq!(ask(&server, &case("0")), json!("\"slept\""));
}

#[test]
fn a_job_has_a_time_limit() {
    let folder = TempDir::new("offload-time");
    let file = folder.path().join("notes");
    let server = serve(
        MODES[1],
        &["app.offload_processes=1", "app.offload_timeout=300ms"],
    );
    let late = "Surus\\TimeoutException: Surus\\offload(): Jobs\\Work::sleeps was not done within 300ms, and was ended";
    let case = format!("offload_sleeps&file={}&seconds=60", file.display());
    assert_eq!(ask(&server, &case), json!(late));
    assert_eq!(notes(&file), "begins finally ");
    let began = Instant::now();
    let late = late.replace("sleeps", "computes");
    assert_eq!(ask(&server, "offload_computes"), json!(late));
    // Meanwhile there is no process for another one.
    let late = "Surus\\TimeoutException: Surus\\offload(): Jobs\\Work::sleeps was not begun within 300ms: all 1 processes had other jobs";
    assert_eq!(ask(&server, &case), json!(late));
    wait_for("its process is not killed", || {
        ask(&server, &case) != json!(late)
    });
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_reload_and_a_stop_wait_for_jobs() {
    let folder = TempDir::new("offload-reload");
    let (file, code) = (folder.path().join("notes"), folder.path().join("code.php"));
    let mut server = serve(MODES[1], &["app.offload_processes=1"]);
    let version = format!("offload_version&file={}", code.display());
    fs::write(&code, "<?php return 'old';").unwrap();
    assert_eq!(ask(&server, &version), json!("\"old\""));
    let case = format!("/?case=offload_sleeps&file={}&seconds=1", file.display());
    let mut client = begin(&server, &case);
    wait_for("the job does not begin", || notes(&file) == "begins ");
    fs::write(&code, "<?php return 'new';").unwrap();
    let (status, text) = server.command(&["reload"]);
    assert_eq!(status, Some(0), "{text}");
    assert_eq!(ask(&server, &version), json!("\"new\""));
    assert_eq!(client.response("GET").unwrap().text(), "\"\\\"slept\\\"\"");
    client
        .write(&Request::get(&case).bytes(server.address()))
        .unwrap();
    wait_for("the job does not begin", || {
        notes(&file).ends_with("begins ")
    });
    server.process().signal(Signal::SIGTERM);
    assert_eq!(client.response("GET").unwrap().text(), "\"\\\"slept\\\"\"");
    wait_for("the server does not end", || {
        server.process().ended().is_some()
    });
}

#[test]
fn where_there_are_no_processes_for_jobs_they_are_refused() {
    let refused = "Surus\\OffloadException: Surus\\offload() cannot run Jobs\\Work::sleeps: there are no processes for jobs: ";
    let case = "offload_sleeps&file=/nowhere&seconds=0";
    let server = serve(MODES[0], &["app.offload_processes=0"]);
    let why = "set offload_processes of the application";
    assert_eq!(ask(&server, case), json!(format!("{refused}{why}")));
    let server = serve(MODES[3], &[]);
    let why =
        "in process mode each request has a process of its own, where it can call the job itself";
    assert_eq!(ask(&server, case), json!(format!("{refused}{why}")));
}

#[test]
fn scripts_run_jobs_in_place() {
    let folder = TempDir::new("offload-script");
    let script = folder.file(
        "script.php",
        "<?php
        function twice(int $x): int { return $x < 0 ? throw new DomainException('negative') : $x * 2; }
        echo Surus\\offload('twice', x: 21), PHP_EOL;
        try { Surus\\offload('twice', -1); } catch (Surus\\OffloadException $e) { echo $e->getMessage(), ' ', $e->getThrownClass(); }",
    );
    let (code, text) = Surus::run(&["php", script.to_str().unwrap()]);
    assert_eq!(
        (code, text.as_str()),
        (Some(0), "42\ntwice: negative DomainException")
    );
}
