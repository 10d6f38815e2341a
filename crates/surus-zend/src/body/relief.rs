//! Ends responses of slow readers that hold up other requests.
//!
//! PHP that has no room for more of its response waits for its client. That is fine while no other request waits for
//! its isolate, its process or its place. When one does, slow clients are disconnected until there is a place: first
//! those that would take longest to read their pending bytes.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::{Rc, Weak},
    time::{Duration, Instant},
};

use crate::body::{pipe::Pipe, room::Disk};

/// A client that will read all its pending bytes within this time is not slow.
const SOON: Duration = Duration::from_secs(3);

/// The time after the beginning of a backlog in which no client counts as slow.
const GRACE: Duration = Duration::from_secs(1);

/// How often readers are checked while a request waits for a place.
const LOOK: Duration = Duration::from_millis(20);

/// Time constant in seconds of the average of the bytes that a client reads: after it they count a third.
const MEMORY: f32 = 1.5;

/// The least number of pending bytes that is assumed for a response that continues.
const LITTLE: u64 = 256 * 1024;

thread_local! {
    /// Pipes whose writers wait, or that have bytes in a file, by address.
    static SLOW: RefCell<HashMap<usize, Weak<Pipe>>> = RefCell::default();
    static WANTED: Cell<usize> = const { Cell::new(0) };
    static LOOKING: Cell<bool> = const { Cell::new(false) };
    /// The number of responses ended since the last log message.
    static ENDED: Cell<usize> = const { Cell::new(0) };
    static NOTED: Cell<Option<Instant>> = const { Cell::new(None) };
    static LOOKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// A request waits for a place, until this is dropped.
#[derive(Debug)]
pub struct Wanted(());

impl Wanted {
    /// Ends responses of slow readers if these hold all places.
    #[must_use]
    pub fn begin() -> Self {
        WANTED.set(WANTED.get() + 1);
        relieve();
        Wanted(())
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        WANTED.set(WANTED.get() - 1);
    }
}

/// How fast a client reads its response, measured since its backlog began.
#[derive(Debug, Default)]
pub(crate) struct Progress(Cell<Option<Rate>>);

#[derive(Clone, Copy, Debug)]
struct Rate {
    since: Instant,
    /// Bytes, weighted less the older they are.
    taken: f32,
    at: Instant,
}

impl Rate {
    fn taken_of_late(&self) -> f32 {
        self.taken * (-self.at.elapsed().as_secs_f32() / MEMORY).exp()
    }
}

impl Progress {
    fn begin(&self) {
        let now = Instant::now();
        self.0.set(self.0.get().or(Some(Rate {
            since: now,
            taken: 0.0,
            at: now,
        })));
    }

    pub(crate) fn took(&self, bytes: usize) {
        if let Some(rate) = self.0.get() {
            self.0.set(Some(Rate {
                taken: rate.taken_of_late() + bytes as f32,
                at: Instant::now(),
                ..rate
            }));
        }
    }

    /// The estimated seconds to read `bytes`; 0 within [`GRACE`].
    fn time_for(&self, bytes: u64) -> f32 {
        let rate = self.0.get().filter(|rate| rate.since.elapsed() > GRACE);
        let time = rate.map(|rate| {
            let time = rate.since.elapsed().as_secs_f32().min(MEMORY);
            bytes.max(LITTLE) as f32 * time / rate.taken_of_late().max(1.0)
        });
        time.unwrap_or_default()
    }
}

/// Whether a request waits for a place.
pub(crate) fn is_wanted() -> bool {
    WANTED.get() > 0
}

/// Adds a pipe that has bytes in a file to the list.
pub(crate) fn list(pipe: &Weak<Pipe>) {
    if let Some(pipe) = pipe.upgrade() {
        pipe.progress().begin();
    }
    SLOW.with_borrow_mut(|slow| slow.insert(pipe.as_ptr() as usize, pipe.clone()));
}

/// Adds a pipe whose writer waits to the list.
pub(crate) fn hold(pipe: &Weak<Pipe>) {
    list(pipe);
    relieve();
}

/// Removes a pipe from the list.
pub(crate) fn strike(pipe: &Pipe) {
    let address = std::ptr::from_ref(pipe) as usize;
    // A thread that exits may have no list any more.
    let _ = SLOW.try_with(|slow| slow.borrow_mut().remove(&address));
}

/// There is room again: wakes PHP that waits for it.
pub(crate) fn has_room() {
    let slow = SLOW.try_with(|slow| slow.borrow().values().filter_map(Weak::upgrade).collect());
    let slow: Vec<Rc<Pipe>> = slow.unwrap_or_default();
    slow.iter().for_each(|pipe| pipe.go_on());
}

fn slow() -> Vec<Rc<Pipe>> {
    SLOW.with_borrow(|slow| slow.values().filter_map(Weak::upgrade).collect())
}

/// Ends as many responses as are needed.
fn relieve() {
    let wanted = WANTED.get();
    if wanted == 0 {
        return;
    }
    let now = Instant::now();
    if LOOKED.get().is_some_and(|at| now - at < LOOK) {
        return look_again();
    }
    LOOKED.set(Some(now));
    let slow = slow();
    let held: Vec<_> = slow.iter().filter(|pipe| pipe.is_full()).collect();
    // Some may continue now that a request waits: see `Spill::has_room`.
    has_room();
    if held.is_empty() {
        return;
    }
    let is_full = Disk::Responses.is_short();
    let mut readers: Vec<_> = slow
        .iter()
        .filter(|pipe| is_full || pipe.is_full())
        .map(|pipe| (pipe.progress().time_for(pipe.backlog()), pipe))
        .filter(|(time, _)| *time > SOON.as_secs_f32())
        .collect();
    readers.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let mut ended = 0;
    for (_, pipe) in readers {
        let free = held.iter().filter(|pipe| !pipe.is_full()).count();
        if free >= wanted.min(held.len()) && Disk::Responses.has_some() {
            break;
        }
        pipe.give_up();
        ended += 1;
    }
    if ended > 0 {
        note(ended);
        has_room();
    }
    look_again();
}

/// Counts ended responses, and logs their number at most once a second.
fn note(ended: usize) {
    let clients = ENDED.get() + ended;
    ENDED.set(clients);
    if NOTED.get().is_some_and(|at| at.elapsed().as_secs() < 1) {
        return;
    }
    NOTED.set(Some(Instant::now()));
    ENDED.set(0);
    tracing::warn!(
        clients,
        "clients that read their responses slowly were cut: these held what other requests waited for (response_disk, response_memory)"
    );
}

/// Checks again later: a client that was not slow may have become slow.
fn look_again() {
    if LOOKING.replace(true) {
        return;
    }
    tokio::task::spawn_local(async {
        tokio::time::sleep(LOOK).await;
        LOOKING.set(false);
        relieve();
    });
}
