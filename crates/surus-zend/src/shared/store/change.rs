//! Changes that depend on what is stored: nothing comes between the look and the change.

use super::{
    entry::{Entry, Head},
    write::{Key, New, Refusal, Writer},
    Store,
};

/// What a key has to have, so that it is changed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Condition<'a> {
    Absent,
    Present,
    /// This value.
    Is {
        kind: u8,
        number: i64,
        bytes: &'a [u8],
    },
}

/// Why a number was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoNumber {
    /// The value is something else.
    Other,
    /// The result would not fit.
    Overflow,
    Refused(Refusal),
}

/// How a number is changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// The kind that integers have.
    pub(crate) kind: u8,
    pub(crate) by: i64,
    /// What is changed if there is none.
    pub(crate) initial: i64,
    /// When a new one expires.
    pub(crate) until: u64,
    pub(crate) is_kept: bool,
}

impl Condition<'_> {
    fn holds(&self, found: Option<(Entry<'_>, Head)>) -> bool {
        match (self, found) {
            (Condition::Absent, found) => found.is_none(),
            (Condition::Present, found) => found.is_some(),
            (Condition::Is { .. }, None) => false,
            (
                Condition::Is {
                    kind,
                    number,
                    bytes,
                },
                Some((entry, head)),
            ) => head.kind == *kind && head.number == *number && entry.has_bytes(&head, bytes),
        }
    }
}

impl Store {
    /// Whether the condition held and the value was stored.
    pub(super) fn write_if(
        &self,
        key: &[u8],
        condition: &Condition<'_>,
        new: &New<'_>,
        now: u64,
    ) -> Result<bool, Refusal> {
        self.change(key, |key, writer| {
            if !condition.holds(writer.current(key, now)) {
                return Ok(false);
            }
            writer.put(key, new, now).map(|()| true)
        })?
    }

    /// Whether the key is there; then it expires at `until`.
    pub(super) fn touch(&self, key: &[u8], until: u64, now: u64) -> Result<bool, Refusal> {
        self.change(key, |key, writer| {
            let found = writer.current(key, now);
            if let Some((entry, _)) = found {
                entry.set_until(until);
            }
            found.is_some()
        })
    }

    /// The number after the step.
    pub(super) fn step(&self, key: &[u8], step: &Step, now: u64) -> Result<i64, NoNumber> {
        let stepped = self.change(key, |key, writer| {
            let found = writer.current(key, now);
            let number = match found {
                Some((_, head)) if head.kind != step.kind => return Err(NoNumber::Other),
                Some((_, head)) => head.number,
                None => step.initial,
            };
            let number = number.checked_add(step.by).ok_or(NoNumber::Overflow)?;
            let Some((entry, head)) = found else {
                let new = New {
                    kind: step.kind,
                    number,
                    bytes: b"",
                    until: step.until,
                    is_kept: step.is_kept,
                };
                writer.put(key, &new, now).map_err(NoNumber::Refused)?;
                return Ok(number);
            };
            if step.is_kept {
                writer.keep(entry, &head, now).map_err(NoNumber::Refused)?;
            }
            entry.set_number(number);
            Ok(number)
        });
        stepped.map_err(NoNumber::Refused)?
    }

    fn change<T>(
        &self,
        key: &[u8],
        change: impl FnOnce(Key<'_>, &Writer<'_>) -> T,
    ) -> Result<T, Refusal> {
        let (shard, key) = self.find(key).ok_or(Refusal::Unavailable)?;
        let writer = shard.lock().ok_or(Refusal::Unavailable)?;
        Ok(change(key, &writer))
    }
}
