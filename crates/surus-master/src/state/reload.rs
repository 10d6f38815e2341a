//! A reload: the new version boots in every worker while the old one serves; then all workers switch to it, or none.
//!
//! ```text
//!   Reload ──► Prepare the first worker ──► Prepared ──► Prepare the others ──► all Prepared ──► Commit all ──► done
//!                       │                                        │
//!                       └── PrepareFailed, deadline, death ◄─────┘──► Abort all: the old version keeps serving
//! ```
//!
//! Before that, plain processes (`plain.rs`) are replaced one after the other by successors that have booted the new
//! version. If the first of these does not boot, nothing has changed. Then the predecessors have to stop taking
//! requests from the queue.
//!
//! Only the first worker invalidates changed files in OPcache, and shows whether the new version boots at all.
//!
//! The result is reported when no request can go to the old version any more: predecessors have reported that they are
//! retired, workers that they have committed.

mod plain;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use super::{Action, Death, Id, Life, Now, Phase, State};

/// How long predecessors of plain processes may take to report that they are retired, and workers that they have
/// committed. One that takes longer is busy with a computation, and does so as soon as that is over.
const ACKNOWLEDGE: Duration = Duration::from_secs(5);

/// The result of a reload is held back for at most this number of follow-up reloads in a row.
const MOST_FOLLOW_UPS: u32 = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// Seats of plain processes that are still to be replaced; the first one is being replaced now.
    Replacing(VecDeque<usize>),
    /// The predecessors of plain processes are about to stop taking requests from the queue.
    Retiring,
    /// Workers boot the new version while the old one serves.
    Booting,
    /// These workers are about to switch to the new version.
    Committing(BTreeSet<Id>),
}

#[derive(Debug)]
pub(super) struct Reload {
    number: u64,
    stage: Stage,
    /// Workers that were told to boot the new version and have not answered.
    booting: BTreeSet<Id>,
    prepared: BTreeSet<Id>,
    /// Workers that are told once the first one has booted.
    others: BTreeSet<Id>,
    /// The deadline of this stage.
    pub(super) until: Now,
}

impl State {
    pub(super) fn begin_reload(&mut self, since: u64, now: Now) -> Vec<Action> {
        if self.phase != Phase::Serving {
            return vec![Action::Reloaded(Err("the server ends".to_owned()))];
        }
        if self.reload.is_some() || !self.announced || self.upgrading {
            self.reload_again = Some(self.reload_again.map_or(since, |other| other.min(since)));
            return Vec::new();
        }
        let mut workers: BTreeSet<Id> = self
            .processes
            .iter()
            .filter(|(_, process)| process.life == Life::Ready && !self.seats[process.seat].plain)
            .map(|(&id, _)| id)
            .collect();
        // Workers that are starting may have read old or new files: `catch_up` handles them.
        self.generation += 1;
        let Some(&first) = workers.first() else {
            return vec![Action::Reloaded(Err(
                "no worker serves; those that start boot the new version".to_owned(),
            ))];
        };
        let number = self.generation;
        let plain: VecDeque<usize> = self.awake().filter(|&at| self.seats[at].plain).collect();
        let mut reload = Reload {
            number,
            stage: Stage::Booting,
            booting: BTreeSet::new(),
            prepared: BTreeSet::new(),
            others: BTreeSet::new(),
            until: now + self.boot,
        };
        if !plain.is_empty() {
            reload.stage = Stage::Replacing(plain);
            reload.others = workers;
            self.reload = Some(reload);
            let mut actions = vec![Action::Refresh(since)];
            actions.extend(self.replace_plain(now));
            return actions;
        }
        workers.remove(&first);
        reload.others = workers;
        reload.booting.insert(first);
        self.reload = Some(reload);
        vec![Action::Prepare {
            id: first,
            reload: number,
            refresh: Some(since),
        }]
    }

    /// Whether the result is held back for another reload, which was requested meanwhile, or is for workers that were
    /// starting when the last one began. Bounded, since workers may die all the time.
    pub(crate) fn is_reload_continued(&self) -> bool {
        let is_to_come = self.reload.is_some() || self.reload_again.is_some();
        is_to_come && self.follow_ups <= MOST_FOLLOW_UPS
    }

    /// What a reload waits for, and until when.
    pub(crate) fn awaited(&self) -> Option<(String, Now)> {
        let reload = self.reload.as_ref()?;
        let numbers = |ids: &BTreeSet<Id>| {
            let seats = ids.iter().filter_map(|id| self.processes.get(id));
            let numbers: Vec<String> = seats.map(|it| (it.seat + 1).to_string()).collect();
            match numbers.len() {
                1 => format!("worker {}", numbers[0]),
                _ => format!("workers {}", numbers.join(", ")),
            }
        };
        let what = match &reload.stage {
            Stage::Replacing(seats) => {
                let seat = seats.front().map_or(0, |seat| seat + 1);
                format!("process {seat} to boot the new version")
            }
            Stage::Retiring => "processes to end with the old version".to_owned(),
            Stage::Booting => format!("{} to boot the new version", numbers(&reload.booting)),
            Stage::Committing(ids) => format!("{} to serve the new version", numbers(ids)),
        };
        Some((what, reload.until))
    }

    pub(super) fn prepared(&mut self, id: Id, number: u64, now: Now) -> Vec<Action> {
        let Some(reload) = self.reload.as_mut().filter(|each| each.number == number) else {
            return Vec::new();
        };
        if reload.booting.remove(&id) {
            reload.prepared.insert(id);
        }
        self.advance_reload(now)
    }

    pub(super) fn committed(&mut self, id: Id, number: u64, now: Now) -> Vec<Action> {
        if let Some(reload) = self.reload.as_mut().filter(|each| each.number == number) {
            if let Stage::Committing(workers) = &mut reload.stage {
                workers.remove(&id);
            }
        }
        self.advance_reload(now)
    }

    /// Begins the next stage, if this one is done.
    fn advance_reload(&mut self, now: Now) -> Vec<Action> {
        let shared = self.is_line_shared();
        let Some(reload) = &mut self.reload else {
            return Vec::new();
        };
        match &reload.stage {
            Stage::Replacing(_) => Vec::new(),
            Stage::Retiring if shared => Vec::new(),
            Stage::Retiring => self.boot_workers(now),
            Stage::Booting if !reload.booting.is_empty() => Vec::new(),
            Stage::Booting if !reload.others.is_empty() => self.boot_workers(now),
            Stage::Booting => self.commit(now),
            Stage::Committing(workers) if !workers.is_empty() => Vec::new(),
            Stage::Committing(_) => self.end_reload(),
        }
    }

    /// Lets the remaining workers boot: the new version is known to boot.
    fn boot_workers(&mut self, now: Now) -> Vec<Action> {
        let Some(reload) = &mut self.reload else {
            return Vec::new();
        };
        if reload.stage == Stage::Retiring {
            reload.stage = Stage::Booting;
            reload.until = now + self.boot;
        }
        reload.booting = std::mem::take(&mut reload.others);
        if reload.booting.is_empty() {
            // The workers have died meanwhile; others are starting.
            return self.advance_reload(now);
        }
        let booting = reload.booting.iter();
        booting
            .map(|&id| Action::Prepare {
                id,
                reload: reload.number,
                refresh: None,
            })
            .collect()
    }

    fn commit(&mut self, now: Now) -> Vec<Action> {
        let Some(reload) = &mut self.reload else {
            return Vec::new();
        };
        let (number, prepared) = (reload.number, std::mem::take(&mut reload.prepared));
        reload.stage = Stage::Committing(prepared.clone());
        reload.until = now + ACKNOWLEDGE;
        for id in &prepared {
            if let Some(process) = self.processes.get_mut(id) {
                process.generation = number;
            }
        }
        let commits = prepared.into_iter().map(|id| Action::Commit(id, number));
        let mut actions: Vec<Action> = commits.collect();
        actions.extend(self.advance_reload(now));
        actions
    }

    fn end_reload(&mut self) -> Vec<Action> {
        self.reload = None;
        vec![Action::Reloaded(Ok(()))]
    }

    pub(super) fn prepare_failed(&mut self, id: Id, number: u64, error: String) -> Vec<Action> {
        if !self.reload.as_ref().is_some_and(|reload| {
            reload.number == number
                && (reload.booting.contains(&id) || reload.prepared.contains(&id))
        }) {
            return Vec::new();
        }
        self.give_up_reload(&error)
    }

    pub(super) fn reload_late(&mut self, now: Now) -> Vec<Action> {
        let late = self.reload.as_ref().filter(|reload| now >= reload.until);
        match late.map(|reload| &reload.stage) {
            None => Vec::new(),
            Some(Stage::Replacing(_) | Stage::Booting) => {
                let error = format!(
                    "the new version did not boot within boot_timeout, {:?}",
                    self.boot
                );
                let next = self.replaced_seat().and_then(|seat| self.seats[seat].next);
                let mut actions = self.give_up_reload(&error);
                // Otherwise it would serve the new version once it has booted, while others do not. Its report may have
                // arrived already.
                if let Some(late) = next.and_then(|id| self.processes.get_mut(&id)) {
                    late.life = Life::Leaving { kill_at: None };
                }
                actions.extend(next.map(Action::Kill));
                actions
            }
            Some(Stage::Retiring) => self.boot_workers(now),
            Some(Stage::Committing(_)) => self.end_reload(),
        }
    }

    /// Ends the reload with an error: the old version keeps serving.
    pub(super) fn give_up_reload(&mut self, error: &str) -> Vec<Action> {
        let Some(reload) = self.reload.take() else {
            return Vec::new();
        };
        // The running processes must not count as outdated after this.
        for process in self.processes.values_mut() {
            process.generation = self.generation;
        }
        reload
            .booting
            .iter()
            .chain(&reload.prepared)
            .chain(&reload.others)
            .map(|&id| Action::Abort(id, reload.number, error.to_owned()))
            .chain([Action::Reloaded(Err(error.to_owned()))])
            .collect()
    }

    /// The same, and refuses a reload that was requested meanwhile.
    pub(super) fn refuse_reloads(&mut self, why: &str) -> Vec<Action> {
        let mut actions = self.give_up_reload(why);
        if self.reload_again.take().is_some() && actions.is_empty() {
            actions.push(Action::Reloaded(Err(why.to_owned())));
        }
        actions
    }

    /// A process has died. If the first one crashes, that is because of the new version. If it was killed from outside,
    /// another worker is tried, and its replacement boots the new version anyway.
    pub(super) fn reload_lost(
        &mut self,
        id: Id,
        seat: usize,
        death: Death,
        now: Now,
    ) -> Vec<Action> {
        if self.is_reloading_with(id) {
            let error = self.boot_error.take();
            let error = error.unwrap_or_else(|| format!("its process {death}"));
            return self.give_up_reload(&error);
        }
        let Some(reload) = &mut self.reload else {
            return Vec::new();
        };
        if let Stage::Committing(workers) = &mut reload.stage {
            workers.remove(&id);
        }
        reload.others.remove(&id);
        reload.prepared.remove(&id);
        if !reload.booting.remove(&id) {
            return self.advance_reload(now);
        }
        let nobody_has_booted_it = reload.prepared.is_empty() && reload.booting.is_empty();
        if !nobody_has_booted_it {
            return self.advance_reload(now);
        }
        match reload.others.pop_first() {
            Some(next) if death == Death::Signal("SIGKILL") => {
                reload.booting.insert(next);
                reload.until = now + self.boot;
                vec![Action::Prepare {
                    id: next,
                    reload: reload.number,
                    refresh: Some(0),
                }]
            }
            _ => {
                let error = format!("worker {} {death} while it booted", seat + 1);
                self.give_up_reload(&error)
            }
        }
    }

    /// Begins a reload that was requested meanwhile, or one for workers that were starting when the last one began.
    pub(super) fn catch_up(&mut self, now: Now) -> Vec<Action> {
        let is_busy = self.reload.is_some() || self.upgrading;
        if is_busy || !self.announced || self.phase != Phase::Serving {
            return Vec::new();
        }
        let outdated = self
            .processes
            .values()
            .any(|process| process.life == Life::Ready && process.generation < self.generation);
        let since = match self.reload_again.take() {
            Some(since) => since,
            // Changed files are already invalidated in OPcache.
            None if outdated => u64::MAX,
            None => return Vec::new(),
        };
        self.follow_ups += 1;
        self.begin_reload(since, now)
    }
}
