//! All connections to one server as one user, and who uses which.
//!
//! A statement goes to the connection with the least to do, behind what it has to do already if that is quick ([`crate::known`]). One
//! whose oldest statement takes long gets no more: others wait for the next one that is free. A transaction has a connection for itself; where
//! there are several connections, one is left for everything else.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::{poll_fn, Future},
    io,
    net::SocketAddr,
    pin::Pin,
    rc::Rc,
    task::Poll,
    time::{Duration, Instant},
};

use tokio::{task::spawn_local, time::timeout};

use crate::{
    bound::Bound,
    config::Config,
    failure::{Failure, Kind},
    known::{AllKnown, Known},
    lane::{self, Job, Lane, State, DEPTH},
    listen::Hub,
    slot::{busy, Slot, Ticket},
    value::Parameter,
    waiter::Waiter,
};

/// So many statements wait for a connection; more are refused.
pub(crate) const LONGEST_QUEUE: usize = 10_000;
/// After a failure to connect, nobody tries again before this time; it doubles up to the second one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Finds the addresses of a host.
pub type Resolve =
    dyn Fn(String, u16) -> Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>>>>;

/// A client; used by any number of callers at a time.
pub struct Client {
    pub(crate) config: Config,
    pub(crate) resolve: Rc<Resolve>,
    most: usize,
    /// Bytes of results that nobody has taken yet.
    pub(crate) held: Cell<usize>,
    known: RefCell<AllKnown>,
    lanes: RefCell<Vec<Rc<Lane>>>,
    /// Statements without a connection, the oldest first.
    queue: RefCell<VecDeque<Job>>,
    /// Transactions without a connection, the oldest first.
    binders: RefCell<VecDeque<Rc<Binder>>>,
    pause: Cell<Duration>,
    not_before: Cell<Option<Instant>>,
    last_failure: RefCell<Option<Failure>>,
    pub(crate) lost: Cell<u64>,
    pub(crate) unused: Cell<u64>,
    pub(crate) hub: Rc<Hub>,
}

/// What a client does and has done.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The server, the database and the user.
    pub address: String,
    /// How many connections there may be.
    pub most: usize,
    /// Connections that are open or being opened.
    pub open: usize,
    /// Those of them that run something, or are a transaction's.
    pub busy: usize,
    /// Statements and transactions that wait for one.
    pub waiting: usize,
    /// Connections that were lost or given up.
    pub lost: u64,
    /// Connections that were closed because nobody has used them.
    pub unused: u64,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

/// A transaction that waits for a connection.
#[derive(Default)]
struct Binder {
    lane: RefCell<Option<Result<Rc<Lane>, Failure>>>,
    waiter: Waiter,
    left: Cell<bool>,
}

impl Binder {
    fn give(&self, lane: Result<Rc<Lane>, Failure>) {
        *self.lane.borrow_mut() = Some(lane);
        self.waiter.wake();
    }
}

impl Client {
    /// With at most so many connections, which are opened when they are needed.
    #[must_use]
    pub fn new(config: Config, most: usize, resolve: Rc<Resolve>) -> Rc<Self> {
        Rc::new(Client {
            config,
            resolve,
            most: most.max(1),
            held: Cell::new(0),
            known: RefCell::default(),
            lanes: RefCell::default(),
            queue: RefCell::default(),
            binders: RefCell::default(),
            pause: Cell::new(FIRST_PAUSE),
            not_before: Cell::default(),
            last_failure: RefCell::default(),
            lost: Cell::default(),
            unused: Cell::default(),
            hub: Rc::default(),
        })
    }

    /// Begins a statement. Its rows may have so many bytes.
    ///
    /// # Errors
    /// It must not be sent, or there is no connection.
    pub fn submit(
        self: &Rc<Self>,
        text: &str,
        parameters: Vec<Parameter>,
        limit: usize,
    ) -> Result<Ticket, Failure> {
        let known = self.known(text);
        if let Some(word) = known.refused {
            return Err(Failure::usage(format!(
                "{word} would change a connection that others use at the same time: use transaction()"
            )));
        }
        let slot = Rc::new(Slot::default());
        let job = Job::new(known, parameters, limit, slot.clone(), false);
        let ticket = Ticket::new(slot, self.clone());
        let waiting = self.queue.borrow().len();
        if waiting == 0 {
            if self.is_busy() {
                self.grow();
            }
            if let Some(lane) = self.choose() {
                lane.place(job);
                return Ok(ticket);
            }
        } else if waiting >= LONGEST_QUEUE {
            return Err(Failure::new(
                Kind::Busy,
                format!("{waiting} statements wait for a connection already"),
            ));
        }
        self.queue.borrow_mut().push_back(job);
        self.grow();
        if self.lanes.borrow().is_empty() {
            return Err(self.failure());
        }
        Ok(ticket)
    }

    /// Begins the same statement for each of these parameters; together on one connection, where they are not known to take long.
    ///
    /// # Errors
    /// As of [`Client::submit`]. Then some of them may have begun.
    pub fn submit_each(
        self: &Rc<Self>,
        text: &str,
        lists: Vec<Vec<Parameter>>,
        limit: usize,
    ) -> Result<Vec<Ticket>, Failure> {
        let known = self.known(text);
        let is_together = known.refused.is_none() && known.is_short();
        // What is behind them there is the same caller's.
        let lane = if is_together { self.choose() } else { None };
        let one = |parameters| match &lane {
            Some(lane) if lane.load.get() < DEPTH => {
                let slot = Rc::new(Slot::default());
                lane.place(Job::new(
                    known.clone(),
                    parameters,
                    limit,
                    slot.clone(),
                    false,
                ));
                Ok(Ticket::new(slot, self.clone()))
            }
            _ => self.submit(text, parameters, limit),
        };
        lists.into_iter().map(one).collect()
    }

    /// Waits for a connection for a transaction, at most so long.
    ///
    /// # Errors
    /// There is none.
    pub async fn bind(self: Rc<Self>, patience: Duration) -> Result<Bound, Failure> {
        /// Gives back what it was given when nobody waited any more.
        struct Leaving<'a>(&'a Rc<Client>, Rc<Binder>);
        impl Drop for Leaving<'_> {
            fn drop(&mut self) {
                self.1.left.set(true);
                self.0.binders.borrow_mut().retain(|it| !it.left.get());
                if let Some(Ok(lane)) = self.1.lane.take() {
                    lane.release();
                    self.0.pump();
                }
            }
        }
        let binder = Rc::new(Binder::default());
        self.binders.borrow_mut().push_back(binder.clone());
        let leaving = Leaving(&self, binder);
        self.pump();
        if self.lanes.borrow().is_empty() {
            return Err(self.failure());
        }
        let waiting = poll_fn(|cx| {
            if let Some(lane) = leaving.1.lane.take() {
                return Poll::Ready(lane);
            }
            leaving.1.waiter.register(cx);
            Poll::Pending
        });
        let lane = match timeout(patience, waiting).await {
            Ok(lane) => lane?,
            Err(_) => return Err(self.busy(patience)),
        };
        Ok(Bound::new(lane, self.clone()))
    }

    pub(crate) fn known(&self, text: &str) -> Rc<Known> {
        self.known.borrow_mut().find(text)
    }

    pub(crate) fn busy(&self, patience: Duration) -> Failure {
        busy(self.most, patience)
    }

    fn failure(&self) -> Failure {
        let last = self.last_failure.borrow().clone();
        last.unwrap_or_else(|| Failure::connection("There is no connection to PostgreSQL"))
    }

    /// The connection with the least to do; none if another one, with nothing to do, is about to be there.
    fn choose(&self) -> Option<Rc<Lane>> {
        let lanes = self.lanes.borrow();
        let open = lanes.iter().filter(|lane| lane.takes_more());
        let found = open.min_by_key(|lane| lane.load.get())?;
        let is_opening = || lanes.iter().any(|lane| lane.state.get() == State::Opening);
        (found.load.get() == 0 || !is_opening()).then(|| found.clone())
    }

    /// Whether each connection has something to do.
    fn is_busy(&self) -> bool {
        let lanes = self.lanes.borrow();
        lanes.iter().all(|lane| lane.load.get() > 0)
    }

    /// Opens another connection, if there may be one.
    fn grow(self: &Rc<Self>) {
        let is_early = self
            .not_before
            .get()
            .is_some_and(|time| Instant::now() < time);
        if self.lanes.borrow().len() >= self.most || is_early {
            return;
        }
        let lane = Lane::new();
        self.lanes.borrow_mut().push(lane.clone());
        spawn_local(lane::run(self.clone(), lane));
    }

    /// Gives connections that are free to those who wait.
    pub(crate) fn pump(self: &Rc<Self>) {
        while !self.binders.borrow().is_empty() {
            let lanes = self.lanes.borrow().clone();
            let of_state = |state| lanes.iter().filter(move |lane| lane.state.get() == state);
            let taken = of_state(State::Bound).count() + of_state(State::Reserved).count();
            if taken >= (self.most - 1).max(1) {
                break;
            }
            let mut shared = of_state(State::Shared);
            if let Some(lane) = shared.clone().find(|lane| lane.load.get() == 0) {
                if let Some(binder) = self.binders.borrow_mut().pop_front() {
                    lane.state.set(State::Bound);
                    binder.give(Ok(lane.clone()));
                }
                continue;
            }
            let before = lanes.len();
            self.grow();
            let is_opening = of_state(State::Opening).next().is_some();
            if self.lanes.borrow().len() > before || is_opening {
                break;
            }
            // It finishes what it has to do, and takes no more.
            match shared.next() {
                Some(lane) => lane.state.set(State::Reserved),
                None => break,
            }
        }
        while !self.queue.borrow().is_empty() {
            let Some(lane) = self.choose() else {
                self.grow();
                break;
            };
            if let Some(job) = self.queue.borrow_mut().pop_front() {
                lane.place(job);
            }
        }
    }

    /// Nobody waits for this answer any more.
    pub(crate) fn forget(&self, slot: &Rc<Slot>) {
        let mut queue = self.queue.borrow_mut();
        queue.retain(|job| !Rc::ptr_eq(&job.slot, slot));
    }

    /// A connection could be opened.
    pub(crate) fn opened(self: &Rc<Self>) {
        self.pause.set(FIRST_PAUSE);
        self.not_before.set(None);
        self.pump();
    }

    /// A connection could not be opened.
    pub(crate) fn not_opened(self: &Rc<Self>, lane: &Rc<Lane>, failure: Failure) {
        self.remove(lane);
        self.not_before.set(Some(Instant::now() + self.pause.get()));
        self.pause.set((self.pause.get() * 2).min(LONGEST_PAUSE));
        *self.last_failure.borrow_mut() = Some(failure.clone());
        let is_any_open = {
            let lanes = self.lanes.borrow();
            lanes.iter().any(|lane| lane.state.get() != State::Opening)
        };
        if is_any_open {
            // These serve everybody.
            return self.pump();
        }
        self.fail_all(&failure);
    }

    fn fail_all(&self, failure: &Failure) {
        for job in self.queue.take() {
            job.slot.answer(Err(failure.clone()));
        }
        for binder in self.binders.take() {
            binder.give(Err(failure.clone()));
        }
    }

    /// A connection is over. What it was given and has not sent, others send.
    pub(crate) fn closed(self: &Rc<Self>, lane: &Rc<Lane>, unsent: VecDeque<Job>) {
        self.remove(lane);
        {
            let mut queue = self.queue.borrow_mut();
            for job in unsent.into_iter().rev() {
                job.slot.displace();
                queue.push_front(job);
            }
        }
        self.pump();
        if self.lanes.borrow().is_empty() {
            self.fail_all(&self.failure());
        }
    }

    fn remove(&self, lane: &Rc<Lane>) {
        self.lanes.borrow_mut().retain(|it| !Rc::ptr_eq(it, lane));
    }

    /// What it does and has done.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let lanes = self.lanes.borrow();
        let is_busy = |lane: &&Rc<Lane>| lane.load.get() > 0 || lane.state.get() == State::Bound;
        Figures {
            address: self.config.address(),
            most: self.most,
            open: lanes.len(),
            busy: lanes.iter().filter(is_busy).count(),
            waiting: self.queue.borrow().len() + self.binders.borrow().len(),
            lost: self.lost.get(),
            unused: self.unused.get(),
        }
    }
}
