//! Jobs that requests take themselves: each comes back if its request ends without it being done.

use std::time::Duration;

use surus_tests::http::{Connection, Request};

use super::support::{push, Site};

#[test]
fn a_job_outlives_the_request_that_took_it() {
    let site = Site::new();
    let options = site.options().workers(1);
    let server = options
        .argument("--set")
        .argument("request_timeout=3s")
        .start();
    let send = |target: &str| Request::get(target).send(server.address());
    push(&server, "other/kept");
    for end in ["throw", "exit", "fatal", "wait"] {
        send(&format!("/take-and/{end}"));
        assert_eq!(send("/take/other").text(), "kept", "after {end}");
        push(&server, "other/kept");
    }
    // The client leaves while the request waits for a job: the job is not for it.
    assert_eq!(send("/take/other").text(), "kept");
    let mut client = Connection::open(server.address()).expect("a connection");
    client
        .write(b"GET /take/other HTTP/1.1\r\nHost: a\r\n\r\n")
        .expect("a request");
    std::thread::sleep(Duration::from_millis(100));
    drop(client);
    push(&server, "other/late");
    assert_eq!(send("/take/other").text(), "late");
}

#[test]
fn who_takes_of_a_declared_queue_leaves_it_to_its_handler() {
    let site = Site::new();
    let server = site.options().workers(1).start();
    Request::get("/take/note").send(server.address());
    for n in 0..3 {
        push(&server, &format!("note/{n}"));
        site.wait_for(&format!("note {n} 1"), 1);
    }
}

#[test]
fn a_unique_key_is_text() {
    let site = Site::new();
    let server = site.options().start();
    let answer = Request::get("/unique").send(server.address()).expect(200);
    assert!(answer.text().contains("must be UTF-8"), "{}", answer.text());
}
