//! Timers that an application declares while it boots, and which of them an exchange runs.

use std::cell::{Cell, RefCell};

/// When a timer runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum When {
    /// Once, after these seconds.
    After(f64),
    /// At multiples of these seconds since 1970, so that a reload moves none.
    Every(f64),
    /// When PHP says: it has the application's time zone.
    Cron,
}

/// A timer of one version of an application.
#[derive(Debug)]
pub(crate) struct Timer {
    /// For people.
    pub(crate) about: String,
    pub(crate) when: When,
    /// Seconds since 1970.
    pub(crate) next: Cell<f64>,
    /// It is one that runs once, and has.
    pub(crate) is_over: Cell<bool>,
    /// While it was another worker's, nobody asked PHP for its time.
    pub(crate) is_stale: Cell<bool>,
    pub(crate) is_running: Cell<bool>,
    pub(crate) runs: Cell<u64>,
}

impl Timer {
    /// `kind` is a number of the `TIMER_` constants in `Surus\Internal\Timers`; `seconds` until it, between two, or since 1970.
    pub(crate) fn new(about: String, kind: i32, seconds: f64) -> Timer {
        let when = match kind {
            0 => When::After(seconds),
            1 => When::Every(seconds),
            _ => When::Cron,
        };
        Timer {
            about,
            when,
            next: Cell::new(seconds),
            is_over: Cell::new(false),
            is_stale: Cell::new(false),
            is_running: Cell::new(false),
            runs: Cell::new(0),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// While the application boots.
    pub(crate) declared: RefCell<Vec<Timer>>,
    /// The one that the exchange is for, and whether it is due.
    pub(crate) running: Cell<Option<(usize, bool)>>,
    /// When PHP says that it is due next.
    pub(crate) next: Cell<Option<f64>>,
}
