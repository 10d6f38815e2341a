//! Post between the workers of a server: each letter goes to all others. What the master has made before the fork, only its
//! children have: nobody else can write or read letters.
//!
//! A worker takes a free box when it begins to serve, and holds a lock on it, which goes with its process. A box of a worker that
//! has died is emptied by the next one.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, VecDeque},
    ffi::CStr,
    fs::File,
    io,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::net::UnixDatagram,
    },
    rc::Rc,
    sync::{
        atomic::{AtomicU64, Ordering},
        OnceLock,
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    task::{spawn_local, yield_now, JoinHandle},
    time::timeout,
};

use super::{channels::stir, memory::shared_counters};
use crate::high::lifted;

/// Bytes of the largest letter. A socket's buffer has room for it on any Linux.
pub(crate) const LARGEST: usize = 80 * 1024;

/// Bytes that wait for one other worker; then letters are lost.
const MOST_WAITING: usize = 16 * 1024 * 1024;

/// How long a worker may not read before it is checked that it lives.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes of letters that are read before others have their turn: their readers pass them on.
const TURN: usize = 256 * 1024;
/// What a short letter counts.
const LEAST: usize = 4 * 1024;

const NAME: &CStr = c"surus-post";

struct Letterbox {
    /// Locked by its owner.
    lock: File,
    reads: UnixDatagram,
    writes: UnixDatagram,
    /// The number of its owner, as far as it is known; 0: nobody reads it.
    owner: &'static AtomicU64,
}

struct Boxes {
    all: Vec<Letterbox>,
    /// The number that the last owner has got.
    last_owner: &'static AtomicU64,
}

static BOXES: OnceLock<Boxes> = OnceLock::new();

thread_local! {
    /// The number of this process as an owner, once it has one.
    static NUMBER: Cell<u64> = const { Cell::new(0) };
    /// The box of this worker.
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
    /// What waits for the other boxes, by number.
    static WAITING: RefCell<Vec<Rc<Waiting>>> = const { RefCell::new(Vec::new()) };
    /// Others that have not got all letters, and can get some again.
    static LOST: RefCell<BTreeSet<u64>> = const { RefCell::new(BTreeSet::new()) };
}

struct Own {
    number: usize,
    /// Holds the lock.
    _lock: File,
    reading: JoinHandle<()>,
}

impl Drop for Own {
    fn drop(&mut self) {
        self.reading.abort();
        if let Some(own) = boxes().get(self.number) {
            own.owner.store(0, Ordering::Relaxed);
        }
    }
}

/// Letters that a box had no room for.
#[derive(Default)]
struct Waiting {
    letters: RefCell<VecDeque<Bytes>>,
    bytes: Cell<usize>,
    /// Whom they are for.
    owner: Cell<u64>,
    is_sending: Cell<bool>,
    has_lost: Cell<bool>,
}

fn boxes() -> &'static [Letterbox] {
    BOXES.get().map_or(&[], |boxes| &boxes.all)
}

/// Before any fork: boxes for so many workers, and for those that take their places.
///
/// # Errors
/// The system has no more memory or descriptors.
pub(crate) fn post_between(workers: usize) -> io::Result<()> {
    let count = 2 * workers + 2;
    let (owners, last) = shared_counters(count + 1)?.split_at(count);
    let boxes = owners.iter().map(|owner| {
        let (reads, writes) = UnixDatagram::pair()?;
        for socket in [&reads, &writes] {
            socket.set_nonblocking(true)?;
        }
        // SAFETY: a plain system call; the result is checked.
        let file = unsafe { libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Letterbox {
            // SAFETY: a new descriptor that nobody else owns.
            lock: lifted(unsafe { File::from_raw_fd(file) }),
            reads: high(reads),
            writes: high(writes),
            owner,
        })
    });
    let _ = BOXES.set(Boxes {
        all: boxes.collect::<io::Result<_>>()?,
        last_owner: &last[0],
    });
    Ok(())
}

fn high(socket: UnixDatagram) -> UnixDatagram {
    UnixDatagram::from(OwnedFd::from(lifted(File::from(OwnedFd::from(socket)))))
}

/// For the event loop of this process.
fn registered(socket: &UnixDatagram) -> io::Result<tokio::net::UnixDatagram> {
    tokio::net::UnixDatagram::from_std(high(socket.try_clone()?))
}

impl Letterbox {
    /// The lock, in an opening of its own; `None`: somebody has it.
    fn locked(&self) -> io::Result<Option<File>> {
        let path = format!("/proc/self/fd/{}", self.lock.as_raw_fd());
        let file = lifted(File::open(path)?);
        // SAFETY: a plain system call on an open file.
        let taken = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0;
        Ok(taken.then_some(file))
    }

    /// Nobody holds the lock of one that has died. In doubt its owner is there.
    fn is_dead(&self) -> bool {
        matches!(self.locked(), Ok(Some(_)))
    }

    fn empty(&self) {
        while self.reads.recv(&mut [0; 1]).is_ok() {}
    }
}

/// From now on, letters of other workers are passed to `deliver`. On the event loop's thread.
pub(crate) fn enter(deliver: impl Fn(Bytes) + 'static) {
    let Some(boxes) = BOXES.get().filter(|_| OWN.with_borrow(Option::is_none)) else {
        return;
    };
    match boxes.take(deliver) {
        Ok(Some(own)) => OWN.set(Some(own)),
        Ok(None) => tracing::error!("no letterbox is free: this worker gets no letters of others"),
        Err(error) => tracing::error!(%error, "this worker gets no letters of others"),
    }
}

impl Boxes {
    fn number(&self) -> u64 {
        if NUMBER.get() == 0 {
            NUMBER.set(self.last_owner.fetch_add(1, Ordering::Relaxed) + 1);
        }
        NUMBER.get()
    }

    /// `None`: none is free.
    fn take(&self, deliver: impl Fn(Bytes) + 'static) -> io::Result<Option<Own>> {
        for (number, letterbox) in self.all.iter().enumerate() {
            let Some(lock) = letterbox.locked()? else {
                continue;
            };
            // What was for another one.
            letterbox.empty();
            let socket = registered(&letterbox.reads)?;
            let reading = spawn_local(async move { read(&socket, deliver).await });
            letterbox.owner.store(self.number(), Ordering::Relaxed);
            return Ok(Some(Own {
                number,
                _lock: lock,
                reading,
            }));
        }
        Ok(None)
    }
}

/// The number of this process, which no other one of the server gets; 0 without a server.
pub(crate) fn number() -> u64 {
    BOXES.get().map_or(0, Boxes::number)
}

/// Whether no other process reads letters.
#[must_use]
pub fn is_alone() -> bool {
    let own = OWN.with_borrow(|own| own.as_ref().map(|own| own.number));
    boxes().iter().enumerate().all(|(number, letterbox)| {
        Some(number) == own || letterbox.owner.load(Ordering::Relaxed) == 0 || letterbox.is_dead()
    })
}

/// Whether the process with this number reads letters. One that has died does not.
pub(crate) fn is_there(number: u64) -> bool {
    let mut all = boxes().iter();
    let Some(letterbox) = all.find(|one| one.owner.load(Ordering::Relaxed) == number) else {
        return false;
    };
    let is_dead = letterbox.is_dead();
    if is_dead {
        let (old, new) = (number, 0);
        let _ = letterbox
            .owner
            .compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed);
    }
    !is_dead
}

async fn read(socket: &tokio::net::UnixDatagram, deliver: impl Fn(Bytes)) {
    let mut letter = vec![0; LARGEST];
    let mut turn = 0;
    loop {
        match socket.recv(&mut letter).await {
            Ok(length) => {
                deliver(Bytes::copy_from_slice(&letter[..length]));
                turn += length.max(LEAST);
            }
            Err(error) => {
                tracing::error!(%error, "letters of other workers cannot be read");
                tokio::time::sleep(PATIENCE).await;
            }
        }
        if turn >= TURN {
            turn = 0;
            yield_now().await;
        }
    }
}

/// The worker ends: others need not write to it.
pub(crate) fn leave() {
    OWN.take();
}

/// Sends a letter of at most [`LARGEST`] bytes to all other workers. Waits for none.
pub(crate) fn send(letter: &Bytes) {
    let own = OWN.with_borrow(|own| own.as_ref().map(|own| own.number));
    for (number, letterbox) in boxes().iter().enumerate() {
        let owner = letterbox.owner.load(Ordering::Relaxed);
        if Some(number) == own || owner == 0 {
            continue;
        }
        let waiting = waiting(number);
        if waiting.owner.replace(owner) != owner {
            waiting.clear();
        }
        if waiting.letters.borrow().is_empty() {
            match letterbox.writes.send(letter) {
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    tracing::error!(%error, "a letter to another worker is lost");
                    lost(owner);
                    continue;
                }
            }
        }
        waiting.add(letter, number);
    }
}

fn lost(owner: u64) {
    LOST.with_borrow_mut(|all| all.insert(owner));
    stir();
}

/// Whether [`take_lost`] has some.
pub(crate) fn has_lost() -> bool {
    LOST.with_borrow(|all| !all.is_empty())
}

/// The numbers of those to whom letters were lost: what they know of this worker may be wrong.
pub(crate) fn take_lost() -> BTreeSet<u64> {
    LOST.take()
}

fn waiting(number: usize) -> Rc<Waiting> {
    WAITING.with_borrow_mut(|all| {
        while all.len() <= number {
            all.push(Rc::default());
        }
        all[number].clone()
    })
}

impl Waiting {
    fn add(self: &Rc<Self>, letter: &Bytes, number: usize) {
        let bytes = self.bytes.get() + letter.len();
        if bytes > MOST_WAITING {
            if !self.has_lost.replace(true) {
                tracing::error!(
                    "letters are lost: another worker has not read {MOST_WAITING} bytes"
                );
            }
            return;
        }
        self.bytes.set(bytes);
        self.letters.borrow_mut().push_back(letter.clone());
        if !self.is_sending.replace(true) {
            let this = self.clone();
            spawn_local(async move {
                if let Err(error) = this.send_all(&boxes()[number]).await {
                    tracing::error!(%error, "letters to another worker are lost");
                    this.has_lost.set(true);
                }
                if this.has_lost.get() {
                    lost(this.owner.get());
                }
                this.clear();
                this.is_sending.set(false);
            });
        }
    }

    /// If it is the first one: all may have been dropped while it was sent.
    fn remove(&self, letter: &Bytes) {
        let mut letters = self.letters.borrow_mut();
        if letters.front().map(|first| first.as_ptr()) == Some(letter.as_ptr()) {
            letters.pop_front();
            self.bytes.set(self.bytes.get() - letter.len());
        }
    }

    fn clear(&self) {
        self.letters.borrow_mut().clear();
        self.bytes.set(0);
        self.has_lost.set(false);
    }

    /// Returns when all are sent, or nobody reads them.
    async fn send_all(&self, letterbox: &Letterbox) -> io::Result<()> {
        let socket = registered(&letterbox.writes)?;
        loop {
            let next = self.letters.borrow().front().cloned();
            let Some(letter) = next else {
                return Ok(());
            };
            if letterbox.owner.load(Ordering::Relaxed) != self.owner.get() {
                return Ok(());
            }
            match timeout(PATIENCE, socket.send(&letter)).await {
                Ok(sent) => {
                    sent?;
                    self.remove(&letter);
                }
                Err(_) => {
                    if letterbox.locked()?.is_some() {
                        letterbox.owner.store(0, Ordering::Relaxed);
                        return Ok(());
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::task::LocalSet;

    use super::*;

    fn letter(number: u8) -> Bytes {
        Bytes::from(vec![number; 60_000])
    }

    /// One process is all workers here: the boxes of others are taken without reading them.
    #[test]
    fn letters_come_in_order_or_not_at_all() {
        post_between(1).expect("boxes");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        LocalSet::new().block_on(&runtime, async {
            let [first, slow, dead, free] = boxes() else {
                panic!("not four boxes");
            };
            let got: Rc<RefCell<Vec<Bytes>>> = Rc::default();
            let to = got.clone();
            enter(move |letter| to.borrow_mut().push(letter));
            assert!(first.locked().expect("a file").is_none(), "it is ours");
            let _lock = slow.locked().expect("a file").expect("its lock");
            slow.owner.store(7, Ordering::Relaxed);
            dead.owner.store(8, Ordering::Relaxed);
            // To the others, not to itself, and more than a socket takes.
            for number in 0..100 {
                send(&letter(number));
            }
            assert!(waiting(1).bytes.get() > 0 && waiting(2).bytes.get() > 0);
            let begun = Instant::now();
            while dead.owner.load(Ordering::Relaxed) != 0 {
                assert!(begun.elapsed() < Duration::from_secs(20));
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            yield_now().await;
            assert_eq!(
                (waiting(2).bytes.get(), waiting(2).is_sending.get()),
                (0, false)
            );
            assert!(free.reads.recv(&mut [0; 1]).is_err(), "nobody reads it");
            let reader = registered(&slow.reads).expect("a socket");
            let mut bytes = vec![0; LARGEST];
            for number in 0..100 {
                let length = reader.recv(&mut bytes).await.expect("a letter");
                assert_eq!(bytes[..length], letter(number));
            }
            assert_eq!(waiting(1).bytes.get(), 0);
            // Another worker has taken the box: what waited is not for it.
            for number in 0..100 {
                send(&letter(number));
            }
            slow.empty();
            slow.owner.store(9, Ordering::Relaxed);
            send(&Bytes::from_static(b"new"));
            while slow
                .reads
                .recv(&mut bytes)
                .map_or(true, |length| length != 3)
            {
                yield_now().await;
            }
            assert_eq!(&bytes[..3], b"new");
            // And the other way round.
            first.writes.send(b"hello").expect("sent");
            while got.borrow().is_empty() {
                yield_now().await;
            }
            assert_eq!(*got.borrow(), [&b"hello"[..]]);
            leave();
            assert_eq!(first.owner.load(Ordering::Relaxed), 0);
            // Children of other tests may have the file for a moment, too.
            let begun = Instant::now();
            while first.locked().expect("a file").is_none() {
                assert!(begun.elapsed() < Duration::from_secs(20));
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    }
}
