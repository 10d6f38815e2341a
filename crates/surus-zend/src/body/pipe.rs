//! Response bytes on their way from PHP to the client: bounded, one thread, one writer, one reader.
//!
//! ```text
//! PHP ──► memory ──────────► client      while all responses together use little memory ([`crate::body::room`])
//!    └──► file ──► memory ──► client     otherwise, and while there are bytes in the file
//! ```

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    fmt,
    rc::{Rc, Weak},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::{
    body::relief,
    body::room,
    body::{relief::Progress, room::Gathered, spill::Spill},
};

/// Bytes that may wait for a slow client before the writer parks, or has them written to a file.
const HIGH_WATER: usize = 256 * 1024;

/// Bytes that are read from a file at a time.
const BLOCK: usize = 64 * 1024;

/// The same when memory is short.
const SMALL_BLOCK: usize = 16 * 1024;

/// The size of a piece for the reader when memory is short: the reader keeps up to 16 pieces, whatever their size.
pub(crate) const SMALL_PIECE: usize = Gathered::PIECE;

/// What happens to PHP when its client is slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// It is parked when it is more than a little ahead of its client.
    #[default]
    WithClient,
    /// It continues and its output goes to a file: it occupies an isolate or a process, which others wait for.
    Ahead,
}

/// The response ended early.
#[derive(Debug)]
pub(crate) struct CutOff;

impl fmt::Display for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request was ended while its response was being sent")
    }
}

impl std::error::Error for CutOff {}

/// Response bytes on their way from PHP to the client.
#[derive(Default)]
pub struct Pipe {
    pace: Pace,
    chunks: RefCell<VecDeque<Bytes>>,
    /// Small pieces that follow `chunks`.
    last: RefCell<Gathered>,
    waiting: Cell<usize>,
    closed: Cell<bool>,
    /// It ended early: the client must not take the received part for the whole.
    cut_off: Cell<bool>,
    reader_gone: Cell<bool>,
    /// Sent after the last byte.
    trailers: RefCell<Option<Box<HeaderMap>>>,
    reader: RefCell<Option<Waker>>,
    /// Jobs of one request may write at the same time.
    writers: RefCell<Vec<Waker>>,
    spill: RefCell<Spill>,
    progress: Progress,
    this: Weak<Pipe>,
    /// Whether it is in the list of [`relief`].
    listed: Cell<bool>,
    /// Called once if the reader disconnects before the end.
    on_abort: RefCell<Option<Box<dyn FnOnce()>>>,
}

impl Pipe {
    /// `on_abort` is called if the reader disconnects before the end.
    pub fn new(pace: Pace, on_abort: impl FnOnce() + 'static) -> Rc<Pipe> {
        Rc::new_cyclic(|this| {
            let mut pipe = Pipe::default();
            pipe.pace = pace;
            pipe.this = this.clone();
            pipe.on_abort = RefCell::new(Some(Box::new(on_abort)));
            pipe
        })
    }

    /// A closed pipe with these bytes.
    pub(crate) fn whole(bytes: Bytes) -> Rc<Pipe> {
        let pipe = Rc::new_cyclic(|this| {
            let mut pipe = Pipe::default();
            pipe.this = this.clone();
            pipe
        });
        pipe.push(bytes);
        pipe.close();
        pipe
    }

    /// Adds bytes, even beyond the bound: call [`Pipe::poll_space`] first.
    pub fn push(&self, bytes: Bytes) {
        if self.is_for_memory(&bytes) {
            self.keep(bytes);
            wake(&self.reader);
        }
    }

    /// As [`Pipe::push`]; copies the bytes if necessary.
    pub(crate) fn push_slice(&self, bytes: &[u8]) {
        if !self.is_for_memory(bytes) {
            return;
        }
        if bytes.len() < Gathered::PIECE {
            self.gather(bytes);
        } else {
            self.keep(Bytes::copy_from_slice(bytes));
        }
        wake(&self.reader);
    }

    /// Adds a small piece, if neither the file nor the bounds come into play and fewer than `most` bytes wait. False: it
    /// was not added, and is to be pushed.
    pub(crate) fn add_small(&self, bytes: &[u8], most: usize) -> bool {
        let can = (1..Gathered::PIECE).contains(&bytes.len())
            && self.waiting.get() + bytes.len() <= most.min(HIGH_WATER)
            && !self.closed.get()
            && !self.reader_gone.get()
            && !room::is_short_of_memory(Gathered::BLOCK)
            && self.spill.borrow().is_empty();
        if can {
            self.gather(bytes);
            wake(&self.reader);
        }
        can
    }

    /// False if the bytes were written to the file, or nobody will read them.
    fn is_for_memory(&self, bytes: &[u8]) -> bool {
        if bytes.is_empty() || self.reader_gone.get() || self.closed.get() {
            return false;
        }
        let mut spill = self.spill.borrow_mut();
        let is_ahead = self.pace == Pace::Ahead && self.is_high();
        let is_too_much = is_ahead || room::is_short_of_memory(bytes.len());
        // While there are bytes in the file, later bytes must go there, too.
        if spill.is_empty() && !(is_too_much && spill.has_room()) {
            return true;
        }
        let written = spill.write(bytes);
        drop(spill);
        match written {
            Ok(()) => {
                if !self.listed.replace(true) {
                    relief::list(&self.this);
                }
                wake(&self.reader);
            }
            Err(error) => {
                tracing::error!(%error, "a response for a slow client cannot be kept");
                self.cut_off();
            }
        }
        false
    }

    fn keep(&self, bytes: Bytes) {
        if bytes.len() < Gathered::PIECE {
            return self.gather(&bytes);
        }
        self.waiting.set(self.waiting.get() + bytes.len());
        let mut chunks = self.chunks.borrow_mut();
        let mut last = self.last.borrow_mut();
        if !last.is_empty() {
            chunks.push_back(last.take());
        }
        chunks.push_back(room::counted(bytes));
    }

    fn gather(&self, bytes: &[u8]) {
        self.waiting.set(self.waiting.get() + bytes.len());
        let mut last = self.last.borrow_mut();
        last.add(bytes);
        if last.len() >= Gathered::ENOUGH {
            self.chunks.borrow_mut().push_back(last.take());
        }
    }

    fn is_high(&self) -> bool {
        self.waiting.get() >= HIGH_WATER
    }

    /// Neither memory nor files have room for more.
    pub(crate) fn is_short_of_room(&self) -> bool {
        room::is_short_of_memory(0) && !self.spill.borrow().has_room()
    }

    /// Whether the writer should wait.
    pub(crate) fn is_full(&self) -> bool {
        if self.reader_gone.get() || self.closed.get() {
            return false;
        }
        let spill = self.spill.borrow();
        let waiting = self.waiting.get() as u64 + spill.len();
        match self.pace {
            _ if waiting == 0 => false,
            Pace::Ahead if spill.has_room() => false,
            Pace::Ahead if !spill.is_empty() => true,
            Pace::Ahead | Pace::WithClient => {
                waiting >= HIGH_WATER as u64 || self.is_short_of_room()
            }
        }
    }

    /// Ready when there is room, or nobody reads any more.
    pub fn poll_space(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_full() {
            let mut writers = self.writers.borrow_mut();
            if !writers.iter().any(|it| it.will_wake(cx.waker())) {
                writers.push(cx.waker().clone());
            }
            drop(writers);
            self.listed.set(true);
            relief::hold(&self.this);
            if self.is_full() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Bytes that wait for the client.
    pub(crate) fn backlog(&self) -> u64 {
        self.waiting.get() as u64 + self.spill.borrow().len()
    }

    /// Ends a response whose client is too slow: PHP sees a client that has disconnected.
    pub(crate) fn give_up(&self) {
        self.cut_off.set(true);
        self.forget();
        self.closed.set(true);
        wake(&self.reader);
    }

    /// Wakes the writers: there may be room.
    pub(crate) fn go_on(&self) {
        self.wake_writers();
    }

    fn wake_writers(&self) {
        if !self.writers.borrow().is_empty() {
            let writers = self.writers.take();
            writers.into_iter().for_each(Waker::wake);
        }
    }

    /// The end of the response.
    pub fn close(&self) {
        self.closed.set(true);
        self.on_abort.borrow_mut().take();
        wake(&self.reader);
    }

    /// Adds a trailer field.
    pub fn add_trailer(&self, name: HeaderName, value: HeaderValue) {
        let mut trailers = self.trailers.borrow_mut();
        trailers.get_or_insert_default().append(name, value);
    }

    /// For the reader, after the last byte; once.
    pub(crate) fn take_trailers(&self) -> Option<HeaderMap> {
        self.trailers.borrow_mut().take().map(|trailers| *trailers)
    }

    /// Ends it with an error.
    pub fn cut_off(&self) {
        self.cut_off.set(true);
        self.close();
    }

    pub(crate) fn poll_read(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, CutOff>>> {
        let is_short = room::is_short_of_memory(0);
        if self.waiting.get() == 0 {
            let most = if is_short { SMALL_BLOCK } else { BLOCK };
            let read = self.spill.borrow_mut().read(most);
            match read {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => self.keep(bytes),
                Err(error) => {
                    tracing::error!(%error, "a response that was kept for a slow client is lost");
                    self.cut_off();
                }
            }
        }
        if let Some(bytes) = self.next(if is_short { SMALL_PIECE } else { usize::MAX }) {
            self.waiting.set(self.waiting.get() - bytes.len());
            self.progress.took(bytes.len());
            self.wake_writers();
            return Poll::Ready(Some(Ok(bytes)));
        }
        if self.closed.get() {
            return Poll::Ready(self.cut_off.take().then_some(Err(CutOff)));
        }
        *self.reader.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The next bytes in memory, at most `most`.
    fn next(&self, most: usize) -> Option<Bytes> {
        let mut chunks = self.chunks.borrow_mut();
        if chunks.is_empty() && self.waiting.get() > 0 {
            chunks.push_back(self.last.borrow_mut().take());
        }
        match chunks.front_mut() {
            Some(first) if first.len() > most => Some(first.split_to(most)),
            _ => chunks.pop_front(),
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.closed.get()
            && !self.cut_off.get()
            && self.waiting.get() == 0
            && self.trailers.borrow().is_none()
            && self.spill.borrow().is_empty()
    }

    pub(crate) fn reader_left(&self) {
        self.reader_gone.set(true);
        self.forget();
    }

    /// Drops the pending bytes, which nobody will read.
    fn forget(&self) {
        self.chunks.borrow_mut().clear();
        self.last.take();
        self.spill.take();
        self.waiting.set(0);
        let on_abort = self.on_abort.borrow_mut().take();
        if let Some(on_abort) = on_abort {
            on_abort();
        }
        self.wake_writers();
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        if self.listed.get() {
            relief::strike(self);
        }
    }
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe")
            .field("pace", &self.pace)
            .field("waiting", &self.waiting)
            .finish_non_exhaustive()
    }
}

fn wake(slot: &RefCell<Option<Waker>>) {
    let waker = slot.borrow_mut().take();
    if let Some(waker) = waker {
        waker.wake();
    }
}
