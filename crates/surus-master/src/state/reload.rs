//! A reload: the new version boots beside the old one in every worker, then serves in all of them, or in none.
//!
//! ```text
//!   Reload ──► Prepare the first worker ──► Prepared ──► Prepare the others ──► all Prepared ──► Commit all
//!                       │                                        │
//!                       └── PrepareFailed, deadline, death ◄─────┘──► Abort all: the old version goes on
//! ```
//!
//! Plain processes come before that, one after the other: each is replaced by a successor that has booted the new version.
//! If the first of them does not boot, nothing has changed.
//!
//! The first worker alone makes OPcache forget what has changed, and finds out whether the new version boots at all.

use std::collections::{BTreeSet, VecDeque};

use super::{Action, Death, Id, Life, Now, Phase, State};

#[derive(Debug)]
pub(super) struct Reload {
    number: u64,
    /// Seats of plain processes that are still to be replaced; the first one is being replaced now.
    plain: VecDeque<usize>,
    /// Told to boot, and have not answered.
    booting: BTreeSet<Id>,
    prepared: BTreeSet<Id>,
    /// Still to be told, once the first one has booted.
    others: BTreeSet<Id>,
    pub(super) until: Now,
}

impl State {
    pub(super) fn begin_reload(&mut self, since: u64, now: Now) -> Vec<Action> {
        if self.phase != Phase::Serving {
            return vec![Action::Reloaded(Err("the server ends".to_owned()))];
        }
        if self.reload.is_some() || !self.announced {
            self.reload_again = Some(self.reload_again.map_or(since, |other| other.min(since)));
            return Vec::new();
        }
        let mut ready: BTreeSet<Id> = self
            .processes
            .iter()
            .filter(|(_, process)| process.life == Life::Ready && !self.seats[process.seat].plain)
            .map(|(&id, _)| id)
            .collect();
        let plain: VecDeque<usize> = (0..self.seats.len())
            .filter(|&seat| self.seats[seat].plain)
            .collect();
        // Those that are starting may have read the old files or the new ones: `catch_up` sees to them.
        self.generation += 1;
        let Some(first) = ready.pop_first() else {
            return vec![Action::Reloaded(Err(
                "no worker serves; those that start boot the new version".to_owned(),
            ))];
        };
        let number = self.generation;
        let mut reload = Reload {
            number,
            plain,
            booting: BTreeSet::new(),
            prepared: BTreeSet::new(),
            others: ready,
            until: now + self.boot,
        };
        if !reload.plain.is_empty() {
            reload.others.insert(first);
            self.reload = Some(reload);
            // Those that are there already, or leave, are none of this one's business.
            return [Action::Refresh(since)]
                .into_iter()
                .chain(self.replace_plain(now))
                .collect();
        }
        reload.booting.insert(first);
        self.reload = Some(reload);
        vec![Action::Prepare {
            id: first,
            reload: number,
            refresh: Some(since),
        }]
    }

    /// Starts the successor in the next plain seat; goes on with the workers when there is none.
    fn replace_plain(&mut self, now: Now) -> Vec<Action> {
        let Some(reload) = &mut self.reload else {
            return Vec::new();
        };
        reload.until = now + self.boot;
        match reload.plain.front() {
            Some(&seat) if self.seats[seat].next.is_none() => {
                let (next, action) = self.spawn(seat, now);
                self.seats[seat].next = Some(next);
                vec![action]
            }
            // It is being recycled: that successor boots the new version, or has been started just before.
            Some(_) => Vec::new(),
            None => self.advance_reload(),
        }
    }

    pub(super) fn is_reloading(&self, seat: usize) -> bool {
        self.reload
            .as_ref()
            .is_some_and(|reload| reload.plain.front() == Some(&seat))
    }

    /// A successor serves in this seat.
    pub(super) fn plain_replaced(&mut self, seat: usize, now: Now) -> Vec<Action> {
        if !self.is_reloading(seat) {
            return Vec::new();
        }
        if let Some(reload) = &mut self.reload {
            reload.plain.pop_front();
        }
        self.replace_plain(now)
    }

    pub(super) fn prepared(&mut self, id: Id, number: u64) -> Vec<Action> {
        let Some(reload) = self.reload.as_mut().filter(|each| each.number == number) else {
            return Vec::new();
        };
        if reload.booting.remove(&id) {
            reload.prepared.insert(id);
        }
        self.advance_reload()
    }

    fn advance_reload(&mut self) -> Vec<Action> {
        let idle = |each: &&mut Reload| each.booting.is_empty() && each.plain.is_empty();
        let Some(reload) = self.reload.as_mut().filter(idle) else {
            return Vec::new();
        };
        let number = reload.number;
        if !reload.others.is_empty() {
            reload.booting = std::mem::take(&mut reload.others);
            let booting = reload.booting.iter();
            return booting
                .map(|&id| Action::Prepare {
                    id,
                    reload: number,
                    refresh: None,
                })
                .collect();
        }
        let prepared = std::mem::take(&mut reload.prepared);
        self.reload = None;
        for id in &prepared {
            if let Some(process) = self.processes.get_mut(id) {
                process.generation = number;
            }
        }
        let commits = prepared.into_iter().map(|id| Action::Commit(id, number));
        commits.chain([Action::Reloaded(Ok(()))]).collect()
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
        if self
            .reload
            .as_ref()
            .is_some_and(|reload| now >= reload.until)
        {
            let error = format!("it did not boot within {} s", self.boot.as_secs());
            return self.give_up_reload(&error);
        }
        Vec::new()
    }

    /// The old version stays.
    pub(super) fn give_up_reload(&mut self, error: &str) -> Vec<Action> {
        let Some(reload) = self.reload.take() else {
            return Vec::new();
        };
        // What runs is as current as it gets: it must not be taken for outdated.
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

    /// A process has died. A crash of the first one is the new version's fault; a kill from outside is nobody's, and
    /// what is started in its place boots the new version anyway.
    pub(super) fn reload_lost(
        &mut self,
        id: Id,
        seat: usize,
        death: Death,
        now: Now,
    ) -> Vec<Action> {
        let Some(reload) = &mut self.reload else {
            return Vec::new();
        };
        if reload.plain.front() == Some(&seat) && self.seats[seat].next == Some(id) {
            let error = self.boot_error.take();
            let error = error.unwrap_or_else(|| format!("its process {death}"));
            return self.give_up_reload(&error);
        }
        reload.others.remove(&id);
        reload.prepared.remove(&id);
        if !reload.booting.remove(&id) {
            return Vec::new();
        }
        let nobody_has_booted_it = reload.prepared.is_empty() && reload.booting.is_empty();
        if !nobody_has_booted_it {
            return self.advance_reload();
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

    /// Begins a reload that was asked for meanwhile, and one for workers that were starting when the last one began.
    pub(super) fn catch_up(&mut self, now: Now) -> Vec<Action> {
        if self.reload.is_some() || !self.announced || self.phase != Phase::Serving {
            return Vec::new();
        }
        let outdated = self
            .processes
            .values()
            .any(|process| process.life == Life::Ready && process.generation < self.generation);
        match self.reload_again.take() {
            Some(since) => self.begin_reload(since, now),
            // OPcache has forgotten what had changed.
            None if outdated => self.begin_reload(u64::MAX, now),
            None => Vec::new(),
        }
    }
}
