//! Timers that an application declares while it boots, and which of them an exchange runs.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use bytes::Bytes;

/// When a timer runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum When {
    /// Once in each version of the application, these seconds after it has begun to serve.
    After(f64),
    /// Once, these seconds after the start of the server.
    Once(f64),
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
    /// When it was looked at last, in seconds since 1970: the clock may have been set back since.
    pub(crate) seen: Cell<f64>,
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
            3 => When::Once(seconds),
            _ => When::Cron,
        };
        Timer {
            about,
            when,
            next: Cell::new(seconds),
            seen: Cell::new(0.0),
            is_over: Cell::new(false),
            is_stale: Cell::new(false),
            is_running: Cell::new(false),
            runs: Cell::new(0),
        }
    }
}

/// What an exchange runs that is for no client; with the numbers of C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run {
    /// The timer only says when it is due.
    Asked = 0,
    /// The timer is due.
    Due = 1,
    /// `Surus\\background()`.
    Background = 2,
    /// A job of a queue.
    Queued = 3,
}

#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// While the application boots.
    pub(crate) declared: RefCell<Vec<Timer>>,
    /// What the exchange is for, if it is for no client.
    pub(crate) running: Cell<Option<(usize, Run)>>,
    /// When PHP says that it is due next.
    pub(crate) next: Cell<Option<f64>>,
    /// While the application boots: its queues, as JSON.
    pub(crate) queues: RefCell<Option<String>>,
    /// The job of a queue that the exchange runs.
    pub(crate) job: RefCell<Option<QueuedJob>>,
    /// How PHP says that it has ended, as JSON.
    pub(crate) ending: RefCell<Option<String>>,
    /// Jobs that its PHP has taken, and has not said the end of.
    pub(crate) taken: RefCell<Vec<Taken>>,
}

/// A job that goes to others when this is dropped: the process of a request lives on, and would keep it.
pub(crate) struct Taken {
    pub(crate) id: String,
    pub(crate) give_back: Rc<dyn Fn(&str)>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if !self.id.is_empty() {
            (self.give_back)(&self.id);
        }
    }
}

impl fmt::Debug for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Taken").field(&self.id).finish()
    }
}

/// A job of a queue, as PHP gets it.
#[derive(Debug)]
pub(crate) struct QueuedJob {
    /// What is known of it, as JSON.
    pub(crate) head: String,
    /// What was pushed.
    pub(crate) payload: Bytes,
}
