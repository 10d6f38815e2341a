//! Processes of the server that serve no requests: the one that has the jobs of queues, and those that `[process]` names.
//!
//! Decides when one starts and ends; `executor/companions.rs` carries it out. [`output`] is what they print.

mod output;

use std::fmt;
use std::time::Duration;

use nix::unistd::Pid;
use serde_json::{json, Value};

use crate::state::{Death, Now};
pub(crate) use output::{Outputs, Printed};

/// One that dies sooner than this has not really started.
const EARLY: Duration = Duration::from_secs(1);
/// The pause after an early death; it doubles with each one.
const BACK_OFF: Duration = Duration::from_millis(100);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(10);
/// Of one that was killed: that is not its own fault, and others wait for it.
const LONGEST_AFTER_KILL: Duration = Duration::from_millis(400);

/// Of one that the system could not start: processes or memory may be there again soon.
const LONGEST_AFTER_REFUSAL: Duration = Duration::from_secs(2);

fn pause(deaths: u32) -> Duration {
    BACK_OFF * 2u32.pow(deaths.saturating_sub(1).min(10))
}

/// A process beside the workers.
pub struct Companion<'a> {
    /// For people, and for [`Report::Summon`](crate::Report::Summon).
    pub name: String,
    /// It starts when a worker asks for it.
    pub on_demand: bool,
    /// Workers need it until they have ended; otherwise it ends when the server begins to.
    pub outlives_workers: bool,
    /// It has code of the application: a reload starts it anew.
    pub reloads: bool,
    /// Whether it starts again after it has exited with 0. After any other end it does.
    pub always: bool,
    /// All that it does, in the child; returns the exit code.
    pub run: Box<dyn Fn() -> i32 + 'a>,
}

impl fmt::Debug for Companion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Companion")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

pub(crate) struct Companions<'a> {
    all: Vec<Kept<'a>>,
    /// None starts any more.
    ending: bool,
    /// The next server serves.
    taken_over: bool,
}

struct Kept<'a> {
    companion: Companion<'a>,
    pid: Option<Pid>,
    since: Now,
    /// When it is started, if it does not run.
    start: Option<Now>,
    /// It was told to end, and another one is to start.
    again: bool,
    /// It was told to end for good.
    leaves: bool,
    /// When it is killed, if it was told to end and does not.
    kill_at: Option<Now>,
    early_deaths: u32,
    restarts: u64,
    last: Option<String>,
    /// One could not be started; said once, until one is.
    refused: bool,
}

impl<'a> Companions<'a> {
    pub(crate) fn new(all: Vec<Companion<'a>>) -> Self {
        let kept = |companion| Kept {
            companion,
            pid: None,
            since: Now::ZERO,
            start: None,
            again: false,
            leaves: false,
            kill_at: None,
            early_deaths: 0,
            restarts: 0,
            last: None,
            refused: false,
        };
        Companions {
            all: all.into_iter().map(kept).collect(),
            ending: false,
            taken_over: false,
        }
    }

    /// The next server serves. One that leaves what it has to that server's is not started here again, or they would take it from each
    /// other: workers that are left ask for it while neither of the two is there.
    pub(crate) fn taken_over(&mut self) {
        self.taken_over = true;
    }

    /// The server serves: those start that are always there.
    pub(crate) fn begin(&mut self, now: Now) {
        for kept in &mut self.all {
            if !kept.companion.on_demand && kept.pid.is_none() && !kept.leaves {
                kept.start.get_or_insert(now);
            }
        }
    }

    /// A worker needs this one.
    pub(crate) fn summon(&mut self, name: &str, now: Now) {
        for kept in &mut self.all {
            if kept.companion.name == name && kept.pid.is_none() && !kept.leaves {
                kept.start.get_or_insert(now);
            }
        }
    }

    /// When the next one is due.
    pub(crate) fn due(&self) -> Option<Now> {
        let waiting = self.all.iter().filter(|_| !self.ending);
        waiting
            .flat_map(|kept| [kept.start, kept.kill_at])
            .flatten()
            .min()
    }

    /// One that is to start now.
    pub(crate) fn next(&self, now: Now) -> Option<usize> {
        let is_due = |kept: &Kept<'_>| kept.start.is_some_and(|start| start <= now);
        self.all.iter().position(is_due).filter(|_| !self.ending)
    }

    pub(crate) fn started(&mut self, index: usize, pid: Pid, now: Now) {
        let kept = &mut self.all[index];
        kept.pid = Some(pid);
        kept.since = now;
        kept.start = None;
        kept.refused = false;
    }

    /// The system could not start it: it is tried again after a pause. Returns what is to be logged.
    pub(crate) fn refused(&mut self, index: usize, why: Death, now: Now) -> Option<String> {
        let kept = &mut self.all[index];
        kept.early_deaths += 1;
        kept.last = Some(why.to_string());
        kept.start = Some(now + pause(kept.early_deaths).min(LONGEST_AFTER_REFUSAL));
        let is_news = !std::mem::replace(&mut kept.refused, true);
        is_news.then(|| format!("process {} {why}; trying again", kept.companion.name))
    }

    pub(crate) fn run(&self, index: usize) -> i32 {
        (self.all[index].companion.run)()
    }

    /// What is to be logged; `None`: it is none of these.
    pub(crate) fn exited(&mut self, pid: Pid, death: Death, now: Now) -> Option<String> {
        let kept = self.all.iter_mut().find(|kept| kept.pid == Some(pid))?;
        kept.pid = None;
        kept.kill_at = None;
        let name = &kept.companion.name;
        if self.ending || kept.leaves {
            return Some(String::new());
        }
        if std::mem::take(&mut kept.again) {
            kept.start = Some(now);
            return Some(String::new());
        }
        if death == Death::Exit(0) && !kept.companion.always {
            kept.leaves = self.taken_over;
            return Some(format!("process {name} has ended"));
        }
        kept.restarts += 1;
        kept.last = Some(death.to_string());
        let early = now.saturating_sub(kept.since) < EARLY;
        kept.early_deaths = if early { kept.early_deaths + 1 } else { 0 };
        if !early {
            kept.start = Some(now);
            return Some(format!("process {name} {death}; starting another"));
        }
        let pause = pause(kept.early_deaths).min(match death {
            Death::Exit(_) | Death::NotStarted(_) => LONGEST_BACK_OFF,
            Death::Signal(_) => LONGEST_AFTER_KILL,
        });
        kept.start = Some(now + pause);
        Some(format!(
            "process {name} {death} right after its start; starting another in {} ms",
            pause.as_millis()
        ))
    }

    /// There is new code: these are told to end, and others start. They have this time.
    pub(crate) fn reload(&mut self, now: Now, patience: Duration) -> Vec<Pid> {
        let with_code = self.all.iter_mut().filter(|kept| kept.companion.reloads);
        let running = with_code.filter_map(|kept| {
            kept.again = kept.pid.is_some();
            kept.kill_at = kept.pid.map(|_| now + patience);
            kept.pid
        });
        running.collect()
    }

    /// Those whose time to end is over, each once, with what is to be logged.
    pub(crate) fn late(&mut self, now: Now) -> Vec<(Pid, String)> {
        let mut late = Vec::new();
        for kept in &mut self.all {
            if kept.kill_at.is_some_and(|at| at <= now) {
                kept.kill_at = None;
                let name = &kept.companion.name;
                let message = format!("process {name} does not end for the reload; killing it");
                late.extend(kept.pid.map(|pid| (pid, message)));
            }
        }
        late
    }

    /// The server begins to end: those are told to that no worker needs.
    pub(crate) fn leave(&mut self) -> Vec<Pid> {
        let mut pids = Vec::new();
        for kept in &mut self.all {
            if !kept.companion.outlives_workers {
                kept.start = None;
                kept.again = false;
                kept.leaves = true;
                pids.extend(kept.pid);
            }
        }
        pids
    }

    /// No worker is left: all are told to end.
    pub(crate) fn end(&mut self) -> Vec<Pid> {
        self.ending = true;
        self.all.iter().filter_map(|kept| kept.pid).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.iter().all(|kept| kept.pid.is_none())
    }

    pub(crate) fn json(&self, now: Now) -> Value {
        let shown = self.all.iter().map(|kept| {
            let state = match (kept.pid, kept.start) {
                (Some(_), _) => "running",
                (None, Some(_)) => "waiting",
                (None, None) => "asleep",
            };
            json!({
                "process": kept.companion.name,
                "state": state,
                "pid": kept.pid.map(Pid::as_raw),
                "uptime_s": kept.pid.map(|_| now.saturating_sub(kept.since).as_secs_f64()),
                "restarts": kept.restarts,
                "last_restart": kept.last,
            })
        });
        shown.collect()
    }
}

#[cfg(test)]
mod tests;
