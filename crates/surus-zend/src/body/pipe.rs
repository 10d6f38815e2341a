//! Response bytes on their way from PHP to the client: bounded, one thread, one writer, one reader.
//!
//! ```text
//! PHP ──► memory ──────────► client      as long as all responses together take little ([`crate::body::room`])
//!    └──► file ──► memory ──► client     else, and behind what is in the file already
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

/// Bytes that are read from a file at once.
const BLOCK: usize = 64 * 1024;

/// The same where memory is short.
const SMALL_BLOCK: usize = 16 * 1024;

/// Bytes that are handed on at once where memory is short: whoever sends them keeps up to 16 pieces, whatever their size.
pub(crate) const SMALL_PIECE: usize = Gathered::PIECE;

/// What happens to PHP when its client is slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Before it writes more than a little ahead of its client it is parked.
    #[default]
    WithClient,
    /// It goes on, into a file: it has an isolate or a process to itself, which others wait for.
    Ahead,
}

/// The response ended before its time.
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
    /// Behind these.
    last: RefCell<Gathered>,
    waiting: Cell<usize>,
    closed: Cell<bool>,
    /// It ended before its time: the client must not take what it got for the whole.
    cut_off: Cell<bool>,
    reader_gone: Cell<bool>,
    /// What goes behind the last byte.
    trailers: RefCell<Option<Box<HeaderMap>>>,
    reader: RefCell<Option<Waker>>,
    writer: RefCell<Option<Waker>>,
    spill: RefCell<Spill>,
    progress: Progress,
    this: Weak<Pipe>,
    /// [`relief`] knows it.
    listed: Cell<bool>,
    /// Called once when the reader goes away before the end.
    on_abort: RefCell<Option<Box<dyn FnOnce()>>>,
}

impl Pipe {
    /// `on_abort` is called if the reader goes away before the end.
    pub fn new(pace: Pace, on_abort: impl FnOnce() + 'static) -> Rc<Pipe> {
        Rc::new_cyclic(|this| {
            let mut pipe = Pipe::default();
            pipe.pace = pace;
            pipe.this = this.clone();
            pipe.on_abort = RefCell::new(Some(Box::new(on_abort)));
            pipe
        })
    }

    /// One that nothing will be added to.
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

    /// Adds bytes, over the bound if need be: ask [`Pipe::poll_space`] before.
    pub fn push(&self, bytes: Bytes) {
        if self.is_for_memory(&bytes) {
            self.keep(bytes);
            wake(&self.reader);
        }
    }

    /// As [`Pipe::push`], copied where that is needed.
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

    /// False if they are in the file now, or nobody will read them.
    fn is_for_memory(&self, bytes: &[u8]) -> bool {
        if bytes.is_empty() || self.reader_gone.get() || self.closed.get() {
            return false;
        }
        let mut spill = self.spill.borrow_mut();
        let is_ahead = self.pace == Pace::Ahead && self.is_high();
        let is_too_much = is_ahead || room::is_short_of_memory(bytes.len());
        // Whatever follows what is in the file has to go there, too.
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

    /// Neither memory nor files have room for more than a little.
    pub(crate) fn is_short_of_room(&self) -> bool {
        room::is_short_of_memory(0) && !self.spill.borrow().has_room()
    }

    /// No more should be added for now.
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
            *self.writer.borrow_mut() = Some(cx.waker().clone());
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

    /// Its client is too slow for the others: PHP takes it for one that has left.
    pub(crate) fn give_up(&self) {
        self.cut_off.set(true);
        self.forget();
        self.closed.set(true);
        wake(&self.reader);
    }

    /// There may be room.
    pub(crate) fn go_on(&self) {
        wake(&self.writer);
    }

    /// Nothing follows.
    pub fn close(&self) {
        self.closed.set(true);
        self.on_abort.borrow_mut().take();
        wake(&self.reader);
    }

    /// Adds a field that goes behind the last byte.
    pub fn add_trailer(&self, name: HeaderName, value: HeaderValue) {
        let mut trailers = self.trailers.borrow_mut();
        trailers.get_or_insert_default().append(name, value);
    }

    /// For the reader, behind the last byte; once.
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
            wake(&self.writer);
            return Poll::Ready(Some(Ok(bytes)));
        }
        if self.closed.get() {
            return Poll::Ready(self.cut_off.take().then_some(Err(CutOff)));
        }
        *self.reader.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }

    /// So many of the bytes in memory, at most.
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

    /// What waits, which nobody will read.
    fn forget(&self) {
        self.chunks.borrow_mut().clear();
        self.last.take();
        self.spill.take();
        self.waiting.set(0);
        let on_abort = self.on_abort.borrow_mut().take();
        if let Some(on_abort) = on_abort {
            on_abort();
        }
        wake(&self.writer);
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
