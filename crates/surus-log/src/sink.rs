//! One log: the lines that wait to be written, and who writes them.

use std::cell::Cell;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, SigmaskHow};

use crate::place::Place;
use crate::{dropped, Log, Writer};

/// Bytes of lines that wait.
const ROOM: usize = 1024 * 1024;

/// An empty buffer that is larger is given back.
const KEPT: usize = 64 * 1024;

/// The process that has said how it writes; its forks are PHP's, until they say so, too.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// This process has no other threads.
pub(crate) fn own_process() {
    OWNER.store(process::id(), Relaxed);
}

thread_local! {
    /// Logs whose state this thread has, as bits: what is said of a panic must not wait for the one that panics.
    static HELD: Cell<u8> = const { Cell::new(0) };
}

/// The state of a log, for as long as this thread has it.
struct Guard<'a> {
    state: MutexGuard<'a, State>,
    bit: u8,
}

impl Deref for Guard<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        HELD.set(HELD.get() & !self.bit);
    }
}

pub(crate) struct Sink {
    log: Log,
    state: Mutex<State>,
    /// Something has come, or has been written.
    changed: Condvar,
}

struct State {
    place: Option<Arc<Place>>,
    /// Of a file.
    path: Option<PathBuf>,
    /// Whole lines, but for the first one, of which a part may have been written.
    waiting: Vec<u8>,
    edge: Edge,
    lost: Lost,
    /// Whose lines these are.
    owner: u32,
    has_thread: bool,
    /// The thread waits for lines.
    is_idle: bool,
}

/// How what was written last ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    /// With a line.
    Whole,
    /// In a line, whose rest comes first of what waits.
    Begun,
    /// In a line whose rest was dropped.
    Torn,
}

/// Lines that were dropped and of which no line tells yet.
struct Lost {
    lines: u64,
    /// So many bytes that wait came before them.
    behind: usize,
    why: Option<io::Error>,
    /// It is told as soon as nothing waits before it; else with the next line.
    at_once: bool,
}

impl Lost {
    const NOTHING: Lost = Lost {
        lines: 0,
        behind: 0,
        why: None,
        at_once: false,
    };

    fn is_due(&self) -> bool {
        self.lines > 0 && self.behind == 0
    }

    fn message(&self, log: Log) -> String {
        let lines = self.lines;
        let s = if lines == 1 { " was" } else { "s were" };
        let why = match &self.why {
            Some(error) => error.to_string(),
            None => "nobody has read them in time".to_owned(),
        };
        format!("{lines} line{s} dropped from {}: {why}", log.name())
    }
}

impl Sink {
    pub(crate) const fn new(log: Log) -> Self {
        Sink {
            log,
            state: Mutex::new(State {
                place: None,
                path: None,
                waiting: Vec::new(),
                edge: Edge::Whole,
                lost: Lost::NOTHING,
                owner: 0,
                has_thread: false,
                is_idle: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// With the lines of this process only. `None` where it would be waited for in vain.
    fn own(&self) -> Option<Guard<'_>> {
        let bit = 1 << (self.log as u8);
        if HELD.get() & bit != 0 {
            return None;
        }
        let me = process::id();
        let mut state = if me == OWNER.load(Relaxed) {
            // It is held for as long as it takes to copy some lines.
            self.state.lock().unwrap_or_else(PoisonError::into_inner)
        } else {
            // PHP has forked: if a thread had it in that moment, nobody gives it back.
            match self.state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(state)) => state.into_inner(),
                Err(TryLockError::WouldBlock) => return None,
            }
        };
        if state.owner != me {
            state.owner = me;
            state.has_thread = false;
            state.waiting.clear();
            state.edge = Edge::Whole;
            state.lost = Lost::NOTHING;
        }
        HELD.set(HELD.get() | bit);
        Some(Guard { state, bit })
    }

    pub(crate) fn write(&'static self, lines: &[u8], writer: Writer) {
        let Some(mut state) = self.own() else {
            return dropped::count(self.log, count(lines));
        };
        if writer == Writer::Caller {
            let Some(place) = state.place(self.log) else {
                return;
            };
            drop(state);
            let mut rest = lines;
            while !rest.is_empty() {
                match place.write(rest) {
                    Ok(written) if written > 0 => rest = &rest[written..],
                    Ok(_) | Err(_) => return dropped::count(self.log, count(rest)),
                }
            }
            return;
        }
        let is_full = state.waiting.len() + lines.len() > ROOM;
        if is_full {
            state.lose_newest(self.log, lines);
        } else {
            state.waiting.extend_from_slice(lines);
        }
        // Not where PHP has forked: a thread would end with what its parent wants of it.
        let is_owner = state.owner == OWNER.load(Relaxed);
        if writer == Writer::Thread && is_owner && self.has_thread(&mut state) {
            if state.is_idle {
                self.changed.notify_all();
            }
            return;
        }
        self.flush_state(state);
    }

    fn has_thread(&'static self, state: &mut State) -> bool {
        if !state.has_thread {
            // PHP's signals are none of its; it has none of its own.
            let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
            let started = thread::Builder::new()
                .name("log".to_owned())
                .stack_size(256 * 1024)
                .spawn(|| self.run());
            if let Ok(mask) = mask {
                let _ = mask.thread_set_mask();
            }
            // Else the caller writes what can be written at once.
            state.has_thread = started.is_ok();
        }
        state.has_thread
    }

    /// The thread.
    fn run(&self) {
        // What it says itself, of a panic, would be in vain.
        HELD.set(1 << (self.log as u8));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if !state.has_work(self.log) {
                state.is_idle = true;
                self.changed.notify_all();
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                state.is_idle = false;
                continue;
            }
            let Some(place) = state.place(self.log) else {
                state.lose_all(self.log);
                continue;
            };
            let chunk = state.chunk(place.most(), self.log);
            drop(state);
            let written = place.write(&chunk.bytes);
            state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.note(self.log, &chunk, written);
        }
    }

    pub(crate) fn flush(&self) {
        if let Some(state) = self.own() {
            self.flush_state(state);
        }
    }

    /// Writes what can be written at once.
    fn flush_state(&self, mut state: Guard<'_>) {
        while state.has_work(self.log) {
            let Some(place) = state.place(self.log) else {
                return state.lose_all(self.log);
            };
            let chunk = state.chunk(place.most(), self.log);
            match place.try_write(&chunk.bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                written => state.note(self.log, &chunk, written),
            }
        }
    }

    /// What to wait for before there is something to flush.
    pub(crate) fn stuck(&self) -> Option<OwnedFd> {
        let mut state = self.own()?;
        if !state.has_work(self.log) {
            return None;
        }
        state.place(self.log)?.copy().ok()
    }

    pub(crate) fn finish(&self, deadline: Instant) {
        let left = || deadline.saturating_duration_since(Instant::now());
        loop {
            let Some(mut state) = self.own() else { return };
            if state.has_thread {
                drop(state);
                return self.wait_for_thread(left);
            }
            let place = match state.has_work(self.log) {
                true => state.place(self.log),
                false => return,
            };
            if left().is_zero() {
                return state.lose_all(self.log);
            }
            self.flush_state(state);
            if let Some(place) = place.filter(|_| self.stuck().is_some()) {
                place.wait(left().min(Duration::from_millis(50)));
            }
        }
    }

    fn wait_for_thread(&self, left: impl Fn() -> Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.has_work(self.log) || !state.is_idle {
            if left().is_zero() {
                return state.lose_all(self.log);
            }
            let waited = self.changed.wait_timeout(state, left());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(crate) fn is_file(&self) -> bool {
        self.own().is_some_and(|state| state.path.is_some())
    }

    pub(crate) fn open(&self, path: &Path) -> io::Result<()> {
        let place = Arc::new(Place::open(path)?);
        if let Some(mut state) = self.own() {
            state.place = Some(place);
            state.path = Some(path.to_owned());
        }
        Ok(())
    }

    /// `None` where it is no file.
    pub(crate) fn reopen(&self) -> Option<Result<OwnedFd, (PathBuf, io::Error)>> {
        let path = self.own()?.path.clone()?;
        let opened = Place::open(&path).and_then(|place| Ok((place.copy()?, place)));
        Some(match opened {
            Ok((copy, place)) => {
                self.own()?.place = Some(Arc::new(place));
                Ok(copy)
            }
            Err(error) => Err((path, error)),
        })
    }

    pub(crate) fn adopt(&self, file: OwnedFd) {
        if let (Ok(place), Some(mut state)) = (Place::of(file), self.own()) {
            state.place = Some(Arc::new(place));
        }
    }
}

/// What is written at a time.
struct Chunk {
    bytes: Vec<u8>,
    /// Bytes of it that have not waited: the end of a torn line, and the line that says what was dropped.
    added: usize,
    /// Lines of which it says that they were dropped.
    tells: u64,
}

impl State {
    fn place(&mut self, log: Log) -> Option<Arc<Place>> {
        if self.place.is_none() {
            self.place = Place::standard(log).ok().map(Arc::new);
        }
        self.place.clone()
    }

    fn has_work(&self, log: Log) -> bool {
        let tells = log == Log::Error && self.lost.at_once && self.lost.is_due();
        !self.waiting.is_empty() || tells
    }

    /// What is written next: as many lines as fit, one at least. They go on waiting until they are written.
    fn chunk(&self, most: usize, log: Log) -> Chunk {
        let (mut bytes, mut tells) = (Vec::new(), 0);
        if self.edge == Edge::Torn {
            bytes.push(b'\n');
        }
        // Programs read the access log, and do not expect it there.
        if self.edge != Edge::Begun && self.lost.is_due() && log == Log::Error {
            let message = self.lost.message(log);
            let line = crate::line::own(&format_args!("{message}"), self.path.is_some());
            bytes.extend_from_slice(line.as_bytes());
            tells = self.lost.lines;
        }
        let added = bytes.len();
        // Up to where lines are missing.
        let end = match self.lost.lines {
            1.. if self.lost.behind > 0 => self.lost.behind.min(self.waiting.len()),
            _ => self.waiting.len(),
        };
        let waiting = &self.waiting[..end];
        let fits = &waiting[..end.min(most.saturating_sub(added))];
        let end = match fits.iter().rposition(|&byte| byte == b'\n') {
            Some(last) => last + 1,
            None => {
                let first = waiting.iter().position(|&byte| byte == b'\n');
                first.map_or(end, |first| first + 1)
            }
        };
        bytes.extend_from_slice(&waiting[..end]);
        Chunk {
            bytes,
            added,
            tells,
        }
    }

    /// Notes what has become of a chunk.
    fn note(&mut self, log: Log, chunk: &Chunk, written: io::Result<usize>) {
        let error = match written {
            Ok(0) => Some(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                let is_whole = chunk.bytes[count - 1] == b'\n';
                if count < chunk.added {
                    // It tells it again, in a line of its own.
                    self.edge = if is_whole { Edge::Whole } else { Edge::Torn };
                    return;
                }
                self.edge = if is_whole { Edge::Whole } else { Edge::Begun };
                self.told(chunk.tells);
                self.remove(count - chunk.added);
                if log != Log::Error && self.lost.is_due() {
                    crate::say!("{}", self.lost.message(log));
                    self.lost = Lost::NOTHING;
                }
                return;
            }
            Err(error) => Some(error),
        };
        if self.edge == Edge::Begun {
            self.edge = Edge::Torn;
        }
        let lines = count(&chunk.bytes[chunk.added..]);
        self.remove(chunk.bytes.len() - chunk.added);
        dropped::count(log, lines);
        self.lost.lines += lines;
        self.lost.behind = 0;
        self.lost.at_once = false;
        self.lost.why = error;
    }

    fn told(&mut self, lines: u64) {
        if lines > 0 {
            self.lost.lines -= lines.min(self.lost.lines);
            if self.lost.lines == 0 {
                self.lost = Lost::NOTHING;
            }
        }
    }

    fn remove(&mut self, bytes: usize) {
        self.waiting.drain(..bytes.min(self.waiting.len()));
        self.lost.behind = self.lost.behind.saturating_sub(bytes);
        // What is waited for in vain should not stay.
        if self.waiting.is_empty() && self.waiting.capacity() > KEPT {
            self.waiting = Vec::new();
        }
    }

    /// There is no room for these.
    fn lose_newest(&mut self, log: Log, lines: &[u8]) {
        let lines = count(lines);
        dropped::count(log, lines);
        if self.lost.lines == 0 {
            self.lost.behind = self.waiting.len();
        }
        self.lost.lines += lines;
        self.lost.at_once = true;
    }

    /// There is nothing to write to, or no time.
    fn lose_all(&mut self, log: Log) {
        dropped::count(log, count(&self.waiting));
        self.waiting.clear();
        self.lost = Lost::NOTHING;
    }
}

fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|&&byte| byte == b'\n').count() as u64
}
