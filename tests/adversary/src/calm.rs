//! After a storm: every path works again, and nothing is left over.

use std::{
    rc::Rc,
    time::{Duration, Instant},
};

use tokio::time::sleep;

use crate::{
    backends::Backends,
    exchange,
    interruption::Interruption,
    operation::{Handle, Operation},
    plan::{Plan, Scene},
    proxy::Weather,
    server::Server,
    storm::Offence,
    tally::Tally,
    verdict::{judge, Fault, Verdict},
};

/// Requests that may fail until an application has noticed that the connection which it keeps is broken.
const STUMBLES: u64 = 3;
/// So many may miss the deadline of the column that has a short one.
const CUTS: u32 = 5;

pub(crate) struct Calm<'a> {
    pub(crate) scene: Scene,
    pub(crate) server: &'a Rc<Server>,
    pub(crate) backends: &'a Rc<Backends>,
    pub(crate) tally: &'a mut Tally,
}

impl Calm<'_> {
    /// Each operation so many times in a row, alone.
    pub(crate) async fn repeat(
        &mut self,
        operations: &[&'static Operation],
        times: u64,
    ) -> Vec<Offence> {
        self.backends.set_weather(Weather::Calm);
        let mut offences = Vec::new();
        for operation in operations {
            offences.extend(self.operation(operation, times).await);
        }
        let left = match self.backends.ledgers().await {
            Ok(rows) if rows.trim().is_empty() => None,
            Ok(rows) => Some(format!("rows that nobody has committed: {rows}")),
            Err(error) => Some(format!("the ledgers cannot be read: {error}")),
        };
        let fault = Fault::Left;
        offences.extend(left.map(|text| Offence { fault, text }));
        // So that the next server is not blamed.
        let _ = self.backends.clear_ledgers().await;
        offences
    }

    async fn operation(&mut self, operation: &'static Operation, times: u64) -> Option<Offence> {
        let name = operation.name.replace(['.', '_'], "y");
        let series = format!("q{}y{name}", self.scene.name());
        let mut wanted = times;
        let mut number = 0;
        let mut cuts = 0;
        while number < wanted {
            let plan = Plan::calm(operation, self.scene.seed, &series, number);
            let outcome = exchange::run(&plan, self.server.address(), None, Duration::ZERO).await;
            let verdict = judge(&self.scene, &plan, outcome);
            self.tally.note(&plan, &verdict);
            number += 1;
            let stumbles = operation.handle == Handle::Shared && number <= STUMBLES;
            let fault = match &verdict {
                Verdict::Right => continue,
                Verdict::Declared | Verdict::Wrong(Fault::Undeserved, _) if stumbles => {
                    wanted += 1;
                    continue;
                }
                // A quarter of a second is not much where others compute, too.
                Verdict::Cut
                    if self.scene.interruption == Interruption::Deadline && cuts < CUTS =>
                {
                    cuts += 1;
                    wanted += 1;
                    continue;
                }
                Verdict::Wrong(fault, _) => *fault,
                _ => Fault::Undeserved,
            };
            let text = format!(
                "afterwards, time {number}: {}\n    {verdict:?}",
                plan.target()
            );
            return Some(Offence { fault, text });
        }
        None
    }

    /// Descriptors come back to what they were, give or take some connections that are kept: in coroutine mode each fiber
    /// keeps its own of each kind of persistent connection.
    pub(crate) async fn descriptors(&self, before: usize, kept: usize) -> Option<Offence> {
        let begun = Instant::now();
        loop {
            let now = self.server.descriptors();
            if now <= before + 40 + kept {
                return None;
            }
            if begun.elapsed() > Duration::from_secs(20) {
                let text = format!("{before} descriptors were open before, {now} after");
                let fault = Fault::Left;
                return Some(Offence { fault, text });
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}
