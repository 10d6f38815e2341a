//! WebSockets whose handler is an object: between two events none of them has a fiber.
//!
//! ```text
//!             something has happened          its turn            PHP has dealt with it
//!   Resting ───────────────────────► Queued ───────────► Running ───────────────────────► Resting, Queued
//!                                                            │
//!                                                            └ with the end ────────────► over
//! ```
//!
//! A fiber deals with all messages that have come, one after the other; another one with the end. So there is one at most at
//! any time.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::poll_fn,
    rc::Rc,
    task::{Poll, Waker},
    time::Duration,
};

use super::{App, Version};
use crate::{
    body::websocket::{
        events::{Event, Listener},
        WebSocket,
    },
    exchange::{answers::plain_answer, Exchange},
    ffi,
    serve::{
        task::{Outcome, Task, Turn},
        watch::note_slow_end,
    },
};

/// Conversations that have their turn before the event loop goes on.
const AT_A_TIME: usize = 32;

/// Until there may be memory for a fiber.
const LATER: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Resting,
    Queued,
    Running,
}

pub(super) struct Conversation {
    app: Rc<App>,
    version: Rc<Version>,
    exchange: Rc<Exchange>,
    socket: Rc<WebSocket>,
    state: Cell<State>,
}

/// Those in which something has happened, in this order.
#[derive(Default)]
pub(super) struct Events {
    queue: RefCell<VecDeque<Rc<Conversation>>>,
    /// Of the task that gives them their turns, while it waits.
    waiting: RefCell<Option<Waker>>,
    is_begun: Cell<bool>,
}

impl Events {
    fn push(&self, conversation: Rc<Conversation>) {
        self.queue.borrow_mut().push_back(conversation);
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }

    fn begin(self: &Rc<Self>) {
        if self.is_begun.replace(true) {
            return;
        }
        let events = self.clone();
        tokio::task::spawn_local(poll_fn(move |cx| {
            for _ in 0..AT_A_TIME {
                let next = events.queue.borrow_mut().pop_front();
                let Some(conversation) = next else {
                    *events.waiting.borrow_mut() = Some(cx.waker().clone());
                    return Poll::<()>::Pending;
                };
                conversation.turn();
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
    }
}

impl App {
    /// The request's first fiber has ended: true if the request goes on without one.
    pub(super) fn converse(
        self: &Rc<Self>,
        version: &Rc<Version>,
        exchange: &Rc<Exchange>,
        task: Task,
        outcome: Outcome,
    ) -> Result<(), Task> {
        let Some(socket) = exchange.conversation.socket() else {
            return Err(task);
        };
        self.begin_websocket(version, exchange);
        self.events.begin();
        let conversation = Rc::new(Conversation {
            app: self.clone(),
            version: version.clone(),
            exchange: exchange.clone(),
            socket: socket.clone(),
            state: Cell::new(State::Running),
        });
        socket.listen(Some(conversation.clone()));
        conversation.turned(task, Event::Open, outcome);
        Ok(())
    }
}

impl Listener for Conversation {
    fn notice(self: Rc<Self>) {
        if self.state.get() == State::Resting {
            self.queue();
        }
    }
}

impl Conversation {
    fn queue(self: Rc<Self>) {
        self.state.set(State::Queued);
        let events = self.app.events.clone();
        events.push(self);
    }

    /// Deals with what has happened.
    fn turn(self: Rc<Self>) {
        let Some(event) = self.socket.next_event() else {
            return self.rest();
        };
        let task = match self.version.fiber() {
            Ok(task) => task,
            Err(error) => {
                tracing::error!(%error, "no fiber for a WebSocket");
                tokio::task::spawn_local(async move {
                    tokio::time::sleep(LATER).await;
                    self.queue();
                });
                return;
            }
        };
        self.state.set(State::Running);
        self.exchange.begin_event(event);
        task.assign(ffi::RUN_CALL, &self.exchange);
        let turn = (!task.is_blocked()).then(|| task.resume());
        if let Some(Turn::Done(outcome)) = turn {
            note_slow_end(&self.exchange, &self.app.limits);
            return self.turned(task, event, outcome);
        }
        tokio::task::spawn_local(async move {
            let (exchange, limits) = (&self.exchange, &self.app.limits);
            let outcome = match turn {
                Some(turn) => task.drive(exchange, limits, turn).await,
                None => task.start(exchange, limits).await,
            };
            self.turned(task, event, outcome);
        });
    }

    fn turned(self: Rc<Self>, task: Task, event: Event, outcome: Outcome) {
        if outcome == Outcome::Abandoned {
            self.exchange.answer_instead(|| plain_answer(500));
        }
        self.app.put_back(&self.version, task, outcome);
        // It may have been cancelled before it had its turn: `onClose` is called all the same.
        let has_ended = event == Event::End && self.exchange.conversation.has_begun();
        if !self.version.isolate.is_clean() {
            // Nothing is called in that isolate any more. What its code may still see of the request stays.
            std::mem::forget(self.exchange.clone());
            // But no connection of its transactions, nor their locks.
            self.exchange.transactions.release();
            self.end();
        } else if has_ended {
            self.end();
        } else if self.socket.next_event().is_some() {
            self.queue();
        } else {
            self.rest();
        }
    }

    fn rest(&self) {
        self.state.set(State::Resting);
        self.exchange.rest();
        self.socket.shrink();
    }

    fn end(&self) {
        self.socket.listen(None);
        self.version.forget_websocket(&self.exchange);
        self.app.websockets.set(self.app.websockets.get() - 1);
        self.exchange.finish();
    }
}
