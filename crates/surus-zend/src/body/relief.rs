//! Who is ended where slow readers hold what others wait for: a place for PHP, by a response that has nowhere to go.
//!
//! PHP that has no room for more of its response waits for its client. That is right as long as nobody else wants its
//! isolate, its process or its seat. When somebody does, clients are ended until there is a place: first those that would take
//! longest for what waits for them.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::{Rc, Weak},
    time::{Duration, Instant},
};

use crate::body::{pipe::Pipe, room::Disk};

/// Who will have taken all that waits within this time is not slow.
const SOON: Duration = Duration::from_secs(3);

/// How long nobody is slow.
const GRACE: Duration = Duration::from_secs(1);

/// How often the readers are looked at while somebody waits.
const LOOK: Duration = Duration::from_millis(20);

/// Seconds for which it counts what a client has taken: after them a third of it does.
const MEMORY: f32 = 1.5;

/// What a response that goes on has at least for its client.
const LITTLE: u64 = 256 * 1024;

thread_local! {
    /// Pipes that hold their writers, or have something in a file, by their addresses.
    static SLOW: RefCell<HashMap<usize, Weak<Pipe>>> = RefCell::default();
    static WANTED: Cell<usize> = const { Cell::new(0) };
    static LOOKING: Cell<bool> = const { Cell::new(false) };
    /// Since this was last logged.
    static ENDED: Cell<usize> = const { Cell::new(0) };
    static NOTED: Cell<Option<Instant>> = const { Cell::new(None) };
    static LOOKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Somebody waits for a place, until this is dropped.
#[derive(Debug)]
pub struct Wanted(());

impl Wanted {
    /// Ends slow readers if they hold all places.
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

/// How fast a client takes its response, since that has begun to pile up.
#[derive(Debug, Default)]
pub(crate) struct Progress(Cell<Option<Rate>>);

#[derive(Clone, Copy, Debug)]
struct Rate {
    since: Instant,
    /// Bytes, less as time passes.
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

    /// Seconds for so many bytes; none for who has had no time yet.
    fn time_for(&self, bytes: u64) -> f32 {
        let rate = self.0.get().filter(|rate| rate.since.elapsed() > GRACE);
        let time = rate.map(|rate| {
            let time = rate.since.elapsed().as_secs_f32().min(MEMORY);
            bytes.max(LITTLE) as f32 * time / rate.taken_of_late().max(1.0)
        });
        time.unwrap_or_default()
    }
}

/// Whether somebody waits for a place.
pub(crate) fn is_wanted() -> bool {
    WANTED.get() > 0
}

/// Notes a pipe that has something in a file.
pub(crate) fn list(pipe: &Weak<Pipe>) {
    if let Some(pipe) = pipe.upgrade() {
        pipe.progress().begin();
    }
    SLOW.with_borrow_mut(|slow| slow.insert(pipe.as_ptr() as usize, pipe.clone()));
}

/// Notes a pipe whose writer waits.
pub(crate) fn hold(pipe: &Weak<Pipe>) {
    list(pipe);
    relieve();
}

/// It has neither any more.
pub(crate) fn strike(pipe: &Pipe) {
    let address = std::ptr::from_ref(pipe) as usize;
    // At the end of the thread there may be no list any more.
    let _ = SLOW.try_with(|slow| slow.borrow_mut().remove(&address));
}

/// There is room again: PHP that waits for some looks.
pub(crate) fn has_room() {
    let slow = SLOW.try_with(|slow| slow.borrow().values().filter_map(Weak::upgrade).collect());
    let slow: Vec<Rc<Pipe>> = slow.unwrap_or_default();
    slow.iter().for_each(|pipe| pipe.go_on());
}

fn slow() -> Vec<Rc<Pipe>> {
    SLOW.with_borrow(|slow| slow.values().filter_map(Weak::upgrade).collect())
}

/// Ends as many as are needed.
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
    // Those that may go on since somebody waits.
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

/// Logs so many more that were ended, once a second.
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

/// Time passes, and who was not slow may be.
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
