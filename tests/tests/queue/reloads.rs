//! Reloads and upgrades under load.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use surus_tests::surus::Surus;
use surus_tests::waiting::wait_for;

use super::support::{push, try_push, Over, Site};

const RELOADS: usize = 20;

fn each_runs_once_during(site: &Site, server: &Surus, change: impl Fn()) {
    let (over, next) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let answer = try_push(server, &format!("work/{number}"));
                    answer.expect("an answer").expect(200);
                }
            });
        }
        let _over = Over(&over);
        change();
    });
    let pushed = next.into_inner();
    site.wait_until_none_is_left("work");
    let notes = site.notes();
    for number in 0..pushed {
        for what in ["begun", "done"] {
            let count = notes.get(&format!("{what} {number}"));
            assert_eq!(count, Some(&1), "{what} {number} of {pushed}");
        }
    }
}

#[test]
fn none_is_lost_or_doubled_by_reloads() {
    let site = Site::new();
    let server = site.options().workers(2).start();
    push(&server, "note/x");
    each_runs_once_during(&site, &server, || {
        for _ in 0..RELOADS {
            let (code, said) = server.command(&["reload"]);
            assert_eq!(code, Some(0), "{said}");
        }
    });
}

/// Jobs that run in the old server end there; the new one has all others.
#[test]
fn none_is_lost_or_doubled_by_an_upgrade() {
    let site = Site::new();
    let server = site.options().workers(2).start();
    push(&server, "half/x");
    site.wait_for("half", 1);
    let old = server.status()["pid"].as_i64();
    each_runs_once_during(&site, &server, || {
        let (code, said) = server.command(&["upgrade"]);
        assert_eq!(code, Some(0), "{said}{}", server.log());
        wait_for("it was not replaced", || {
            server.status()["pid"].as_i64() != old
        });
        push(&server, "note/new");
        site.wait_for("note new 1", 1);
        site.sign("go");
    });
    wait_for("a job is left", || site.counts("half")["done"] == 1);
    assert_eq!(site.notes()["half"], 1);
    let last = server.status()["pid"].as_i64().expect("a process");
    kill(Pid::from_raw(last as i32), Signal::SIGTERM).expect("a server");
}
