//! Decisions. No system call in here: everything is tested without a process.
//!
//! A worker's life, as the master sees it:
//!
//! ```text
//!   Starting ──ready──► Ready
//!      │ died             │ died
//!      ▼                  ▼
//!   Waiting (back-off) ◄──┘      or at once Starting, if it had lived for a second
//!      │ due
//!      ▼
//!   Starting
//! ```

use std::fmt;
use std::time::Duration;

/// Time since the master started. A number, so that tests can make it up.
pub(crate) type Now = Duration;

/// A worker that dies sooner than this did not really start.
const EARLY: Duration = Duration::from_secs(1);
/// That many early deaths of one worker in a row, and the master gives up.
const EARLY_DEATHS: u32 = 5;
/// The pause after the first early death; it doubles with each one.
const BACK_OFF: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The worker serves.
    Ready(usize),
    /// The application did not boot; the worker is about to exit.
    BootFailed(usize, String),
    Exited(usize, Death),
    /// SIGTERM or SIGINT.
    Stop,
    /// A deadline has passed, perhaps.
    Tick,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    Exit(i32),
    Signal(&'static str),
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Death::Exit(code) => write!(f, "exited with {code}"),
            Death::Signal(name) => write!(f, "was killed by {name}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Spawn(usize),
    /// Every worker is ready, for the first time.
    Announce,
    /// The master's copies, so that the kernel sends no more connections their way.
    CloseListeners,
    Terminate(usize),
    Kill(usize),
    Log(String),
    Finish(Outcome),
}

/// Why the master ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was asked to.
    Stopped,
    /// The application did not boot.
    BootFailed,
    /// A worker died again and again as soon as it was started.
    GaveUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Starting { since: Now },
    Ready { since: Now },
    Waiting { until: Now },
    Gone,
}

#[derive(Debug)]
struct Worker {
    life: Life,
    early_deaths: u32,
    /// It told why it could not boot, which counts as an early death however long it took.
    boot_failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    /// `kill_at` is `None` once SIGKILL is out.
    Ending {
        outcome: Outcome,
        kill_at: Option<Now>,
    },
}

#[derive(Debug)]
pub(crate) struct State {
    workers: Vec<Worker>,
    phase: Phase,
    announced: bool,
    drain: Duration,
}

impl State {
    pub(crate) fn new(workers: usize, drain: Duration) -> Self {
        let worker = || Worker {
            life: Life::Gone,
            early_deaths: 0,
            boot_failed: false,
        };
        State {
            workers: std::iter::repeat_with(worker).take(workers).collect(),
            phase: Phase::Serving,
            announced: false,
            drain,
        }
    }

    pub(crate) fn start(&mut self, now: Now) -> Vec<Action> {
        (0..self.workers.len())
            .map(|index| self.spawn(index, now))
            .collect()
    }

    pub(crate) fn on(&mut self, event: Event, now: Now) -> Vec<Action> {
        match event {
            Event::Ready(index) => self.ready(index),
            Event::BootFailed(index, message) => self.boot_failed(index, message),
            Event::Exited(index, death) => self.exited(index, death, now),
            Event::Stop => self.stop(now),
            Event::Tick => self.tick(now),
        }
    }

    /// When the next [`Event::Tick`] is due.
    pub(crate) fn deadline(&self) -> Option<Now> {
        match self.phase {
            Phase::Ending { kill_at, .. } => kill_at,
            Phase::Serving => self
                .workers
                .iter()
                .filter_map(|worker| match worker.life {
                    Life::Waiting { until } => Some(until),
                    _ => None,
                })
                .min(),
        }
    }

    fn spawn(&mut self, index: usize, now: Now) -> Action {
        let worker = &mut self.workers[index];
        worker.life = Life::Starting { since: now };
        worker.boot_failed = false;
        Action::Spawn(index)
    }

    fn ready(&mut self, index: usize) -> Vec<Action> {
        if let Life::Starting { since } = self.workers[index].life {
            self.workers[index].life = Life::Ready { since };
        }
        let all = self
            .workers
            .iter()
            .all(|worker| matches!(worker.life, Life::Ready { .. }));
        if all && !self.announced && self.phase == Phase::Serving {
            self.announced = true;
            return vec![Action::Announce];
        }
        Vec::new()
    }

    fn boot_failed(&mut self, index: usize, message: String) -> Vec<Action> {
        self.workers[index].boot_failed = true;
        if self.phase != Phase::Serving {
            // Each worker fails alike: one message is enough.
            return Vec::new();
        }
        let mut actions = vec![Action::Log(message)];
        if !self.announced {
            actions.extend(self.end(Outcome::BootFailed));
        }
        actions
    }

    fn exited(&mut self, index: usize, death: Death, now: Now) -> Vec<Action> {
        let worker = &mut self.workers[index];
        let since = match worker.life {
            Life::Starting { since } | Life::Ready { since } => since,
            Life::Waiting { .. } | Life::Gone => return Vec::new(),
        };
        worker.life = Life::Gone;
        if let Phase::Ending { outcome, .. } = self.phase {
            return self.finish(outcome).into_iter().collect();
        }
        let mut actions = Vec::new();
        let number = index + 1;
        let early = worker.boot_failed || now.saturating_sub(since) < EARLY;
        if !early {
            worker.early_deaths = 0;
            actions.push(Action::Log(format!(
                "worker {number} {death}; starting another"
            )));
            actions.push(self.spawn(index, now));
            return actions;
        }
        worker.early_deaths += 1;
        let deaths = worker.early_deaths;
        if deaths >= EARLY_DEATHS {
            actions.push(Action::Log(format!(
                "worker {number} {death}, for the {deaths}th time in a row right after its start; giving up"
            )));
            actions.extend(self.end(Outcome::GaveUp));
            return actions;
        }
        let pause = BACK_OFF * 2u32.pow(deaths - 1);
        worker.life = Life::Waiting { until: now + pause };
        actions.push(Action::Log(format!(
            "worker {number} {death} right after its start; starting another in {} ms",
            pause.as_millis()
        )));
        actions
    }

    /// The first time: drain. The second time: at once.
    fn stop(&mut self, now: Now) -> Vec<Action> {
        match self.phase {
            Phase::Serving => {
                self.phase = Phase::Ending {
                    outcome: Outcome::Stopped,
                    kill_at: Some(now + self.drain),
                };
                let mut actions = vec![Action::CloseListeners];
                actions.extend(self.alive().map(Action::Terminate));
                actions.extend(self.finish(Outcome::Stopped));
                actions
            }
            Phase::Ending { outcome, .. } => self.end(outcome),
        }
    }

    fn tick(&mut self, now: Now) -> Vec<Action> {
        match self.phase {
            Phase::Ending {
                outcome,
                kill_at: Some(at),
            } if now >= at => {
                let mut actions = vec![Action::Log(
                    "workers did not end in time; killing them".to_owned(),
                )];
                actions.extend(self.end(outcome));
                actions
            }
            Phase::Ending { .. } => Vec::new(),
            Phase::Serving => {
                let due = |worker: &Worker| matches!(worker.life, Life::Waiting { until } if now >= until);
                let due: Vec<usize> = (0..self.workers.len())
                    .filter(|&index| due(&self.workers[index]))
                    .collect();
                due.into_iter()
                    .map(|index| self.spawn(index, now))
                    .collect()
            }
        }
    }

    /// Kills what is alive and ends when it is dead.
    fn end(&mut self, outcome: Outcome) -> Vec<Action> {
        self.phase = Phase::Ending {
            outcome,
            kill_at: None,
        };
        let mut actions: Vec<Action> = self.alive().map(Action::Kill).collect();
        actions.extend(self.finish(outcome));
        actions
    }

    fn finish(&self, outcome: Outcome) -> Option<Action> {
        self.alive()
            .next()
            .is_none()
            .then_some(Action::Finish(outcome))
    }

    fn alive(&self) -> impl Iterator<Item = usize> + '_ {
        let alive = |life| matches!(life, Life::Starting { .. } | Life::Ready { .. });
        (0..self.workers.len()).filter(move |&index| alive(self.workers[index].life))
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
