//! Seats without a worker: another worker accepts from their sockets.

use super::{Action, Id, Phase, State};

impl State {
    /// While no worker serves a seat, connections still arrive at its sockets: another worker accepts them.
    pub(super) fn keep_seats(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        if !self.announced || self.phase != Phase::Serving {
            return actions;
        }
        for index in 0..self.seats.len() {
            let seat = &self.seats[index];
            if seat.plain {
                // The others take requests from the same queue.
                continue;
            }
            let served = seat.current.is_some_and(|id| self.is_serving(id));
            let keeper = seat.keeper.filter(|&id| self.is_serving(id));
            let keeper = match (served, keeper) {
                (true, Some(id)) => {
                    actions.push(Action::Release { id, seat: index });
                    None
                }
                (false, None) => {
                    let keeper = self.least_burdened(index);
                    actions.extend(keeper.map(|id| Action::Adopt { id, seat: index }));
                    keeper
                }
                (true, None) => None,
                (false, keeper) => keeper,
            };
            self.seats[index].keeper = keeper;
        }
        actions
    }

    fn least_burdened(&self, seat: usize) -> Option<Id> {
        let kept = |id: Id| {
            self.seats
                .iter()
                .filter(|seat| seat.keeper == Some(id))
                .count()
        };
        self.serving(seat).min_by_key(|&id| kept(id))
    }
}
