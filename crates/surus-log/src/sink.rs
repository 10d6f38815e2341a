//! One log: its waiting lines, and who writes them.

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

use crate::queue::{count, Queue};
use crate::target::Target;
use crate::{dropped, Log, Writer};

/// Maximum bytes of waiting lines.
const ROOM: usize = 1024 * 1024;

/// The process that has last called [`own_process`]. Other processes are forks of PHP, until they call it, too.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Makes this process the owner of its logs. It must not have other threads.
pub(crate) fn own_process() {
    OWNER.store(process::id(), Relaxed);
}

thread_local! {
    /// Logs whose state this thread has locked, as bits: a message about a panic must not wait for a lock of the same
    /// thread.
    static HELD: Cell<u8> = const { Cell::new(0) };
}

/// The locked state of a log.
struct Guard<'a> {
    state: MutexGuard<'a, Queue>,
    bit: u8,
}

impl Deref for Guard<'_> {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        &self.state
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Queue {
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
    state: Mutex<Queue>,
    /// Signalled when lines were added or written.
    changed: Condvar,
}

impl Sink {
    pub(crate) const fn new(log: Log) -> Self {
        Sink {
            log,
            state: Mutex::new(Queue::new()),
            changed: Condvar::new(),
        }
    }

    /// Locks the state, with only the lines of this process. `None` if the lock would never be released.
    fn own(&self) -> Option<Guard<'_>> {
        let bit = 1 << (self.log as u8);
        if HELD.get() & bit != 0 {
            return None;
        }
        let me = process::id();
        let mut state = if me == OWNER.load(Relaxed) {
            // The lock is held only while lines are copied.
            self.state.lock().unwrap_or_else(PoisonError::into_inner)
        } else {
            // PHP has forked: if another thread had the lock at that moment, it is never released.
            match self.state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(state)) => state.into_inner(),
                Err(TryLockError::WouldBlock) => return None,
            }
        };
        if state.owner != me {
            state.forked(me);
        }
        HELD.set(HELD.get() | bit);
        Some(Guard { state, bit })
    }

    pub(crate) fn write(&'static self, lines: &[u8], writer: Writer) {
        let Some(mut state) = self.own() else {
            return dropped::count(self.log, count(lines));
        };
        if writer == Writer::Caller {
            let Some(target) = state.target(self.log) else {
                return;
            };
            drop(state);
            let mut rest = lines;
            while !rest.is_empty() {
                match target.write(rest) {
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
        // No thread in forks of PHP: such a process may exit before the thread has written.
        let is_owner = state.owner == OWNER.load(Relaxed);
        if writer == Writer::Thread && is_owner && self.has_thread(&mut state) {
            if state.is_idle {
                self.changed.notify_all();
            }
            return;
        }
        self.flush_state(state);
    }

    fn has_thread(&'static self, state: &mut Queue) -> bool {
        if !state.has_thread {
            // The thread blocks all signals, so that it does not get those for PHP.
            let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
            let started = thread::Builder::new()
                .name("log".to_owned())
                .stack_size(256 * 1024)
                .spawn(|| self.run());
            if let Ok(mask) = mask {
                let _ = mask.thread_set_mask();
            }
            // If that fails, the caller writes what is possible at once.
            state.has_thread = started.is_ok();
        }
        state.has_thread
    }

    /// The thread's main loop.
    fn run(&self) {
        // If this thread itself panics, its message is dropped, because it could not be written.
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
            let Some(target) = state.target(self.log) else {
                state.lose_all(self.log);
                continue;
            };
            let chunk = state.chunk(target.most(), self.log);
            drop(state);
            let written = target.write(&chunk.bytes);
            state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.note(self.log, &chunk, written);
        }
    }

    pub(crate) fn flush(&self) {
        if let Some(state) = self.own() {
            self.flush_state(state);
        }
    }

    /// Writes what is possible at once.
    fn flush_state(&self, mut state: Guard<'_>) {
        while state.has_work(self.log) {
            let Some(target) = state.target(self.log) else {
                return state.lose_all(self.log);
            };
            let chunk = state.chunk(target.most(), self.log);
            match target.try_write(&chunk.bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                written => state.note(self.log, &chunk, written),
            }
        }
    }

    /// The descriptor to wait for before the next flush, if there are lines to write.
    pub(crate) fn stuck(&self) -> Option<OwnedFd> {
        let mut state = self.own()?;
        if !state.has_work(self.log) {
            return None;
        }
        state.target(self.log)?.copy().ok()
    }

    pub(crate) fn finish(&self, deadline: Instant) {
        let left = || deadline.saturating_duration_since(Instant::now());
        loop {
            let Some(mut state) = self.own() else { return };
            if state.has_thread {
                drop(state);
                return self.wait_for_thread(left);
            }
            let target = match state.has_work(self.log) {
                true => state.target(self.log),
                false => return,
            };
            if left().is_zero() {
                return state.lose_all(self.log);
            }
            self.flush_state(state);
            if let Some(target) = target.filter(|_| self.stuck().is_some()) {
                target.wait(left().min(Duration::from_millis(50)));
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
        let target = Arc::new(Target::open(path)?);
        if let Some(mut state) = self.own() {
            state.target = Some(target);
            state.path = Some(path.to_owned());
        }
        Ok(())
    }

    /// `None` if the log is not a file.
    pub(crate) fn reopen(&self) -> Option<Result<OwnedFd, (PathBuf, io::Error)>> {
        let path = self.own()?.path.clone()?;
        let opened = Target::open(&path).and_then(|target| Ok((target.copy()?, target)));
        Some(match opened {
            Ok((copy, target)) => {
                self.own()?.target = Some(Arc::new(target));
                Ok(copy)
            }
            Err(error) => Err((path, error)),
        })
    }

    pub(crate) fn copy(&self) -> Option<OwnedFd> {
        self.own()?.target.as_ref()?.copy().ok()
    }

    pub(crate) fn adopt(&self, file: OwnedFd) {
        if let (Ok(target), Some(mut state)) = (Target::of(file), self.own()) {
            state.target = Some(Arc::new(target));
        }
    }
}
