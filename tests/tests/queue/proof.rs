//! What is promised of jobs whose processes are killed, counted: none is lost, each runs at most once more than it was asked to, and goes on
//! elsewhere within a second. `QUEUE_KILLS=1000 cargo test … queue::proof -- --nocapture` is the proof, which takes some minutes.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use surus_tests::random::Random;
use surus_tests::surus::Surus;
use surus_tests::waiting::wait_for;

use super::kills::{ripe, WORKERS};
use super::support::{owner, push, Site};

/// Jobs of a round, in whose middle something is killed.
const JOBS: usize = 12;

fn rounds() -> usize {
    let told = std::env::var("QUEUE_KILLS").ok();
    told.and_then(|count| count.parse().ok()).unwrap_or(6)
}

fn now() -> f64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    time.expect("a clock").as_secs_f64()
}

/// A note of a job: whether it begins or is done, which one, in which process and when.
struct Note {
    begins: bool,
    job: String,
    pid: i32,
    at: f64,
}

fn notes(site: &Site) -> Vec<Note> {
    let text = fs::read_to_string(site.notes_file()).unwrap_or_default();
    let parsed = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let [pid, what, job, at] = words[..] else {
            return None;
        };
        Some(Note {
            begins: what == "begins",
            job: job.to_owned(),
            pid: pid.parse().ok()?,
            at: at.parse().ok()?,
        })
    });
    parsed.collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Victim {
    Worker,
    Owner,
    Server,
}

fn ripe_worker(server: &Surus) -> i32 {
    let mut found = None;
    wait_for("no worker may die", || {
        found = ripe(server);
        found.is_some()
    });
    found.expect("a worker")
}

/// What rounds with a kind of victim have shown.
#[derive(Default)]
struct Shown {
    kills: usize,
    /// Jobs that ran again.
    again: usize,
    /// The longest times in seconds, from the death, or the start of the next server, to the next run.
    waits: Vec<f64>,
}

#[test]
fn none_is_lost_and_each_goes_on_within_a_second() {
    let site = Site::new();
    let mut random = Random::of(15, 0);
    let mut server = site.options().workers(WORKERS).start();
    let mut shown: HashMap<Victim, Shown> = HashMap::new();
    for round in 0..rounds() {
        let victim = [Victim::Worker, Victim::Owner, Victim::Server][round % 3];
        // The file is appended to: whoever writes goes on at its end.
        fs::write(site.notes_file(), "").expect("room");
        let pid = match victim {
            Victim::Worker => Some(ripe_worker(&server)),
            Victim::Owner => owner(&server),
            Victim::Server => None,
        };
        let jobs: Vec<String> = (0..JOBS).map(|job| format!("{round}-{job}")).collect();
        for job in &jobs {
            push(&server, &format!("proof/{job}"));
        }
        thread::sleep(Duration::from_millis(random.below(60)));
        let mut died = now();
        match pid {
            Some(pid) => kill(Pid::from_raw(pid), Signal::SIGKILL).expect("a process"),
            None => {
                server.process().signal(Signal::SIGKILL);
                drop(server);
                let next = site.options().workers(WORKERS).start();
                died = died.max(now());
                server = next;
            }
        }
        let shown = shown.entry(victim).or_default();
        shown.kills += 1;
        if victim == Victim::Owner {
            let begun = Instant::now();
            push(&server, &format!("proof/{round}-last"));
            shown.waits.push(begun.elapsed().as_secs_f64());
        }
        wait_for("jobs are left", || {
            let noted = notes(&site);
            let done = noted.iter().filter(|note| !note.begins);
            let done: HashSet<&str> = done.map(|note| note.job.as_str()).collect();
            jobs.iter().all(|job| done.contains(job.as_str()))
        });
        let noted = notes(&site);
        for job in &jobs {
            let own = || noted.iter().filter(|note| note.job == *job);
            let runs: Vec<&Note> = own().filter(|note| note.begins).collect();
            let most = if victim == Victim::Owner { 1 } else { 2 };
            let pids: Vec<i32> = runs.iter().map(|note| note.pid).collect();
            assert!(runs.len() <= most, "{victim:?}: {job} ran in {pids:?}");
            assert!(own().filter(|note| !note.begins).count() <= most);
            if let [_, second] = runs[..] {
                shown.again += 1;
                // A server that starts may give jobs out before it says that it is ready.
                shown.waits.push((second.at - died).max(0.0));
            }
        }
    }
    site.wait_until_none_is_left("proof");
    assert_eq!(site.counts("proof")["failed"], 0);
    for (victim, shown) in &mut shown {
        shown.waits.sort_by(f64::total_cmp);
        let longest = shown.waits.last().copied().unwrap_or(0.0);
        let middle = shown.waits.get(shown.waits.len() / 2).unwrap_or(&0.0);
        println!(
            "{victim:?}: {} kills, none of {} jobs lost, {} ran again; wait {:.0} ms in the middle, {:.0} ms at most",
            shown.kills,
            shown.kills * JOBS,
            shown.again,
            middle * 1000.0,
            longest * 1000.0
        );
    }
}
