//! The end of a server: in time, with all of its processes, and with an exit code that says why.

use std::fs;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use surus_tests::http::{Connection, Request};
use surus_tests::ports;
use surus_tests::surus::{binary, Mode, Surus};
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

fn master(server: &mut Surus) -> Pid {
    Pid::from_raw(server.process().id() as i32)
}

/// A zombie has ended; who reaps it is another matter.
fn alive(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Its exit code and what it wrote to stderr, once it has ended by itself.
fn ended(server: &mut Surus) -> (Option<i32>, String) {
    let mut status = None;
    wait_for("it does not end", || {
        status = server.process().ended();
        status.is_some()
    });
    let code = status.and_then(|status| status.code());
    (code, said(&server.process().stderr()))
}

/// Without what is said to root, which tests may run as.
fn said(text: &str) -> String {
    text.split_inclusive('\n')
        .filter(|line| !line.contains("PHP runs as root"))
        .collect()
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
        wait_for(&format!("{mode}: one of {children:?} is there"), || {
            !children.iter().any(|pid| alive(pid))
        });
    }
}

#[test]
fn it_says_when_it_is_ready_and_ends_with_0_when_told_to() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let folder = TempDir::new("told");
        folder.file("app.php", APP);
        let mut server = Surus::serve(folder.path()).workers(2).start();
        let expected = format!(
            "surus ready on http://{} (2 workers, coroutine app.php)\n",
            server.address()
        );
        assert_eq!(server.process().stdout(), expected);
        assert_eq!(server.workers().len(), 2);
        // As Ctrl-C does it: to master and workers at once.
        server.process().signal(signal);
        assert_eq!(ended(&mut server), (Some(0), String::new()));
    }
}

/// Also where they have nothing to do.
#[test]
fn workers_do_not_outlive_their_master() {
    let folder = TempDir::new("idle");
    folder.file("app.php", APP);
    let mut server = Surus::serve(folder.path()).workers(2).start();
    let workers = server.workers();
    assert_eq!(workers.len(), 2);
    kill(master(&mut server), Signal::SIGKILL).unwrap();
    wait_for("a worker is there", || {
        !workers.iter().any(|pid| alive(&pid.to_string()))
    });
}

/// A server of one request that creates `begun`, takes its time, and creates `done` in any case.
fn busy(folder: &TempDir, time: &str) -> (Surus, Connection) {
    let app = format!(
        "<?php return function () {{
            try {{ touch(__DIR__ . '/begun'); {time}; }} finally {{ touch(__DIR__ . '/done'); }}
            return 'slept';
        }};"
    );
    folder.file("app.php", &app);
    let server = Surus::serve(folder.path()).start();
    let client = begin(&server, "/");
    let begun = folder.path().join("begun");
    wait_for("the request does not begin", || begun.exists());
    (server, client)
}

#[test]
fn requests_in_flight_are_finished() {
    let folder = TempDir::new("in-flight");
    let (mut server, mut client) = busy(&folder, "usleep(500_000)");
    kill(master(&mut server), Signal::SIGTERM).unwrap();
    assert_eq!(client.response("GET").unwrap().text(), "slept");
    assert_eq!(ended(&mut server), (Some(0), String::new()));
}

#[test]
fn requests_of_clients_that_have_left_are_finished_too() {
    let folder = TempDir::new("left");
    let (mut server, client) = busy(&folder, "usleep(300_000)");
    drop(client);
    kill(master(&mut server), Signal::SIGTERM).unwrap();
    assert_eq!(ended(&mut server).0, Some(0));
    assert!(folder.path().join("done").exists());
}

#[test]
fn a_second_signal_ends_at_once() {
    let folder = TempDir::new("twice");
    let (mut server, _client) = busy(&folder, "sleep(60)");
    let master = master(&mut server);
    kill(master, Signal::SIGTERM).unwrap();
    // Two that are on their way at once would be one.
    let address = server.address();
    wait_for("it listens", || TcpStream::connect(address).is_err());
    assert!(alive(&master.to_string()));
    let begun = Instant::now();
    kill(master, Signal::SIGTERM).unwrap();
    assert_eq!(ended(&mut server).0, Some(0));
    // Thirty seconds are the default for the first one.
    assert!(begun.elapsed() < Duration::from_secs(15));
}

/// The exit code of a server of this application and what it has said.
fn fails(app: &str) -> (Option<i32>, String) {
    let folder = TempDir::new("fails");
    folder.file("app.php", app);
    let output = Command::new(binary())
        .arg("serve")
        .arg(folder.path())
        .args(["--listen", &ports::free().to_string(), "--workers", "2"])
        .env("RUNTIME_DIRECTORY", folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"");
    let log = said(&String::from_utf8_lossy(&output.stderr));
    (output.status.code(), log)
}

#[test]
fn an_application_that_does_not_boot_ends_with_1_and_its_error() {
    let (code, log) = fails("<?php throw new Exception('no database today');");
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("no database today"), "{log}");
    let (code, log) = fails("<?php this is no PHP");
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("syntax error"), "{log}");
}

#[test]
fn a_worker_that_dies_again_and_again_is_given_up() {
    let (code, log) = fails("<?php shell_exec('kill -9 ' . getmypid());");
    assert_eq!(code, Some(1), "{log}");
    let expected =
        "was killed by SIGKILL, for the 5th time in a row right after its start; giving up";
    assert!(log.contains(expected), "{log}");
}

/// Its head was sent before anybody knew that the connection would end. A proxy does not repeat a POST.
#[test]
fn a_request_behind_a_long_answer_is_not_lost_in_an_upgrade() {
    let folder = TempDir::new("long");
    let text = "str_repeat('x', 16 << 20)";
    folder.file("index.php", &format!("<?php echo {text};"));
    folder.file("app.php", &format!("<?php return fn () => {text};"));
    for mode in Mode::ALL {
        let server = Surus::serve(&mode.script(folder.path())).mode(mode);
        let server = server.config("[app.app]\nmemory_limit = '128M'\n").start();
        let mut client = begin(&server, "/");
        wait_for("no answer has begun", || client.has_input());
        let (code, text) = server.command(&["upgrade"]);
        assert_eq!(code, Some(0), "{text}{}", server.log());
        thread::sleep(Duration::from_secs(1));
        let answer = client.response("GET").expect("an answer").expect(200);
        assert_eq!(answer.body.len(), 16 << 20, "{mode:?}");
        let next = Request::post("/").form(&[("a", "b")]);
        client.write(&next.bytes(server.address())).expect("sent");
        let answer = client.response("POST");
        let answer = answer.unwrap_or_else(|error| panic!("{mode:?}: {error}"));
        assert_eq!(answer.expect(200).header("connection"), Some("close"));
        assert_eq!(server.command(&["stop"]).0, Some(0));
    }
}
