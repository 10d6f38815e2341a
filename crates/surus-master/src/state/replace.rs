//! Replaces workers without a lost request, one at a time: the successor starts on the same sockets while the worker
//! serves, and the worker drains when it is ready. An upgrade does the same with the whole master.

use std::time::Duration;

use super::{Action, Id, Life, Now, Phase, State};

/// Time to wait after a successor that did not start.
pub(super) const TRY_AGAIN: Now = Now::from_secs(10);

impl State {
    pub(super) fn stuck(&self, id: Id, time: Duration) -> Vec<Action> {
        let Some(process) = self.processes.get(&id) else {
            return Vec::new();
        };
        let number = process.seat + 1;
        vec![
            Action::Log(format!(
                "worker {number} has not answered for {:.1} s: a call into C does not return; killing it",
                time.as_secs_f64()
            )),
            Action::Kill(id),
        ]
    }

    pub(super) fn ask_recycle(&mut self, id: Id, reason: String) {
        if !self.recycle.iter().any(|(other, _)| *other == id) {
            self.recycle.push_back((id, reason));
        }
    }

    pub(crate) fn is_leaving(&self, id: Id) -> bool {
        let process = self.processes.get(&id);
        process.is_none_or(|process| matches!(process.life, Life::Leaving { .. }))
    }

    pub(super) fn is_replacing(&self) -> bool {
        self.reload.is_some() || self.seats.iter().any(|seat| seat.next.is_some())
    }

    /// Starts the successor of the next worker to be recycled.
    pub(super) fn recycle_next(&mut self, now: Now) -> Vec<Action> {
        let busy = !self.announced
            || self.phase != Phase::Serving
            || self.is_replacing()
            || self.recycle_not_before.is_some_and(|at| now < at);
        if busy {
            return Vec::new();
        }
        self.recycle_not_before = None;
        while let Some((id, reason)) = self.recycle.pop_front() {
            let Some(process) = self.processes.get(&id) else {
                continue;
            };
            let seat = process.seat;
            if self.seats[seat].current != Some(id) || process.life != Life::Ready {
                continue;
            }
            let (next, action) = self.spawn(seat, now);
            if let Some(process) = self.processes.get_mut(&next) {
                process.is_for_worn = true;
            }
            self.seats[seat].next = Some(next);
            self.seats[seat].reason = Some(reason.clone());
            let number = seat + 1;
            return vec![
                Action::Log(format!("worker {number} is replaced: {reason}")),
                action,
            ];
        }
        Vec::new()
    }

    /// The successor is ready.
    pub(super) fn succeed(&mut self, seat: usize, next: Id, now: Now) -> Vec<Action> {
        self.seats[seat].next = None;
        self.seats[seat].early_deaths = 0;
        // The predecessor may have died, so that a replacement was due after a pause.
        self.seats[seat].waiting = None;
        let Some(old) = self.seats[seat].current.replace(next) else {
            return Vec::new();
        };
        if !self.is_reloading(seat) {
            self.seats[seat].restarts += 1;
        }
        let kill_at = Some(now + self.drain);
        match self.processes.get_mut(&old) {
            Some(process) => {
                process.life = Life::Leaving { kill_at };
                vec![if self.seats[seat].plain {
                    Action::Retire(old)
                } else {
                    Action::Terminate(old)
                }]
            }
            None => Vec::new(),
        }
    }

    /// Kills processes that should have exited.
    pub(super) fn kill_late(&mut self, now: Now) -> Vec<Action> {
        let mut actions = Vec::new();
        for (&id, process) in &mut self.processes {
            if matches!(process.life, Life::Leaving { kill_at: Some(at) } if now >= at) {
                process.life = Life::Leaving { kill_at: None };
                let number = process.seat + 1;
                actions.push(Action::Log(format!(
                    "the predecessor of worker {number} did not end in time; killing it"
                )));
                actions.push(Action::Kill(id));
            }
        }
        actions
    }

    pub(super) fn begin_upgrade(&mut self) -> Vec<Action> {
        if self.phase != Phase::Serving || !self.announced || self.upgrading {
            let why = if self.upgrading {
                "an upgrade is under way"
            } else {
                "the server is not serving"
            };
            return vec![Action::Upgraded(Err(why.to_owned()))];
        }
        self.upgrading = true;
        vec![
            Action::Log("starting the new binary".to_owned()),
            Action::StartUpgrade,
        ]
    }

    pub(super) fn upgrade_failed(&mut self, error: String) -> Vec<Action> {
        if !std::mem::take(&mut self.upgrading) {
            return Vec::new();
        }
        vec![
            Action::Log(format!("the upgrade has failed, nothing changes: {error}")),
            Action::Upgraded(Err(error)),
        ]
    }

    /// The new master accepts on the same sockets: this one drains.
    pub(super) fn taken_over(&mut self, now: Now) -> Vec<Action> {
        if !std::mem::take(&mut self.upgrading) || self.phase != Phase::Serving {
            return Vec::new();
        }
        // The new master may have read the code before it changed.
        let is_outdated = self.reload_again.is_some();
        let mut actions = self.refuse_reloads(if is_outdated {
            "a new binary has taken over, and reloads now"
        } else {
            "a new binary has taken over"
        });
        actions.extend(is_outdated.then_some(Action::ReloadSuccessor));
        actions.push(Action::Log(
            "the new binary has taken over; this one finishes its requests".to_owned(),
        ));
        actions.push(Action::Upgraded(Ok(())));
        actions.extend(self.drain_all(now));
        actions
    }
}
