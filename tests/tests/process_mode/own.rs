//! What is different where each request has a process.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use surus_tests::fixture;
use surus_tests::http::{Connection, Request};
use surus_tests::parallel::together;
use surus_tests::surus::{Options, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

/// The classic fixtures in so many processes, with more settings of the application.
fn server(processes: usize, settings: &str) -> Options {
    let root = fixture("classic");
    let config = format!(
        "[app.site]\nmode = \"process\"\nroot = \"{}\"\nprocesses = {processes}\n{settings}",
        root.display()
    );
    Surus::serve(&root).config(&config)
}

fn pid_after(server: &Surus, us: u32) -> String {
    let request = Request::get(&format!("/pid.php?usleep={us}"));
    request.send(server.address()).expect(200).text()
}

#[test]
fn a_process_has_one_request_at_a_time() {
    let server = server(2, "").start();
    wait_for("one process serves all", || {
        let (pids, took) = together(6, |_| pid_after(&server, 200_000));
        let pids = HashSet::<String>::from_iter(pids).len();
        assert!(pids <= 2, "{pids} processes");
        assert!(took > Duration::from_millis(590), "{took:?}");
        pids == 2
    });
}

#[test]
fn idle_connections_hold_up_nobody() {
    let server = server(2, "").start();
    let ask = Request::get("/pid.php").bytes(server.address());
    let mut idle: Vec<_> = (0..20)
        .map(|_| {
            let mut connection = Connection::open(server.address()).expect("connect");
            connection.write(&ask).expect("write");
            connection.response("GET").expect("an answer").expect(200);
            connection
        })
        .collect();
    // One of two processes is busy; every connection, old or new, is served by the other one.
    let folder = TempDir::new("signs");
    let mut slow = hold(&server, &folder);
    server.wait_for_in_flight(1);
    pid_after(&server, 0);
    for connection in &mut idle {
        connection.write(&ask).expect("write");
        connection.response("GET").expect("an answer").expect(200);
    }
    assert!(!slow.has_input(), "it is not busy");
    folder.file("go", "");
    slow.response("GET").expect("an answer").expect(200);
}

/// A request that waits for `go` in this folder.
fn hold(server: &Surus, folder: &TempDir) -> Connection {
    let sign = folder.path().join("go");
    let request = Request::get(&format!("/hold.php?until={}", sign.display()));
    let mut connection = Connection::open(server.address()).expect("connect");
    let bytes = request.bytes(server.address());
    connection.write(&bytes).expect("write");
    connection
}

#[test]
fn the_death_of_a_process_is_one_requests_failure() {
    let server = server(3, "").start();
    let victim = pid_after(&server, 0);
    let (answers, _) = together(3, |number| {
        if number == 2 {
            thread::sleep(Duration::from_millis(200));
            kill(
                Pid::from_raw(victim.parse().expect("a number")),
                Signal::SIGKILL,
            )
            .expect("kill");
            return 0;
        }
        let waits = Request::get("/pid.php?usleep=500000");
        // Both other processes are at work, too.
        let (all, _) = together(2, |_| {
            waits.try_send(server.address()).map_or(0, |a| a.status)
        });
        all.into_iter().max().unwrap_or(0)
    });
    let failed = answers.iter().filter(|status| **status == 502).count();
    assert!(failed <= 1, "{answers:?}");
    wait_for("it is not logged", || server.log().contains("SIGKILL"));
    let (pids, _) = together(12, |_| pid_after(&server, 100_000));
    let pids = HashSet::<String>::from_iter(pids);
    assert!(!pids.contains(&victim));
}

/// Each overflow of the C stack wears out one process; the server goes on with others.
#[test]
fn a_process_whose_isolate_was_given_up_is_replaced() {
    let root = fixture("process");
    // From PHP 8.3 on it would be an error of PHP's.
    let config = format!(
        "[php]\n\"zend.max_allowed_stack_size\" = -1\n[app.site]\nmode = \"process\"\nroot = \"{}\"\nprocesses = 2",
        root.display()
    );
    let server = Surus::serve(&root).config(&config).start();
    let ask = |query: &str| Request::get(&format!("/?{query}")).send(server.address());
    let before: HashSet<String> = (0..20)
        .map(|_| ask("case=pid").expect(200).text())
        .collect();
    for _ in 0..10 {
        ask("case=recurse&how=closures").expect(500);
    }
    wait_for("they are not replaced", || {
        !before.contains(&ask("case=pid").expect(200).text())
    });
}

#[test]
fn what_stands_in_line_is_served_before_the_end() {
    let mut server = server(1, "").start();
    let address = server.address();
    let waiting: Vec<_> = (0..5)
        .map(|_| {
            let mut connection = Connection::open(address).expect("connect");
            let ask = Request::get("/pid.php?usleep=100000").bytes(address);
            connection.write(&ask).expect("write");
            connection
        })
        .collect();
    thread::sleep(Duration::from_millis(50));
    server.process().signal(Signal::SIGTERM);
    for mut connection in waiting {
        connection.response("GET").expect("an answer").expect(200);
    }
    wait_for("it does not end", || server.process().ended().is_some());
}

#[test]
fn the_line_has_an_end() {
    let server = server(1, "max_requests_in_flight = 2\nmax_queue = 1").start();
    let folder = TempDir::new("signs");
    let mut served = [(); 3].map(|()| hold(&server, &folder));
    server.wait_for_in_flight(3);
    for _ in 0..3 {
        let refused = Request::get("/pid.php").send(server.address());
        assert!(refused.header("retry-after").is_some());
        refused.expect(503);
    }
    folder.file("go", "");
    for each in &mut served {
        each.response("GET").expect("an answer").expect(200);
    }
}

#[test]
fn waiting_has_a_deadline() {
    let server = server(1, "request_timeout = \"300ms\"").start();
    wait_for("nobody waits for too long", || {
        let (answers, _) = together(4, |_| {
            Request::get("/pid.php?usleep=200000")
                .send(server.address())
                .status
        });
        // One that is served may be late itself, where the machine stands still.
        let is_known = |status: &u16| matches!(status, 200 | 503 | 504);
        assert!(answers.iter().all(is_known), "{answers:?}");
        answers.contains(&200) && answers.contains(&503)
    });
}

/// An application that boots once has processes, too: each boots it for itself.
#[test]
fn a_coroutine_application_may_have_processes() {
    let folder = TempDir::new("app");
    let script = folder.file(
        "app.php",
        "<?php return function (Surus\\Http\\Request $request): array {\n\
            static $inside = 0;\n\
            $inside++;\n\
            usleep(50_000);\n\
            return ['pid' => getmypid(), 'inside' => $inside--, 'body' => strlen($request->body())];\n\
        };",
    );
    let config = format!(
        "[app.api]\nscript = \"{}\"\nprocesses = 3",
        script.display()
    );
    let server = Surus::serve(folder.path()).config(&config).start();
    wait_for("some processes serve nobody", || {
        let (answers, _) = together(12, |_| {
            let request = Request::post("/").body("text/plain", vec![b'x'; 1_000_000]);
            request.send(server.address()).expect(200).json()
        });
        assert!(answers
            .iter()
            .all(|it| it["inside"] == 1 && it["body"] == 1_000_000));
        let pids: HashSet<String> = answers.iter().map(|it| it["pid"].to_string()).collect();
        assert!(pids.len() <= 3, "{answers:?}");
        pids.len() == 3
    });
}
