//! What one request does and what its client does, from the seed and the request's number alone.

use std::time::Duration;

use surus_tests::random::Random;

use crate::cases::{Answer, Case, CASES};

/// Which application gets the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) coroutine: bool,
    /// The one whose requests have little time.
    pub(crate) hurried: bool,
}

/// What the client does with the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    All,
    /// Waits after each piece.
    Slowly(Duration),
    /// Leaves after so many pieces.
    Aborts(u64),
}

#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) number: u64,
    pub(crate) case: &'static Case,
    pub(crate) target: Target,
    /// How long each wait of the script is.
    pub(crate) microseconds: u64,
    /// The client leaves if it has no answer by then; zero: at once.
    pub(crate) leaves_after: Option<Duration>,
    pub(crate) reading: Reading,
    /// Pieces of a body, and the pause before each.
    pub(crate) pieces: u64,
    pub(crate) pause: Duration,
    /// The client breaks off its body.
    pub(crate) breaks_off: bool,
}

/// Which plans are made.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(crate) classic: bool,
    pub(crate) coroutine: bool,
    /// Names of cases; empty for all.
    pub(crate) only: Vec<String>,
    pub(crate) without: Vec<String>,
    /// How much longer everything takes, under valgrind.
    pub(crate) slowness: u64,
}

impl Scope {
    fn chooses(&self, case: &Case) -> bool {
        let named = |list: &[String]| list.iter().any(|name| name == case.name);
        (self.only.is_empty() || named(&self.only)) && !named(&self.without)
    }

    fn case(&self, random: &mut Random) -> &'static Case {
        let chosen = || CASES.iter().filter(|case| self.chooses(case));
        let mut at = random.below(chosen().map(|case| case.weight).sum());
        for case in chosen() {
            if at < case.weight {
                return case;
            }
            at -= case.weight;
        }
        unreachable!("the number was below the sum of all weights")
    }

    pub(crate) fn plan(&self, seed: u64, number: u64) -> Plan {
        let mut random = Random::of(seed, number);
        let case = self.case(&mut random);
        let coroutine = random.once_in(2);
        let mut plan = Plan {
            number,
            case,
            target: Target {
                coroutine: if self.classic && self.coroutine {
                    coroutine
                } else {
                    self.coroutine
                },
                hurried: random.once_in(6),
            },
            microseconds: [10, 100, 1000, 3000, 10_000][random.below(5) as usize]
                + random.below(100),
            leaves_after: None,
            reading: match random.below(6) {
                0 => Reading::Aborts(random.below(5)),
                1 => Reading::Slowly(Duration::from_micros(random.below(3000))),
                _ => Reading::All,
            },
            pieces: random.below(5) + 1,
            pause: Duration::from_micros(random.below(2000)),
            breaks_off: random.once_in(20),
        };
        if random.once_in(4) {
            let microseconds = [0, 200, 2000, 20_000][random.below(4) as usize];
            plan.leaves_after = Some(Duration::from_micros(
                random.below(microseconds + 1) * self.slowness,
            ));
        }
        // What has no end needs somebody to end it.
        if matches!(case.answer, Answer::Never) && !plan.target.hurried {
            plan.leaves_after = Some(Duration::from_micros(random.below(20_000) * self.slowness));
        }
        plan
    }
}
