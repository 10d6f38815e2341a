//! Processes of the server that serve no requests: the one that has the jobs of queues, and those that `[process]` names.
//!
//! Decides when one starts and ends; `executor/companions.rs` carries it out.

use std::fmt;
use std::time::Duration;

use nix::unistd::Pid;
use serde_json::{json, Value};

use crate::state::{Death, Now};

/// One that dies sooner than this has not really started.
const EARLY: Duration = Duration::from_secs(1);
/// The pause after an early death; it doubles with each one.
const BACK_OFF: Duration = Duration::from_millis(100);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(10);
/// Of one that was killed: that is not its own fault, and others wait for it.
const LONGEST_AFTER_KILL: Duration = Duration::from_millis(400);

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
    /// All that it does, in the child; returns the exit code. With 0 it has ended for good, until it is asked for.
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
}

struct Kept<'a> {
    companion: Companion<'a>,
    pid: Option<Pid>,
    since: Now,
    /// When it is started, if it does not run.
    start: Option<Now>,
    /// It was told to end, and another one is to start.
    again: bool,
    early_deaths: u32,
    restarts: u64,
    last: Option<String>,
}

impl<'a> Companions<'a> {
    pub(crate) fn new(all: Vec<Companion<'a>>) -> Self {
        let kept = |companion| Kept {
            companion,
            pid: None,
            since: Now::ZERO,
            start: None,
            again: false,
            early_deaths: 0,
            restarts: 0,
            last: None,
        };
        Companions {
            all: all.into_iter().map(kept).collect(),
            ending: false,
        }
    }

    /// The server serves: those start that are always there.
    pub(crate) fn begin(&mut self, now: Now) {
        for kept in &mut self.all {
            if !kept.companion.on_demand && kept.pid.is_none() {
                kept.start.get_or_insert(now);
            }
        }
    }

    /// A worker needs this one.
    pub(crate) fn summon(&mut self, name: &str, now: Now) {
        for kept in &mut self.all {
            if kept.companion.name == name && kept.pid.is_none() {
                kept.start.get_or_insert(now);
            }
        }
    }

    /// When the next one is due.
    pub(crate) fn due(&self) -> Option<Now> {
        let waiting = self.all.iter().filter(|_| !self.ending);
        waiting.filter_map(|kept| kept.start).min()
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
    }

    pub(crate) fn run(&self, index: usize) -> i32 {
        (self.all[index].companion.run)()
    }

    /// What is to be logged; `None`: it is none of these.
    pub(crate) fn exited(&mut self, pid: Pid, death: Death, now: Now) -> Option<String> {
        let kept = self.all.iter_mut().find(|kept| kept.pid == Some(pid))?;
        kept.pid = None;
        let name = &kept.companion.name;
        if self.ending {
            return Some(String::new());
        }
        if std::mem::take(&mut kept.again) {
            kept.start = Some(now);
            return Some(String::new());
        }
        if death == Death::Exit(0) {
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
        let pause = BACK_OFF * 2u32.pow((kept.early_deaths - 1).min(10));
        let pause = pause.min(match death {
            Death::Exit(_) => LONGEST_BACK_OFF,
            Death::Signal(_) => LONGEST_AFTER_KILL,
        });
        kept.start = Some(now + pause);
        Some(format!(
            "process {name} {death} right after its start; starting another in {} ms",
            pause.as_millis()
        ))
    }

    /// There is new code: these are told to end, and others start.
    pub(crate) fn reload(&mut self) -> Vec<Pid> {
        let with_code = self.all.iter_mut().filter(|kept| kept.companion.reloads);
        let running = with_code.filter_map(|kept| {
            kept.again = kept.pid.is_some();
            kept.pid
        });
        running.collect()
    }

    /// The server begins to end: those are told to that no worker needs.
    pub(crate) fn leave(&mut self) -> Vec<Pid> {
        let mut pids = Vec::new();
        for kept in &mut self.all {
            if !kept.companion.outlives_workers {
                kept.start = None;
                kept.again = false;
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
mod tests {
    use super::*;

    fn companions() -> Companions<'static> {
        let companion = |name: &str, on_demand| Companion {
            name: name.to_owned(),
            on_demand,
            outlives_workers: on_demand,
            reloads: !on_demand,
            run: Box::new(|| 0),
        };
        Companions::new(vec![companion("jobs", true), companion("mail", false)])
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn one_starts_when_it_is_asked_for_and_again_after_its_death() {
        let mut all = companions();
        all.begin(Now::ZERO);
        assert_eq!(all.next(Now::ZERO), Some(1));
        all.started(1, Pid::from_raw(11), Now::ZERO);
        assert_eq!(all.next(Now::ZERO), None);
        all.summon("jobs", SECOND);
        assert_eq!(all.next(SECOND), Some(0));
        all.started(0, Pid::from_raw(10), SECOND);
        let death = Death::Signal("SIGKILL");
        let said = all.exited(Pid::from_raw(10), death, 3 * SECOND);
        assert!(said.is_some_and(|said| said.ends_with("starting another")));
        assert_eq!(all.next(3 * SECOND), Some(0));
        // One that has ended for good.
        all.started(0, Pid::from_raw(12), 3 * SECOND);
        all.exited(Pid::from_raw(12), Death::Exit(0), 4 * SECOND);
        assert_eq!(all.next(100 * SECOND), None);
        assert!(all.exited(Pid::from_raw(99), death, SECOND).is_none());
    }

    #[test]
    fn early_deaths_make_pauses_that_grow() {
        let mut all = companions();
        let (mut now, mut pauses) = (Now::ZERO, Vec::new());
        all.begin(now);
        for pid in 1..=9 {
            now = all.due().expect("another one");
            all.started(1, Pid::from_raw(pid), now);
            all.exited(Pid::from_raw(pid), Death::Exit(1), now);
            let due = all.due().expect("another one");
            pauses.push((due - now).as_millis());
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000]);
    }

    #[test]
    fn a_reload_starts_those_with_code_anew_and_none_starts_at_the_end() {
        let mut all = companions();
        all.begin(Now::ZERO);
        all.started(1, Pid::from_raw(1), Now::ZERO);
        all.summon("jobs", Now::ZERO);
        all.started(0, Pid::from_raw(2), Now::ZERO);
        assert_eq!(all.reload(), [Pid::from_raw(1)]);
        all.exited(Pid::from_raw(1), Death::Signal("SIGTERM"), SECOND);
        assert_eq!(all.next(SECOND), Some(1));
        all.started(1, Pid::from_raw(3), SECOND);
        assert_eq!(all.leave(), [Pid::from_raw(3)]);
        assert_eq!(all.end(), [Pid::from_raw(2), Pid::from_raw(3)]);
        all.exited(Pid::from_raw(2), Death::Exit(1), SECOND);
        all.exited(Pid::from_raw(3), Death::Exit(1), SECOND);
        assert!(all.is_empty() && all.due().is_none());
    }
}
