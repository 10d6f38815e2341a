//! How many events a client may send.

use std::cell::Cell;
use std::time::Instant;

/// Events a second, and at once after a second of silence.
const EACH_SECOND: f64 = 10.0;

/// Lets a number of events through each second.
#[derive(Debug)]
pub(crate) struct Pace {
    left: Cell<f64>,
    at: Cell<Instant>,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Pace {
            left: Cell::new(EACH_SECOND),
            at: Cell::new(Instant::now()),
        }
    }

    /// Whether one more may pass now.
    pub(crate) fn allows(&self) -> bool {
        self.allows_at(Instant::now())
    }

    fn allows_at(&self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at.replace(now));
        let left = (self.left.get() + passed.as_secs_f64() * EACH_SECOND).min(EACH_SECOND);
        let allows = left >= 1.0;
        self.left.set(if allows { left - 1.0 } else { left });
        allows
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ten_events_a_second() {
        let pace = Pace::new();
        let start = pace.at.get();
        assert!((0..10).all(|_| pace.allows_at(start)));
        assert!(!pace.allows_at(start));
        assert!(pace.allows_at(start + Duration::from_millis(110)));
        assert!(!pace.allows_at(start + Duration::from_millis(110)));
        let later = start + Duration::from_secs(60);
        assert_eq!((0..20).filter(|_| pace.allows_at(later)).count(), 10);
    }
}
