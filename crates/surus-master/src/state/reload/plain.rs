//! The plain processes in a reload: each is replaced by a successor that has booted the new version.

use super::{Stage, ACKNOWLEDGE};
use crate::state::{Action, Id, Now, State};

impl State {
    /// The plain seat whose process is being replaced by this reload.
    pub(super) fn replaced_seat(&self) -> Option<usize> {
        match &self.reload.as_ref()?.stage {
            Stage::Replacing(seats) => seats.front().copied(),
            _ => None,
        }
    }

    /// Starts the successor in the next plain seat; begins the next stage if there is none.
    pub(super) fn replace_plain(&mut self, now: Now) -> Vec<Action> {
        let Some(reload) = &mut self.reload else {
            return Vec::new();
        };
        let Stage::Replacing(seats) = &reload.stage else {
            return Vec::new();
        };
        let Some(&seat) = seats.front() else {
            reload.stage = Stage::Retiring;
            reload.until = now + ACKNOWLEDGE;
            return self.advance_reload(now);
        };
        reload.until = now + self.boot;
        if self.seats[seat].next.is_some() {
            // It is being recycled: `plain_ready` checks what that successor has booted.
            return Vec::new();
        }
        let (next, action) = self.spawn(seat, now);
        self.seats[seat].next = Some(next);
        vec![action]
    }

    pub(in crate::state) fn is_reloading(&self, seat: usize) -> bool {
        self.replaced_seat() == Some(seat)
    }

    /// This process is the successor that the reload waits for.
    pub(in crate::state) fn is_reloading_with(&self, id: Id) -> bool {
        self.replaced_seat()
            .is_some_and(|seat| self.seats[seat].next == Some(id))
    }

    /// This process serves in its seat now: as a successor, or because its predecessor has died before it was ready.
    pub(in crate::state) fn plain_ready(&mut self, id: Id, now: Now) -> Vec<Action> {
        let Some(process) = self.processes.get(&id) else {
            return Vec::new();
        };
        let seat = process.seat;
        if !self.is_reloading(seat) || self.seats[seat].current != Some(id) {
            return Vec::new();
        }
        if let Some(reload) = &mut self.reload {
            if let Stage::Replacing(seats) = &mut reload.stage {
                // Otherwise it was started just before the reload, and may have read old files.
                if process.generation >= reload.number {
                    seats.pop_front();
                }
            }
        }
        self.replace_plain(now)
    }

    /// A plain process takes no more requests.
    pub(in crate::state) fn retired(&mut self, id: Id, now: Now) -> Vec<Action> {
        if let Some(process) = self.processes.get_mut(&id) {
            process.retired = true;
        }
        self.advance_reload(now)
    }

    /// Whether a plain process still takes requests for an older version.
    pub(super) fn is_line_shared(&self) -> bool {
        self.processes.values().any(|process| {
            self.seats[process.seat].plain
                && process.generation < self.generation
                && !process.retired
        })
    }
}
