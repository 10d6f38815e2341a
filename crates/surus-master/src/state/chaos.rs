//! Random events in any order: every process has a seat, every seat has a process or will get one, and in the end the
//! state is as it should be.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

const WORKERS: usize = 3;
const PLAIN: usize = 3;

/// A generator of random numbers, which need not be good, only the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn one_of<T: Clone>(&mut self, from: impl IntoIterator<Item = T>) -> Option<T> {
        let from: Vec<T> = from.into_iter().collect();
        let at = self.below(from.len().max(1));
        from.get(at).cloned()
    }
}

/// Simulates the processes of a master, with the orders that they have.
struct World {
    state: State,
    now: Now,
    /// Not ready yet.
    starting: BTreeSet<Id>,
    /// Terminated, or killed.
    ending: BTreeSet<Id>,
    retiring: BTreeSet<Id>,
    preparing: BTreeMap<Id, u64>,
    committing: BTreeMap<Id, u64>,
    reloads_answered: usize,
    ended: bool,
}

impl World {
    fn new(on_demand: bool) -> Self {
        let mut state = State::new(
            WORKERS,
            PLAIN,
            Duration::from_secs(30),
            Duration::from_secs(60),
        )
        .with_plain_on_demand(on_demand);
        let begun = state.start(Duration::ZERO);
        let mut world = World {
            state,
            now: Duration::ZERO,
            starting: BTreeSet::new(),
            ending: BTreeSet::new(),
            retiring: BTreeSet::new(),
            preparing: BTreeMap::new(),
            committing: BTreeMap::new(),
            reloads_answered: 0,
            ended: false,
        };
        begun.into_iter().for_each(|action| world.act(action));
        world
    }

    fn act(&mut self, action: Action) {
        let known = |id: &Id| assert!(self.state.processes.contains_key(id), "{id}");
        match action {
            Action::Spawn { id, .. } => _ = self.starting.insert(id),
            Action::Terminate(id) | Action::Kill(id) => {
                known(&id);
                self.ending.insert(id);
            }
            Action::Retire(id) => {
                known(&id);
                self.retiring.insert(id);
            }
            Action::Prepare { id, reload, .. } => {
                known(&id);
                self.preparing.insert(id, reload);
            }
            Action::Commit(id, reload) => {
                known(&id);
                self.committing.insert(id, reload);
            }
            Action::Adopt { id, seat } => {
                known(&id);
                assert!(!self.state.seats[seat].plain);
            }
            Action::Reloaded(_) => self.reloads_answered += 1,
            Action::Finish(_) => self.ended = true,
            _ => {}
        }
    }

    fn tell(&mut self, event: Event) {
        if let Event::Exited(id, _) = event {
            self.starting.remove(&id);
            self.ending.remove(&id);
            self.retiring.remove(&id);
            self.preparing.remove(&id);
            self.committing.remove(&id);
        }
        for action in self.state.on(event, self.now) {
            self.act(action);
        }
        if !self.ended && self.state.phase == Phase::Serving {
            self.check();
        }
    }

    fn check(&self) {
        for (id, process) in &self.state.processes {
            let seat = &self.state.seats[process.seat];
            let has_place = seat.current == Some(*id) || seat.next == Some(*id);
            let leaves = matches!(process.life, Life::Leaving { .. });
            assert!(has_place != leaves, "{id}: {:?}", self.state);
        }
        for (index, seat) in self.state.seats.iter().enumerate() {
            let hoped_for = seat.current.is_some() != seat.waiting.is_some();
            let hoped_for = hoped_for != seat.asleep;
            assert!(hoped_for, "seat {index}: {:?}", self.state);
            if self.state.announced && !seat.plain {
                let is_served = seat.current.is_some_and(|id| self.state.is_serving(id));
                let is_kept = seat.keeper.is_some_and(|id| self.state.is_serving(id));
                let nobody = self.state.serving(index).next().is_none();
                assert!(
                    is_served != is_kept || nobody,
                    "seat {index}: {:?}",
                    self.state
                );
            }
        }
    }

    /// Lets a process do something that is due, if there is anything.
    fn progress(&mut self, random: &mut Random) -> bool {
        let mut possible = Vec::new();
        possible.extend(self.starting.iter().map(|&id| Event::Ready(id)));
        possible.extend(
            self.ending
                .iter()
                .chain(&self.retiring)
                .map(|&id| Event::Exited(id, Death::Exit(0))),
        );
        possible.extend(self.retiring.iter().map(|&id| Event::Retired(id)));
        possible.extend(
            self.preparing
                .iter()
                .map(|(&id, &of)| Event::Prepared(id, of)),
        );
        possible.extend(
            self.committing
                .iter()
                .map(|(&id, &of)| Event::Committed(id, of)),
        );
        let Some(event) = random.one_of(possible) else {
            return false;
        };
        match event {
            Event::Ready(id) => _ = self.starting.remove(&id),
            Event::Prepared(id, _) => _ = self.preparing.remove(&id),
            Event::Committed(id, _) => _ = self.committing.remove(&id),
            _ => {}
        }
        self.tell(event);
        true
    }

    fn mischief(&mut self, random: &mut Random) {
        let anyone = random.one_of(self.state.processes.keys().copied());
        let event = match (random.below(9), anyone) {
            (0 | 1, Some(id)) => Event::Exited(id, Death::Signal("SIGKILL")),
            (2, Some(id)) => Event::Recycle(id, "old".into()),
            (3, _) => match random.one_of(self.preparing.clone()) {
                Some((id, reload)) => {
                    self.preparing.remove(&id);
                    Event::PrepareFailed(id, reload, "no".into())
                }
                None => return,
            },
            (4, _) => match random.one_of(self.starting.clone()) {
                // At the start this would end the server.
                Some(id) if self.state.announced => {
                    self.tell(Event::BootFailed(id, "no".into()));
                    Event::Exited(id, Death::Exit(1))
                }
                _ => return,
            },
            (5, _) => Event::Reload(7),
            (6, _) => Event::Wake,
            _ => {
                self.now += Duration::from_millis(random.below(3000) as u64);
                Event::Tick
            }
        };
        self.tell(event);
    }

    /// All processes do what is expected of them.
    fn settle(&mut self, random: &mut Random) {
        for _ in 0..10_000 {
            if self.progress(random) {
                continue;
            }
            match self.state.deadline() {
                Some(at) => {
                    self.now = self.now.max(at);
                    self.tell(Event::Tick);
                }
                None => return,
            }
        }
        panic!("it never comes to rest: {:?}", self.state);
    }
}

#[test]
fn it_comes_to_rest_whatever_has_happened() {
    let mut rested = 0;
    for seed in 0..300 {
        let mut random = Random(seed);
        let mut world = World::new(seed % 2 == 1);
        world.settle(&mut random);
        for _ in 0..400 {
            if random.below(3) == 0 {
                world.mischief(&mut random);
            } else {
                world.progress(&mut random);
            }
            if world.ended || world.state.phase != Phase::Serving {
                break;
            }
        }
        if world.ended || world.state.phase != Phase::Serving {
            continue;
        }
        world.settle(&mut random);
        world.tell(Event::Wake);
        world.settle(&mut random);
        let answered = world.reloads_answered;
        world.tell(Event::Reload(7));
        world.settle(&mut random);
        assert!(world.reloads_answered > answered, "seed {seed}");
        let state = &world.state;
        assert!(state.reload.is_none(), "seed {seed}: {state:?}");
        assert_eq!(state.processes.len(), WORKERS + PLAIN, "seed {seed}");
        for process in state.processes.values() {
            assert_eq!(process.life, Life::Ready, "seed {seed}");
            assert_eq!(process.generation, state.generation, "seed {seed}");
        }
        world.tell(Event::Stop);
        while world.progress(&mut random) {}
        assert!(world.ended, "seed {seed}");
        rested += 1;
    }
    // In the others, workers died again and again right after their start, and the master gave up.
    assert!(rested > 100, "{rested}");
}
