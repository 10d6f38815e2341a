//! What one request does and what its client does, from the seed and the request's number alone.

use surus_tests::{random::Random, surus::Mode};

use crate::{interruption::Interruption, operation::Operation};

/// When a client leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// After so many thousandths of the time that its operation takes.
    After(u64),
    /// When so many packets have gone through the proxy of its server.
    AtPacket(u64),
}

#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) number: u64,
    pub(crate) operation: &'static Operation,
    /// Milliseconds that a server takes for an answer.
    pub(crate) delay: u64,
    /// How the script ends itself, and at which step.
    pub(crate) end: Option<(&'static str, u64)>,
    pub(crate) leave: Option<Leave>,
    /// The client closes its connection with a reset.
    pub(crate) resets: bool,
    token: String,
}

/// One column in one mode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene {
    pub(crate) seed: u64,
    pub(crate) mode: Mode,
    pub(crate) interruption: Interruption,
}

impl Scene {
    /// Tokens of two scenes differ, too.
    pub(crate) fn name(&self) -> String {
        format!("{}{}", &self.mode.name()[..2], self.interruption as u8)
    }

    pub(crate) fn plan(&self, operations: &[&'static Operation], number: u64) -> Plan {
        let column = (self.mode as u64) << 8 | self.interruption as u64;
        let mut random = Random::of(self.seed ^ column << 32, number);
        let operation = operations[random.below(operations.len() as u64) as usize];
        let delay = match self.interruption {
            Interruption::Deadline => random.below(200),
            _ => random.below(12),
        };
        let ends = self.interruption.ends();
        let end = (!ends.is_empty() && random.once_in(2)).then(|| {
            let end = ends[random.below(ends.len() as u64) as usize];
            (end, 1 + random.below(operation.words))
        });
        let leaves = end.is_none() && random.below(100) < self.interruption.leaving();
        let leave = leaves.then(|| match random.below(2) {
            0 => Leave::After(random.below(1200)),
            _ => Leave::AtPacket(1 + random.below(40)),
        });
        Plan {
            number,
            operation,
            delay,
            end,
            leave,
            resets: random.once_in(2),
            token: format!("t{}x{}x{number}", self.seed, self.name()),
        }
    }
}

impl Plan {
    /// A request that nothing happens to.
    pub(crate) fn calm(
        operation: &'static Operation,
        seed: u64,
        series: &str,
        number: u64,
    ) -> Plan {
        Plan {
            number,
            operation,
            delay: 0,
            end: None,
            leave: None,
            resets: false,
            token: format!("t{seed}x{series}x{number}"),
        }
    }

    pub(crate) fn with_delay(self, delay: u64) -> Plan {
        Plan { delay, ..self }
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn target(&self) -> String {
        let (end, at) = self.end.unwrap_or(("", 0));
        format!(
            "/?operation={}&token={}&delay={}&end={end}&at={at}",
            self.operation.name, self.token, self.delay
        )
    }

    /// What the whole answer says.
    pub(crate) fn answer(&self) -> String {
        let words: Vec<_> = (1..=self.operation.words)
            .map(|word| format!("{}-{word}", self.token))
            .collect();
        format!("heard {}", words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use surus_tests::surus::Mode;

    use super::Scene;
    use crate::interruption::Interruption;

    #[test]
    fn no_two_scenes_have_the_same_tokens() {
        let mut names = HashSet::new();
        for mode in Mode::ALL {
            for interruption in Interruption::ALL {
                let scene = Scene {
                    seed: 1,
                    mode,
                    interruption,
                };
                assert!(names.insert(scene.name()), "{}", scene.name());
            }
        }
    }
}
