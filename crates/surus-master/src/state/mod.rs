//! Decides what to do, without doing it: events and the time go in, actions come out.
//!
//! A **seat** is a place for a worker: its listening sockets, its number in the log. A **process** occupies it.
//!
//! ```text
//!            report Ready            Terminate: successor ready, or the server ends
//!   Starting ─────────────► Ready ───────────────────────────────────────────────► Leaving ──► gone
//!      │                      │                                                       │ deadline: Kill
//!      └──── death ◄──────────┘
//!              │
//!              ▼
//!   seat waits (back-off), or gets another process at once; meanwhile another worker accepts for it (Adopt)
//! ```
//!
//! A ready worker accepts no connections before it is told to adopt its own seat. At the start that is when all are
//! ready, so that no connection waits for a worker that still boots, and a new binary that fails to start has accepted
//! none.
//!
//! `events.rs` has the events and actions, `reload.rs` the two phases of a reload, `replace.rs` recycling and upgrades,
//! `keep.rs` seats without a worker, `boot.rs` and `deaths.rs` the start and the end of a process.

mod boot;
mod deaths;
mod events;
mod keep;
mod reload;
mod replace;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub use events::Outcome;
pub(crate) use events::{Action, Death, Event};
use reload::Reload;

/// Time since the master started. A number, so that tests can choose it.
pub(crate) type Now = Duration;

/// The number of a process, never used twice.
pub(crate) type Id = u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Starting,
    Ready,
    /// Told to exit; killed at this time.
    Leaving {
        kill_at: Option<Now>,
    },
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) seat: usize,
    pub(crate) life: Life,
    pub(crate) since: Now,
    /// Reloads begun before it was spawned: it has booted the version of the last of them.
    generation: u64,
    /// It reported that it could not boot, which counts as an early death however long it took.
    boot_failed: bool,
    /// Only for plain processes: it takes no more requests.
    retired: bool,
    /// It replaces a process that is to be recycled, and that may have reported this only once.
    is_for_worn: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Seat {
    /// The process that serves here, or is about to.
    pub(crate) current: Option<Id>,
    /// Takes over from `current` when it is ready.
    next: Option<Id>,
    /// The end of the back-off, when the next process is started.
    waiting: Option<Now>,
    early_deaths: u32,
    /// The worker that accepts its connections while it has none of its own.
    keeper: Option<Id>,
    pub(crate) restarts: u64,
    /// Why the last process of this seat was replaced.
    pub(crate) reason: Option<String>,
    /// The seat of a plain process, which takes requests from workers. It boots only one version: a reload replaces it.
    pub(crate) plain: bool,
    /// It has no process before one is needed.
    pub(crate) asleep: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    /// `kill_at` is `None` once SIGKILL is sent.
    Ending {
        outcome: Outcome,
        kill_at: Option<Now>,
    },
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) seats: Vec<Seat>,
    pub(crate) processes: BTreeMap<Id, Process>,
    next_id: Id,
    phase: Phase,
    pub(crate) announced: bool,
    drain: Duration,
    boot: Duration,
    reload: Option<Reload>,
    /// A reload that was requested during another one: files may have changed since this Unix time.
    reload_again: Option<u64>,
    /// Reloads in a row that began because another one had ended.
    follow_ups: u32,
    /// Reloads begun so far.
    pub(crate) generation: u64,
    /// The error of the last process that did not boot.
    boot_error: Option<String>,
    recycle: VecDeque<(Id, String)>,
    recycle_not_before: Option<Now>,
    upgrading: bool,
    /// Plain processes start when they are needed, and the server serves without them.
    on_demand: bool,
}

impl State {
    /// `plain`: the number of seats for plain processes, after those of the workers. `drain`: time from SIGTERM to
    /// SIGKILL. `boot`: how long the new version may take to boot in a reload.
    pub(crate) fn new(workers: usize, plain: usize, drain: Duration, boot: Duration) -> Self {
        let seat = |index| Seat {
            plain: index >= workers,
            ..Seat::default()
        };
        State {
            seats: (0..workers + plain).map(seat).collect(),
            processes: BTreeMap::new(),
            next_id: 0,
            phase: Phase::Serving,
            announced: false,
            drain,
            boot,
            reload: None,
            reload_again: None,
            follow_ups: 0,
            generation: 0,
            boot_error: None,
            recycle: VecDeque::new(),
            recycle_not_before: None,
            upgrading: false,
            on_demand: false,
        }
    }

    /// Before the start: whether plain processes wait for [`Event::Wake`].
    pub(crate) fn with_plain_on_demand(mut self, on_demand: bool) -> Self {
        self.on_demand = on_demand;
        for seat in &mut self.seats {
            seat.asleep = on_demand && seat.plain;
        }
        self
    }

    pub(crate) fn start(&mut self, now: Now) -> Vec<Action> {
        let awake: Vec<usize> = self.awake().collect();
        let spawned = awake.into_iter().map(|seat| self.spawn_current(seat, now));
        spawned.collect()
    }

    /// The seats that have a process, or will get one.
    fn awake(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.seats.len()).filter(|&seat| !self.seats[seat].asleep)
    }

    /// Starts the processes of all seats that were asleep.
    fn wake(&mut self, now: Now) -> Vec<Action> {
        if self.phase != Phase::Serving {
            return Vec::new();
        }
        let mut actions = Vec::new();
        for seat in 0..self.seats.len() {
            if std::mem::take(&mut self.seats[seat].asleep) {
                actions.push(self.spawn_current(seat, now));
            }
        }
        actions
    }

    pub(crate) fn on(&mut self, event: Event, now: Now) -> Vec<Action> {
        let mut actions = match event {
            Event::Ready(id) => self.ready(id, now),
            Event::BootFailed(id, message) => self.boot_failed(id, message),
            Event::Exited(id, death) => self.exited(id, death, now),
            Event::Prepared(id, reload) => self.prepared(id, reload, now),
            Event::PrepareFailed(id, reload, error) => self.prepare_failed(id, reload, error),
            Event::Committed(id, reload) => self.committed(id, reload, now),
            Event::Retired(id) => self.retired(id, now),
            Event::Wake => self.wake(now),
            Event::Reload(since) => {
                self.follow_ups = 0;
                self.begin_reload(since, now)
            }
            Event::Recycle(id, reason) => {
                self.ask_recycle(id, reason);
                Vec::new()
            }
            Event::Stuck(id, time) => self.stuck(id, time),
            Event::Upgrade => self.begin_upgrade(),
            Event::UpgradeFailed(error) => self.upgrade_failed(error),
            Event::TakenOver => self.taken_over(now),
            Event::Stop => self.stop(now),
            Event::Tick => self.tick(now),
        };
        actions.extend(self.catch_up(now));
        actions.extend(self.recycle_next(now));
        actions.extend(self.keep_seats());
        actions
    }

    /// When the next [`Event::Tick`] is due.
    pub(crate) fn deadline(&self) -> Option<Now> {
        if let Phase::Ending { kill_at, .. } = self.phase {
            return kill_at;
        }
        let waiting = self.seats.iter().filter_map(|seat| seat.waiting);
        let leaving = self
            .processes
            .values()
            .filter_map(|process| match process.life {
                Life::Leaving { kill_at } => kill_at,
                Life::Starting => Some(self.must_be_ready_at(process)),
                Life::Ready => None,
            });
        let reload = self.reload.as_ref().map(|reload| reload.until);
        let recycle = self
            .recycle_not_before
            .filter(|_| !self.recycle.is_empty() && !self.is_replacing());
        waiting.chain(leaving).chain(reload).chain(recycle).min()
    }

    fn spawn(&mut self, seat: usize, now: Now) -> (Id, Action) {
        let id = self.next_id;
        self.next_id += 1;
        self.processes.insert(
            id,
            Process {
                seat,
                life: Life::Starting,
                since: now,
                generation: self.generation,
                boot_failed: false,
                retired: false,
                is_for_worn: false,
            },
        );
        (id, Action::Spawn { seat, id })
    }

    fn spawn_current(&mut self, seat: usize, now: Now) -> Action {
        let (id, action) = self.spawn(seat, now);
        self.seats[seat].current = Some(id);
        self.seats[seat].waiting = None;
        action
    }

    /// The first time: drains. The second time: kills all processes.
    fn stop(&mut self, now: Now) -> Vec<Action> {
        match self.phase {
            Phase::Serving => {
                let mut actions = self.refuse_reloads("the server ends");
                if std::mem::take(&mut self.upgrading) {
                    actions.push(Action::StopUpgrade);
                    actions.push(Action::Upgraded(Err("the server ends".to_owned())));
                }
                actions.extend(self.drain_all(now));
                actions
            }
            Phase::Ending { outcome, .. } => self.end(outcome),
        }
    }

    fn drain_all(&mut self, now: Now) -> Vec<Action> {
        self.phase = Phase::Ending {
            outcome: Outcome::Stopped,
            kill_at: Some(now + self.drain),
        };
        let mut actions = vec![Action::CloseListeners];
        actions.extend(self.processes.keys().map(|&id| Action::Terminate(id)));
        actions.extend(self.finish(Outcome::Stopped));
        actions
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
                let mut actions = Vec::new();
                for seat in 0..self.seats.len() {
                    if self.seats[seat].waiting.is_some_and(|until| now >= until) {
                        actions.push(self.spawn_current(seat, now));
                    }
                }
                actions.extend(self.kill_late_boots(now));
                actions.extend(self.kill_late(now));
                actions.extend(self.reload_late(now));
                actions
            }
        }
    }

    /// Kills all processes. The master ends when they are dead.
    fn end(&mut self, outcome: Outcome) -> Vec<Action> {
        self.phase = Phase::Ending {
            outcome,
            kill_at: None,
        };
        let mut actions: Vec<Action> = self.processes.keys().map(|&id| Action::Kill(id)).collect();
        actions.extend(self.finish(outcome));
        actions
    }

    fn finish(&self, outcome: Outcome) -> Option<Action> {
        self.processes.is_empty().then_some(Action::Finish(outcome))
    }

    /// The processes that serve in seats of the same kind.
    fn serving(&self, seat: usize) -> impl Iterator<Item = Id> + '_ {
        let plain = self.seats[seat].plain;
        self.seats
            .iter()
            .filter(move |seat| seat.plain == plain)
            .filter_map(|seat| seat.current)
            .filter(|id| self.is_serving(*id))
    }

    /// True if the server accepts no more connections.
    pub(crate) fn is_ending(&self) -> bool {
        self.phase != Phase::Serving
    }

    fn is_serving(&self, id: Id) -> bool {
        self.processes
            .get(&id)
            .is_some_and(|process| process.life == Life::Ready)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

#[cfg(test)]
mod chaos;
