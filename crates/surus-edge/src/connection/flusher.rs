//! Sends the responses of all connections that had work in one turn of the event loop together.
//!
//! A write to a socket wakes the peer: the most expensive part of a small request. When the writes follow each other
//! directly, the kernel's code is in the cache and the peer is already awake. Redis does the same before it sleeps.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::connection::State;

/// When this number of connections waits, their responses are sent at once.
const MOST: usize = 32;

/// No response waits longer than this, once the request that runs now has ended or parked.
const LONGEST: Duration = Duration::from_micros(200);

/// The connections of one worker that have something to send.
#[derive(Debug, Default)]
pub(crate) struct Flusher {
    waiting: RefCell<Vec<Rc<State>>>,
    /// When the first of them was added.
    since: Cell<Option<Instant>>,
    task: RefCell<Option<Waker>>,
}

impl Flusher {
    /// Sends the output of `state` when this turn of the event loop ends, or sooner.
    pub(crate) fn add(&self, state: Rc<State>) {
        let mut waiting = self.waiting.borrow_mut();
        waiting.push(state);
        match (waiting.len(), self.since.get()) {
            (1, _) => {
                self.since.set(Some(Instant::now()));
                drop(waiting);
                if let Some(task) = &*self.task.borrow() {
                    task.wake_by_ref();
                }
            }
            (count, Some(since)) if count >= MOST || since.elapsed() >= LONGEST => {
                drop(waiting);
                self.flush();
            }
            _ => {}
        }
    }

    /// Runs after the tasks that were ready when the first connection was added.
    pub(crate) async fn run(&self) {
        poll_fn(|cx: &mut Context<'_>| {
            let mut task = self.task.borrow_mut();
            if !task
                .as_ref()
                .is_some_and(|waker| waker.will_wake(cx.waker()))
            {
                *task = Some(cx.waker().clone());
            }
            drop(task);
            self.flush();
            Poll::Pending
        })
        .await
    }

    fn flush(&self) {
        self.since.set(None);
        for state in self.waiting.borrow_mut().drain(..) {
            state.flush_now();
        }
    }
}
