//! The time of jobs: that of the calendar, which goes on evenly when somebody sets the clock. Delays are as long as was said.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{clock_gettime, ClockId};

use crate::holder::boot;
use crate::millis;

/// Milliseconds. Clocks that are disciplined differ by less all the time.
const STEP: u64 = 1000;

/// What the calendar is to the time since the machine has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Which run of the machine; 0 if that cannot be read.
    pub(crate) boot: u64,
    /// Milliseconds: the calendar's time less that since the start.
    pub(crate) offset: i64,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        Clock {
            boot: boot().unwrap_or(0),
            offset: offset(),
        }
    }

    /// Milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        up().saturating_add_signed(self.offset)
    }

    /// The same clock, if it was set since then.
    pub(crate) fn look(&self) -> Option<Clock> {
        self.set_to(offset()).map(|(clock, _)| clock)
    }

    /// The clock, if that is another one; and by how many milliseconds.
    fn set_to(self, offset: i64) -> Option<(Clock, i64)> {
        let by = offset.saturating_sub(self.offset);
        (by.unsigned_abs() >= STEP).then_some((Clock { offset, ..self }, by))
    }

    /// Whether this is a later reading of the same clock, which nobody has set.
    pub(crate) fn goes_on(self, before: Clock) -> bool {
        self.boot == before.boot && self.boot != 0 && before.set_to(self.offset).is_none()
    }

    /// How far the clock was set between that reading and this one. Nobody knows that of another run of the machine.
    pub(crate) fn since(self, before: Clock) -> i64 {
        let is_same = self.boot == before.boot && self.boot != 0;
        let moved = before.set_to(self.offset).filter(|_| is_same);
        moved.map_or(0, |(_, by)| by)
    }
}

/// Milliseconds since the machine has started, also while it slept.
fn up() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let whole = u64::try_from(time.tv_sec).unwrap_or(0) * 1000;
    whole + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}

fn offset() -> i64 {
    let calendar = SystemTime::now().duration_since(UNIX_EPOCH);
    let calendar = millis(calendar.unwrap_or_default());
    let difference = i128::from(calendar) - i128::from(up());
    i64::try_from(difference).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_is_noticed_and_one_that_drifts_is_not() {
        let clock = Clock { boot: 1, offset: 0 };
        assert_eq!(clock.set_to(999), None);
        assert_eq!(clock.set_to(-999), None);
        let (set, by) = clock.set_to(-3_600_000).expect("a step");
        assert_eq!((set.offset, by), (-3_600_000, -3_600_000));
        assert_eq!(set.since(clock), -3_600_000);
        assert_eq!(Clock { boot: 2, ..set }.since(clock), 0);
        assert_eq!(clock.since(clock), 0);
        assert!(clock.goes_on(clock) && !set.goes_on(clock));
    }

    #[test]
    fn it_is_the_time_of_the_calendar() {
        let clock = Clock::new();
        assert_eq!(clock.look(), None);
        assert!(clock.now().abs_diff(crate::now()) < STEP);
    }
}
