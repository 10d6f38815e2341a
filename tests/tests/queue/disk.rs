//! A disk that is full, and a log that was torn or damaged.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::process::Command;

use nix::sys::signal::Signal;
use surus_tests::waiting::wait_for;

use super::support::{owner, push, try_push, Site};

/// Files of the process that has the jobs cannot grow above this size.
fn limit(pid: i32, size: &str) {
    let done = Command::new("prlimit")
        .args([&format!("--pid={pid}"), &format!("--fsize={size}:")])
        .status();
    assert!(done.expect("prlimit").success());
}

#[test]
fn a_full_disk_refuses_pushes_and_loses_nothing() {
    let site = Site::new();
    let mut server = site.options().start();
    push(&server, "one/first");
    site.wait_for("one first", 1);
    push(&server, "one/kept");
    let pid = owner(&server).expect("an owner");
    let size = fs::metadata(site.queue().join("jobs.log"))
        .expect("the log")
        .len();
    limit(pid, &(size + 10).to_string());
    for _ in 0..3 {
        let refused = try_push(&server, "one/refused").expect("an answer");
        let error = refused.expect(503).text();
        assert!(
            error.contains("cannot be written to") && error.contains("File too large"),
            "{error}"
        );
    }
    // What has ended meanwhile is written down when there is room.
    site.sign("go");
    site.wait_for("one kept", 1);
    wait_for("it is not done", || site.counts("one")["done"] == 2);
    limit(pid, "unlimited");
    push(&server, "one/after");
    site.wait_for("one after", 1);
    wait_for("it is not done", || site.counts("one")["done"] == 3);
    assert_eq!(owner(&server), Some(pid));
    server.process().signal(Signal::SIGKILL);
    drop(server);
    let server = site.options().start();
    push(&server, "note/last");
    site.wait_for("note last 1", 1);
    assert_eq!(
        site.lines(),
        ["one first", "one kept", "one after", "note last 1"]
    );
}

#[test]
fn a_queue_that_is_full_refuses_pushes() {
    let site = Site::new();
    let server = site
        .options()
        .argument("--set")
        .argument("queue_size=2K")
        .start();
    push(&server, "nobody/a");
    let mut refused = String::new();
    for _ in 0..10 {
        let answer = try_push(&server, "nobody/b").expect("an answer");
        if answer.status == 503 {
            refused = answer.text();
        }
    }
    assert!(refused.contains("the queue is full"), "{refused}");
    assert!(refused.contains("queue_size"), "{refused}");
}

#[test]
fn a_torn_or_damaged_log_keeps_all_other_jobs() {
    let site = Site::new();
    let log = site.queue().join("jobs.log");
    let mut server = site.options().start();
    for n in 0..5 {
        push(&server, &format!("nobody/{n}"));
    }
    server.process().signal(Signal::SIGKILL);
    drop(server);
    let whole = fs::read(&log).expect("the log");
    let mut file = OpenOptions::new().append(true).open(&log).expect("the log");
    // The first record is about the clock.
    let head = 10 + usize::from(whole[2]);
    let job = (whole.len() - head) / 5;
    file.write_all(&whole[head..head + job - 3]).expect("room");
    drop(file);
    let mut server = site.options().start();
    assert_eq!(site.counts("nobody")["waiting"], 5);
    assert!(server.log().contains("were not written to their end"));
    server.process().signal(Signal::SIGKILL);
    drop(server);
    let mut damaged = fs::read(&log).expect("the log");
    assert_eq!(damaged, whole);
    damaged[head + job + 30] ^= 1;
    fs::write(&log, &damaged).expect("room");
    let server = site.options().start();
    assert_eq!(site.counts("nobody")["waiting"], 4);
    wait_for("the damage is not named", || {
        server.log().contains("bytes are damaged")
    });
    let copies = fs::read_dir(site.queue()).expect("the folder");
    let is_copy = |name: &str| name.starts_with("jobs.log.damaged-");
    let mut names = copies.map(|entry| entry.expect("an entry").file_name());
    assert!(names.any(|name| is_copy(&name.to_string_lossy())));
}

/// The largest job comes back as it was pushed, and a byte more is refused where it was pushed.
#[test]
fn a_job_has_a_size_at_most() {
    const MOST: usize = 64 << 20;
    let site = Site::new();
    let server = site.start_large();
    // What serialize() adds to a string of this length.
    let around = "s:67108000:\"\";".len();
    let size = |bytes: usize| format!("size/{}", bytes - around);
    push(&server, &size(MOST));
    site.wait_for(&format!("size {}", MOST - around), 1);
    let refused = try_push(&server, &size(MOST + 1)).expect("an answer");
    let error = refused.expect(503).text();
    assert!(
        error.contains("the payload has 67108865 bytes, of 67108864 at most"),
        "{error}"
    );
    // Neither has kept others from their jobs.
    push(&server, "note/after");
    site.wait_for("note after 1", 1);
}
