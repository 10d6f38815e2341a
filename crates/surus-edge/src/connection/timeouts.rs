//! The timeouts of all connections of an edge, checked once a second by the sweep. Without connections the sweep
//! sleeps.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::connection::{Command, Phase, State};
use crate::limits::connections_per_address::network;
use crate::log::refusal::Refusal;
use crate::Limits;

/// Seconds that an idle HTTP/2 client may take to close after it was asked to make room for another one.
const GOODBYE: u32 = 5;

/// When most of at least this number of connections have closed, memory is given back.
const CROWD: usize = 256;

/// The open connections of an edge, and its clock.
#[derive(Debug, Default)]
pub(crate) struct Table {
    slots: RefCell<Vec<Option<Rc<State>>>>,
    free: RefCell<Vec<usize>>,
    open: Cell<usize>,
    /// The most that were open since memory was last given back.
    peak: Cell<usize>,
    clock: Rc<Cell<u32>>,
    /// The slot where the last search for an idle connection ended.
    looked: Cell<usize>,
    /// Signalled when the first connection opens and when the last one closes.
    changed: Notify,
}

impl Table {
    pub(crate) fn clock(&self) -> Rc<Cell<u32>> {
        Rc::clone(&self.clock)
    }

    pub(crate) fn open(&self) -> usize {
        self.open.get()
    }

    pub(crate) fn insert(&self, state: Rc<State>) -> usize {
        let mut slots = self.slots.borrow_mut();
        let key = self.free.borrow_mut().pop().unwrap_or_else(|| {
            slots.push(None);
            slots.len() - 1
        });
        slots[key] = Some(state);
        self.open.set(self.open.get() + 1);
        self.peak.set(self.peak.get().max(self.open.get()));
        if self.open.get() == 1 {
            self.changed.notify_waiters();
        }
        key
    }

    pub(crate) fn remove(&self, key: usize) {
        let removed = self.slots.borrow_mut()[key].take();
        if removed.is_some() {
            self.free.borrow_mut().push(key);
            self.open.set(self.open.get() - 1);
            if self.open.get() == 0 {
                self.changed.notify_waiters();
            }
        }
    }

    /// Closes a connection that has been idle for more than a second, to make room for a new one. Checks a bounded
    /// number of connections.
    pub(crate) fn shed_idle(&self) -> bool {
        self.shed(64, |_| true)
    }

    /// The same, only among the clients of this network.
    pub(crate) fn shed_idle_of(&self, wanted: IpAddr) -> bool {
        self.shed(1024, |state| {
            state.client().peer.ip().map(network) == Some(wanted)
        })
    }

    fn shed(&self, looks: usize, is_meant: impl Fn(&State) -> bool) -> bool {
        let slots = self.slots.borrow();
        let start = self.looked.get();
        for look in 0..looks.min(slots.len()) {
            let key = (start + look) % slots.len();
            let Some(state) = &slots[key] else { continue };
            let age = state.progress.age(self.clock.get());
            if state.is_idle() && age > 1 && !state.is_closing() && is_meant(state) {
                state.dismiss();
                self.looked.set(key + 1);
                return true;
            }
        }
        self.looked.set(start + looks);
        false
    }

    pub(crate) fn order_all(&self, command: Command) {
        for state in self.slots.borrow().iter().flatten() {
            state.order(command);
        }
    }

    /// All connections except idle ones.
    pub(crate) fn order_busy(&self, command: Command) {
        for state in self.slots.borrow().iter().flatten() {
            if !state.is_idle() {
                state.order(command);
            }
        }
    }

    /// Completes when no connection is open.
    pub(crate) async fn closed(&self) {
        loop {
            let changed = self.changed.notified();
            if self.open() == 0 {
                return;
            }
            changed.await;
        }
    }

    /// Must run without tokio's cooperation budget, which a pass over many connections would exhaust.
    pub(crate) async fn sweep(&self, limits: &Limits, give_back: impl Fn()) {
        loop {
            let changed = self.changed.notified();
            if self.peak.get() >= CROWD && self.open() < self.peak.get() / 4 {
                self.peak.set(self.open());
                give_back();
            }
            if self.open() == 0 {
                changed.await;
                continue;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = self.clock.get().wrapping_add(1);
            self.clock.set(now);
            for state in self.slots.borrow().iter().flatten() {
                judge(state, now, limits);
            }
        }
    }
}

fn judge(state: &State, now: u32, limits: &Limits) {
    let age = state.progress.age(now);
    let header_timeout = seconds(limits.header_timeout);
    let keep_alive = seconds(limits.keep_alive);
    if state.stalls(limits) {
        state.reset();
        return state.order(Command::Abort);
    }
    if state.progress.owes_head_for(now) > header_timeout {
        state.refuse(Refusal::Timeout);
        return state.order(Command::Abort);
    }
    match state.progress.phase() {
        phase if phase.is_busy() && age > 0 && state.transport.has_ended() => {
            state.order(Command::Abort)
        }
        Phase::Head if age > header_timeout => state.time_out(),
        Phase::New if age > header_timeout => state.order(Command::Finish),
        Phase::Idle if !state.is_ending() && state.is_idle() && age > keep_alive => {
            state.order(Command::Retire)
        }
        // An HTTP/2 client was asked to close, and has not.
        Phase::Dismissed if age > GOODBYE => state.order(Command::Abort),
        Phase::Idle if state.is_ending() && age > keep_alive.saturating_mul(2) => {
            state.order(Command::Abort)
        }
        Phase::New
        | Phase::Idle
        | Phase::Dismissed
        | Phase::Head
        | Phase::Late
        | Phase::Busy
        | Phase::Answering
        | Phase::Upgraded => {}
    }
}

fn seconds(duration: Duration) -> u32 {
    // Rounded up: a timeout is never shorter than configured.
    u32::try_from(duration.as_millis().div_ceil(1000)).unwrap_or(u32::MAX)
}
