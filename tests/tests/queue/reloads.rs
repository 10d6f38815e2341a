//! Reloads and upgrades under load.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

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
    wait_for("jobs are left", || {
        let counts = site.counts("work");
        counts["waiting"] == 0 && counts["delayed"] == 0 && counts["running"] == 0
    });
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
