//! The death of a process: another one starts, at once or after a pause that grows, or the master gives up.

use std::time::Duration;

use super::{replace, Action, Death, Id, Now, Outcome, Phase, State};

/// A worker that dies sooner than this has not really started.
const EARLY: Duration = Duration::from_secs(1);
/// After this number of early deaths of one worker in a row, with no other worker serving, the master gives up.
const EARLY_DEATHS: u32 = 5;
/// The pause after the first early death; it doubles with each one.
const BACK_OFF: Duration = Duration::from_millis(100);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(5);

impl State {
    pub(super) fn exited(&mut self, id: Id, death: Death, now: Now) -> Vec<Action> {
        let Some(process) = self.processes.remove(&id) else {
            return Vec::new();
        };
        if let Phase::Ending { outcome, .. } = self.phase {
            return self.finish(outcome).into_iter().collect();
        }
        let mut actions = self.reload_lost(id, process.seat, death, now);
        let seat = &mut self.seats[process.seat];
        let number = process.seat + 1;
        if seat.next == Some(id) {
            seat.next = None;
            self.recycle_not_before = Some(now + replace::TRY_AGAIN);
            actions.push(Action::Log(format!(
                "the successor of worker {number} {death}; the worker keeps running"
            )));
            if let (Some(current), Some(reason), true) =
                (seat.current, seat.reason.clone(), process.is_for_worn)
            {
                self.ask_recycle(current, reason);
            }
            return actions;
        }
        if seat.current != Some(id) {
            // It was about to exit.
            return actions;
        }
        seat.current = None;
        seat.restarts += 1;
        seat.reason = Some(death.to_string());
        if let Some(next) = seat.next.take() {
            // Its successor is starting already.
            seat.current = Some(next);
            actions.push(Action::Log(format!("worker {number} {death}")));
            return actions;
        }
        let early = process.boot_failed || now.saturating_sub(process.since) < EARLY;
        if !early {
            seat.early_deaths = 0;
            actions.push(Action::Log(format!(
                "worker {number} {death}; starting another"
            )));
            actions.push(self.spawn_current(process.seat, now));
            return actions;
        }
        seat.early_deaths += 1;
        let deaths = seat.early_deaths;
        let is_served = self.announced && self.serving(process.seat).next().is_some();
        let is_served = is_served || (self.on_demand && self.seats[process.seat].plain);
        let is_refused = matches!(death, Death::NotStarted(_));
        // Of a server that has served, processes or memory may be there again soon.
        if deaths >= EARLY_DEATHS && !is_served && !(is_refused && self.announced) {
            actions.push(Action::Log(format!(
                "worker {number} {death}, for the {deaths}th time in a row right after its start; giving up"
            )));
            actions.extend(self.end(Outcome::GaveUp));
            return actions;
        }
        let pause = (BACK_OFF * 2u32.pow((deaths - 1).min(10))).min(LONGEST_BACK_OFF);
        self.seats[process.seat].waiting = Some(now + pause);
        let when = if is_refused {
            ""
        } else {
            " right after its start"
        };
        actions.push(Action::Log(format!(
            "worker {number} {death}{when}; starting another in {} ms",
            pause.as_millis()
        )));
        actions
    }
}
