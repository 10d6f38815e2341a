//! The boot of a process: it becomes ready, fails with an error, or takes too long.

use std::time::Duration;

use super::{Action, Id, Life, Now, Outcome, Phase, Process, State};

/// A worker ends its own boot when its time is over. If it has not ended this much later, it never will.
pub(super) const LATE_BOOT: Duration = Duration::from_secs(12);

impl State {
    pub(super) fn ready(&mut self, id: Id, now: Now) -> Vec<Action> {
        let Some(process) = self.processes.get_mut(&id) else {
            return Vec::new();
        };
        if process.life != Life::Starting || self.phase != Phase::Serving {
            return Vec::new();
        }
        process.life = Life::Ready;
        let seat = process.seat;
        let mut actions = Vec::new();
        if self.announced && !self.seats[seat].plain {
            actions.push(Action::Adopt { id, seat });
        }
        if self.seats[seat].next == Some(id) {
            actions.extend(self.succeed(seat, id, now));
        }
        actions.extend(self.plain_ready(id, now));
        let serves = |seat: usize| {
            let current: Option<Id> = self.seats[seat].current;
            current.is_some_and(|id| self.is_serving(id))
        };
        if !self.announced && self.awake().all(serves) {
            self.announced = true;
            let workers = self.seats.iter().enumerate().filter(|(_, it)| !it.plain);
            actions.extend(
                workers.filter_map(|(seat, it)| it.current.map(|id| Action::Adopt { id, seat })),
            );
            actions.push(Action::Announce);
        }
        actions
    }

    pub(super) fn boot_failed(&mut self, id: Id, message: String) -> Vec<Action> {
        if let Some(process) = self.processes.get_mut(&id) {
            process.boot_failed = true;
        }
        if self.phase != Phase::Serving {
            // All workers fail in the same way: one message is enough.
            return Vec::new();
        }
        self.boot_error = Some(message.clone());
        if self.is_reloading_with(id) {
            // The reload will report the error.
            return Vec::new();
        }
        let mut actions = vec![Action::Log(message)];
        if !self.announced {
            actions.extend(self.end(Outcome::BootFailed));
        }
        actions
    }

    pub(super) fn must_be_ready_at(&self, process: &Process) -> Now {
        process.since + self.boot + LATE_BOOT
    }

    /// Kills processes whose boot takes too long: at the start, in place of a dead worker, or of one to be recycled.
    pub(super) fn kill_late_boots(&mut self, now: Now) -> Vec<Action> {
        let late = self.processes.iter().filter(|(_, process)| {
            process.life == Life::Starting && now >= self.must_be_ready_at(process)
        });
        let late: Vec<(Id, usize)> = late.map(|(&id, process)| (id, process.seat)).collect();
        let mut actions = Vec::new();
        for (id, seat) in late {
            if let Some(process) = self.processes.get_mut(&id) {
                process.life = Life::Leaving { kill_at: None };
            }
            let message = format!(
                "worker {} did not boot within boot_timeout, {:?}, nor does it end; killing it",
                seat + 1,
                self.boot
            );
            actions.push(Action::Kill(id));
            actions.extend(self.boot_failed(id, message));
        }
        actions
    }
}
