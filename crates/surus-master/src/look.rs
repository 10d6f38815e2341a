//! Checks workers: whether each of them is alive, and whether it should be replaced.

use std::time::Duration;

use crate::executor::Master;
use crate::process::Process;
use crate::state::{Event, Life, Now};

/// How often the limits of [`Recycle`] are checked.
const RECYCLING: Duration = Duration::from_secs(1);

/// Checks per watchdog time: the number of chances that a worker has to answer.
const CHANCES: u32 = 4;

/// When workers are replaced, one at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recycle {
    /// Requests that the worker has answered.
    pub requests: Option<u64>,
    /// Bytes of resident memory.
    pub memory: Option<u64>,
    /// Time since the worker was started.
    pub age: Option<Duration>,
}

impl Recycle {
    fn is_limited(&self) -> bool {
        self.requests.is_some() || self.memory.is_some() || self.age.is_some()
    }

    /// Why the worker should be replaced, if it should.
    fn reason(&self, process: &Process, age: Duration) -> Option<String> {
        let requests = process.status["requests"].as_u64().unwrap_or(0);
        if self.requests.is_some_and(|limit| requests >= limit) {
            return Some(format!("it has served {requests} requests"));
        }
        if self.age.is_some_and(|limit| age >= limit) {
            return Some(format!("it has served for {} s", age.as_secs()));
        }
        let limit = self.memory?;
        let resident = process.resident().filter(|&bytes| bytes >= limit)?;
        Some(format!("it uses {} MB", resident / 1_000_000))
    }
}

impl Master<'_> {
    fn look_period(&self) -> Option<Duration> {
        let watchdog = self.config.watchdog.map(|time| time / CHANCES);
        let recycle = self.config.recycle.is_limited().then_some(RECYCLING);
        [watchdog, recycle, self.manager.watchdog]
            .into_iter()
            .flatten()
            .min()
    }

    pub(crate) fn look_after_workers(&mut self, events: &mut Vec<Event>) {
        let now: Now = self.started.elapsed();
        let Some(late) = self.next_look.and_then(|at| now.checked_sub(at)) else {
            return;
        };
        if self.manager.watchdog.is_some() {
            self.manager.tell("WATCHDOG=1\n");
        }
        self.next_look = self.look_period().map(|period| now + period);
        for (&id, process) in &mut self.processes {
            process.forgive(late);
            let Some(known) = self.state.processes.get(&id) else {
                continue;
            };
            if known.life == Life::Starting {
                continue;
            }
            let silent = process.asked.map(|(_, since)| now.saturating_sub(since));
            match (silent, self.config.watchdog) {
                (Some(silent), Some(limit)) if silent >= limit => {
                    events.push(Event::Stuck(id, silent));
                    continue;
                }
                _ => {}
            }
            if known.life == Life::Ready {
                let age = now.saturating_sub(known.since);
                let reason = self.config.recycle.reason(process, age);
                events.extend(reason.map(|reason| Event::Recycle(id, reason)));
            }
        }
        if self.next_look.is_some() {
            self.ask_all();
        }
    }
}
