//! Streams: entries that each group reads, and acknowledges.

use std::thread;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use surus_tests::http::Request;
use surus_tests::waiting::wait_for;

use super::support::{get, kill_owner, Site};

#[test]
fn each_group_reads_what_was_appended_whoever_is_killed() {
    let site = Site::new();
    let mut server = site.options().workers(2).start();
    // Both groups wait for what comes.
    thread::scope(|scope| {
        let waiting = ["one", "two"].map(|group| {
            scope.spawn({
                let server = &server;
                move || get(server, &format!("/read/{group}/1"))
            })
        });
        wait_for("nobody waits", || {
            get(&server, "/stream").contains(r#"{"one":0,"two":0}"#)
        });
        assert_eq!(get(&server, "/append/a"), "[1]");
        for reader in waiting {
            assert_eq!(reader.join().expect("an answer"), r#"["1 a 1"]"#);
        }
    });
    for payload in ["b", "c", "d"] {
        get(&server, &format!("/append/{payload}"));
    }
    assert_eq!(get(&server, "/read/one/2"), r#"["2 b 1","3 c 1"]"#);
    // A worker has what it has read until it dies, and an owner that follows asks it.
    assert_eq!(get(&server, "/keep/two"), "[2,3,4]");
    kill_owner(&server);
    assert_eq!(get(&server, "/append/e"), "[5]");
    assert_eq!(get(&server, "/read/two/9"), r#"["5 e 1"]"#);
    for worker in server.workers() {
        kill(Pid::from_raw(worker), Signal::SIGKILL).expect("a worker");
        wait_for("it was not replaced", || {
            let workers = server.workers();
            workers.len() == 2 && !workers.contains(&worker)
        });
    }
    assert_eq!(get(&server, "/read/two/9"), r#"["2 b 1","3 c 1","4 d 1"]"#);
    let counts = get(&server, "/stream");
    assert_eq!(
        counts,
        r#"{"entries":2,"last":5,"groups":{"one":2,"two":0}}"#
    );
    let (_, said) = site.command(&["streams"]);
    assert!(said.contains("events  entries 2  last 5\n"), "{said}");
    server.process().signal(Signal::SIGKILL);
    drop(server);
    let server = site.options().start();
    assert_eq!(get(&server, "/read/one/9"), r#"["4 d 1","5 e 1"]"#);
    let counts = get(&server, "/stream");
    assert_eq!(
        counts,
        r#"{"entries":0,"last":5,"groups":{"one":0,"two":0}}"#
    );
    // A group that is forgotten keeps nothing back.
    get(&server, "/append/f");
    get(&server, "/read/one/9");
    let forgotten = Request::get("/forget/two").send(server.address());
    assert_eq!(forgotten.status, 204);
    let counts = get(&server, "/stream");
    assert_eq!(counts, r#"{"entries":0,"last":6,"groups":{"one":0}}"#);
}
