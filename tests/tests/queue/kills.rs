//! The death of a worker, of the process that has the jobs, and of the whole server, in the middle of jobs.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use surus_tests::surus::Surus;
use surus_tests::waiting::wait_for;

use super::support::{owner, push, try_push, Over, Site};

/// Of the process that has the jobs, in the life of one server; workers as often as they are older than [`RIPE`].
const KILLS: usize = 30;
/// Times that the whole server is killed.
const RESTARTS: usize = 5;
pub(super) const WORKERS: usize = 4;
/// A server gives up whose workers all die in their first second.
const RIPE: f64 = 1.2;
const CLIENTS: usize = 4;

/// A worker that may die, if all are there.
pub(super) fn ripe(server: &Surus) -> Option<i32> {
    let status = server.status();
    let workers = status["workers"].as_array()?;
    let ready = workers.iter().filter(|worker| worker["state"] == "ready");
    let is_ripe = |worker: &&Value| worker["uptime_s"].as_f64() > Some(RIPE);
    let oldest = ready.clone().find(is_ripe)?;
    let pid = oldest["pid"]
        .as_i64()
        .filter(|_| ready.count() == WORKERS)?;
    i32::try_from(pid).ok()
}

fn kill_one(pid: Option<i32>) -> bool {
    pid.is_some_and(|pid| kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok())
}

/// Pushes jobs until it is told to stop, and notes those that were confirmed.
fn pushing(server: &Surus, last: &AtomicUsize, over: &AtomicBool, kept: &Mutex<HashSet<usize>>) {
    while !over.load(Ordering::Relaxed) {
        let number = last.fetch_add(1, Ordering::Relaxed);
        if let Ok(response) = try_push(server, &format!("work/{number}")) {
            if response.status == 200 {
                kept.lock().expect("a lock").insert(number);
            }
        }
    }
}

#[test]
fn none_is_lost_whoever_is_killed() {
    let site = Site::new();
    let (last, kept) = (AtomicUsize::new(0), Mutex::new(HashSet::new()));
    let mut killed = 0;
    for _ in 0..RESTARTS {
        let mut server = site.options().workers(WORKERS).start();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| pushing(&server, &last, &over, &kept));
            }
            let _over = Over(&over);
            for _ in 0..KILLS {
                thread::sleep(Duration::from_millis(40));
                for victim in [owner(&server), ripe(&server)] {
                    killed += usize::from(kill_one(victim));
                }
            }
        });
        // With all its processes, in the middle of what they do.
        server.process().signal(Signal::SIGKILL);
        killed += 1;
    }
    let server = site.options().workers(2).start();
    let kept = kept.into_inner().expect("a lock");
    assert!(kept.len() > 100, "{} jobs, {killed} kills", kept.len());
    site.wait_until_none_is_left("work");
    assert_eq!(site.counts("work")["failed"], 0);
    let notes = site.notes();
    let count =
        |what: &str, number: usize| notes.get(&format!("{what} {number}")).copied().unwrap_or(0);
    let lost: Vec<usize> = kept
        .iter()
        .copied()
        .filter(|&number| count("done", number) == 0)
        .collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    // A job runs again only where its process has died: between its end and the note of that.
    let pushed = last.into_inner();
    let doubled: usize = (0..pushed)
        .map(|number| count("done", number).saturating_sub(1))
        .sum();
    let most = killed * 200;
    assert!(doubled <= most, "{doubled} ran again after their end");
    drop(server);
}

#[test]
fn jobs_of_a_dead_worker_run_elsewhere_within_a_second() {
    let site = Site::new();
    let server = site.options().workers(2).start();
    for n in 0..20 {
        push(&server, &format!("many/{n}"));
    }
    site.wait_for("arrived", 20);
    let begun = Instant::now();
    kill_one(server.workers().first().copied());
    wait_for("they do not run again", || {
        site.lines().len() > 20 && site.counts("many")["running"] == 20
    });
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    site.sign("go");
    wait_for("they are not done", || site.counts("many")["done"] == 20);
}

#[test]
fn jobs_that_run_are_not_given_away_when_their_owner_dies() {
    let site = Site::new();
    let server = site.options().workers(2).start();
    for n in 0..20 {
        push(&server, &format!("many/{n}"));
    }
    site.wait_for("arrived", 20);
    for _ in 0..20 {
        let old = owner(&server);
        assert!(kill_one(old));
        wait_for("there is no other owner", || {
            owner(&server).is_some_and(|new| Some(new) != old)
        });
        wait_for("it does not know its jobs", || {
            site.counts("many")["running"] == 20
        });
    }
    site.sign("go");
    wait_for("they are not done", || {
        let counts = site.counts("many");
        counts["running"] == 0 && counts["waiting"] == 0
    });
    assert_eq!(site.notes()["arrived"], 20);
    assert_eq!(site.notes()["left"], 20);
}
