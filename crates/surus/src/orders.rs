//! Carries out the master's orders in a running worker, and reports to it.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;

use serde_json::{json, Value};
use surus_edge::Intake;
use surus_master::{Channel, Order, Report};
use surus_zend::{Engine, InFlight, Pool, Stall};
use tokio::io::Interest;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::spawn_local;

use crate::backend::{Counted, Php};
use crate::pusher;

/// Requests in flight that a status lists.
const LISTED: usize = 20;

/// A worker's connection to its master, for the tasks of its event loop.
pub(crate) struct ControlChannel<B: Php> {
    engine: Engine,
    /// Development: the error of code that does not boot is shown to the client.
    dev: bool,
    backend: Rc<B>,
    counted: Rc<Counted<B>>,
    channel: RefCell<Channel>,
    intake: UnboundedSender<Intake>,
    /// The sockets of every seat, to accept in place of other workers.
    listeners: RefCell<Vec<Vec<OwnedFd>>>,
    /// The current reload; 0 if there is none.
    reload: Cell<u64>,
    prepared: RefCell<Option<(u64, B::Next)>>,
    /// Number of reloads begun so far.
    begun: Cell<u64>,
    /// When the current version began to serve.
    since: Cell<Since>,
    renewed: Cell<u64>,
}

/// When a version began to serve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since {
    pub(crate) time: Instant,
    /// Requests that the worker had answered by then.
    pub(crate) requests: u64,
}

impl<B: Php> ControlChannel<B> {
    pub(crate) fn new(
        engine: &Engine,
        dev: bool,
        backend: Rc<B>,
        counted: Rc<Counted<B>>,
        channel: Channel,
        listeners: Vec<Vec<OwnedFd>>,
        intake: UnboundedSender<Intake>,
    ) -> Self {
        ControlChannel {
            engine: *engine,
            dev,
            backend,
            counted,
            channel: RefCell::new(channel),
            intake,
            listeners: RefCell::new(listeners),
            reload: Cell::new(0),
            prepared: RefCell::new(None),
            begun: Cell::new(0),
            since: Cell::new(Since {
                time: Instant::now(),
                requests: 0,
            }),
            renewed: Cell::new(0),
        }
    }

    pub(crate) fn since(&self) -> Since {
        self.since.get()
    }

    pub(crate) fn report(&self, report: &Report) {
        self.channel.borrow().send(report);
    }

    /// Closes the sockets of all seats: if the whole server ends, nobody will accept from them.
    pub(crate) fn close_spares(&self) {
        self.listeners.borrow_mut().clear();
    }

    /// Carries out orders until the master has exited.
    pub(crate) async fn follow(self: Rc<Self>) -> io::Result<()> {
        let stream = self.channel.borrow().stream()?;
        stream.set_nonblocking(true)?;
        let stream = tokio::net::UnixStream::from_std(stream)?;
        loop {
            let receive = || self.channel.borrow_mut().receive();
            let Some(orders) = stream.async_io(Interest::READABLE, receive).await? else {
                return Ok(());
            };
            for order in orders {
                self.obey(order);
            }
        }
    }

    fn obey(self: &Rc<Self>, order: Order) {
        match order {
            Order::Prepare { reload, refresh } => {
                self.reload.set(reload);
                self.begun.set(self.begun.get() + 1);
                self.prepared.take();
                spawn_local(Rc::clone(self).prepare(reload, refresh));
            }
            Order::Commit { reload } => {
                if let Some((number, next)) = self.prepared.take() {
                    if number == reload {
                        self.commit(next);
                        self.counted.set_broken(None);
                    }
                }
                self.reload.set(0);
                self.report(&Report::Committed { reload });
            }
            Order::Abort { reload, error } => {
                if self.dev {
                    self.counted.set_broken(Some(error));
                }
                if self.reload.get() == reload {
                    self.reload.set(0);
                    self.prepared.take();
                }
            }
            Order::Adopt { seat } => {
                let listeners = self.listeners.borrow();
                let copies = listeners.get(seat).into_iter().flatten();
                let copies: io::Result<Vec<_>> = copies.map(OwnedFd::try_clone).collect();
                match copies {
                    Ok(listeners) => {
                        let key = seat;
                        let _ = self.intake.send(Intake::Open { key, listeners });
                    }
                    Err(error) => surus_log::say!("cannot accept connections: {error}"),
                }
            }
            // For plain processes; carried out by the channel.
            Order::Retire | Order::Reopen { .. } => {}
            Order::Release { seat } => {
                let _ = self.intake.send(Intake::Close { key: seat });
            }
            Order::Status { question } => {
                let mut status = self.backend.status();
                status["requests"] = self.counted.requests().into();
                if let Some(connections) = pusher::connections() {
                    status["pusher_connections"] = connections.into();
                }
                let replaced = status["isolates_replaced"].as_u64().unwrap_or(0);
                status["isolates_replaced"] = (replaced + self.renewed.get()).into();
                let (parked, oldest) = surus_zend::in_flight(LISTED);
                status["parked"] = parked.into();
                status["requests_in_flight"] = oldest.iter().map(described).collect();
                let stalls = surus_zend::stalls();
                status["blocking_calls_total"] = stalls.count.into();
                status["blocking_s"] = stalls.time.as_secs_f64().into();
                let longest = stalls.places.iter().take(LISTED);
                status["blocking_calls"] = longest.map(blocking_call).collect();
                status["pools"] = surus_zend::pools().iter().map(pool).collect();
                if let Some(channels) = surus_zend::channels() {
                    let figures = channels.figures();
                    status["channels"] = figures.channels.into();
                    status["channel_subscriptions"] = figures.subscriptions.into();
                    status["channel_members"] = figures.members.into();
                    status["publications"] = figures.published.into();
                    status["publications_delivered"] = figures.delivered.into();
                    status["publications_missed"] = figures.missed.into();
                }
                status["event_streams"] = surus_zend::event_streams().into();
                self.report(&Report::Status { question, status });
            }
        }
    }

    fn commit(&self, next: B::Next) {
        self.backend.commit(next);
        self.since.set(Since {
            time: Instant::now(),
            requests: self.counted.requests(),
        });
    }

    /// Boots the application in a second isolate, and switches to it. False if a reload does so anyway.
    pub(crate) async fn renew(&self) -> Result<bool, String> {
        let begun = self.begun.get();
        if self.reload.get() != 0 {
            return Ok(false);
        }
        let next = self.backend.prepare().await?;
        if self.begun.get() != begun {
            // It may have booted older code than the reload.
            return Ok(false);
        }
        self.commit(next);
        self.renewed.set(self.renewed.get() + 1);
        Ok(true)
    }

    async fn prepare(self: Rc<Self>, reload: u64, refresh: Option<u64>) {
        let refreshed = match refresh {
            Some(since) => self.engine.refresh(since).await,
            None => Ok(()),
        };
        let prepared = match refreshed {
            Ok(()) => self.backend.prepare().await,
            Err(error) => Err(error.to_string()),
        };
        if self.reload.get() != reload {
            // The reload was aborted meanwhile.
            return;
        }
        match prepared {
            Ok(next) => {
                self.prepared.replace(Some((reload, next)));
                self.report(&Report::Prepared { reload });
            }
            Err(error) => self.report(&Report::PrepareFailed { reload, error }),
        }
    }
}

fn described(request: &InFlight) -> Value {
    json!({
        "method": request.method,
        "uri": request.uri,
        "age_s": request.age.as_secs_f64(),
        "waits_for": request.place,
    })
}

fn pool(pool: &Pool) -> Value {
    json!({
        "kind": pool.kind,
        "address": pool.address,
        "max": pool.max,
        "open": pool.idle + pool.in_use,
        "idle": pool.idle,
        "in_use": pool.in_use,
        "waiting": pool.waiting,
        "resets": pool.resets,
        "dropped": pool.dropped,
        "closed": pool.closed,
    })
}

fn blocking_call(stall: &Stall) -> Value {
    json!({
        "place": stall.place,
        "call": stall.call,
        "request": stall.request,
        "count": stall.count,
        "total_s": stall.time.as_secs_f64(),
        "longest_s": stall.longest.as_secs_f64(),
    })
}
