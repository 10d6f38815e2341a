//! Response bytes on their way from PHP to the client: bounded, one thread, one writer, one reader.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    fmt,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::spill::Spill;

/// Bytes that may wait for a slow client before the writer parks.
const HIGH_WATER: usize = 256 * 1024;

/// The response ended before its time.
#[derive(Debug)]
pub(crate) struct CutOff;

impl fmt::Display for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request was ended while its response was being sent")
    }
}

impl std::error::Error for CutOff {}

#[derive(Default)]
pub(crate) struct Pipe {
    chunks: RefCell<VecDeque<Bytes>>,
    waiting: Cell<usize>,
    closed: Cell<bool>,
    /// It ended before its time: the client must not take what it got for the whole.
    cut_off: Cell<bool>,
    reader_gone: Cell<bool>,
    /// What goes behind the last byte.
    trailers: RefCell<Option<Box<HeaderMap>>>,
    reader: RefCell<Option<Waker>>,
    writer: RefCell<Option<Waker>>,
    /// Where bytes go beyond [`HIGH_WATER`], if they may go anywhere.
    spill: RefCell<Option<Spill>>,
    /// Called once when the reader goes away before the end.
    on_abort: RefCell<Option<Box<dyn FnOnce()>>>,
}

impl Pipe {
    pub(crate) fn new(spill: Option<Spill>, on_abort: impl FnOnce() + 'static) -> Rc<Pipe> {
        let pipe = Rc::new(Pipe::default());
        *pipe.spill.borrow_mut() = spill;
        *pipe.on_abort.borrow_mut() = Some(Box::new(on_abort));
        pipe
    }

    /// Adds bytes, over the bound if need be: ask [`Pipe::poll_space`] before or after.
    pub(crate) fn push(&self, bytes: Bytes) {
        if bytes.is_empty() || self.reader_gone.get() {
            return;
        }
        if let Some(spill) = self.spill.borrow_mut().as_mut() {
            // Whatever follows what is in the file has to go there, too.
            if !spill.is_empty() || (self.is_high() && spill.has_room()) {
                if let Err(error) = spill.write(&bytes) {
                    tracing::error!(%error, "a response for a slow client cannot be kept");
                    self.cut_off();
                }
                return;
            }
        }
        self.waiting.set(self.waiting.get() + bytes.len());
        self.chunks.borrow_mut().push_back(bytes);
        wake(&self.reader);
    }

    fn is_high(&self) -> bool {
        self.waiting.get() >= HIGH_WATER
    }

    pub(crate) fn is_full(&self) -> bool {
        let full = match self.spill.borrow().as_ref() {
            Some(spill) => !spill.has_room() && (self.is_high() || !spill.is_empty()),
            None => self.is_high(),
        };
        full && !self.reader_gone.get()
    }

    /// Ready when there is room, or nobody reads any more.
    pub(crate) fn poll_space(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_full() {
            *self.writer.borrow_mut() = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    pub(crate) fn close(&self) {
        self.closed.set(true);
        self.on_abort.borrow_mut().take();
        wake(&self.reader);
    }

    pub(crate) fn add_trailer(&self, name: HeaderName, value: HeaderValue) {
        let mut trailers = self.trailers.borrow_mut();
        trailers.get_or_insert_default().append(name, value);
    }

    /// For the reader, behind the last byte; once.
    pub(crate) fn take_trailers(&self) -> Option<HeaderMap> {
        self.trailers.borrow_mut().take().map(|trailers| *trailers)
    }

    /// Ends it with an error.
    pub(crate) fn cut_off(&self) {
        self.cut_off.set(true);
        self.close();
    }

    pub(crate) fn poll_read(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, CutOff>>> {
        if let Some(bytes) = self.chunks.borrow_mut().pop_front() {
            self.waiting.set(self.waiting.get() - bytes.len());
            wake(&self.writer);
            return Poll::Ready(Some(Ok(bytes)));
        }
        if let Some(spill) = self.spill.borrow_mut().as_mut() {
            match spill.read() {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => {
                    wake(&self.writer);
                    return Poll::Ready(Some(Ok(bytes)));
                }
                Err(error) => {
                    tracing::error!(%error, "a response that was kept for a slow client is lost");
                    self.cut_off();
                }
            }
        }
        if self.closed.get() {
            return Poll::Ready(self.cut_off.take().then_some(Err(CutOff)));
        }
        *self.reader.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.closed.get()
            && !self.cut_off.get()
            && self.chunks.borrow().is_empty()
            && self.trailers.borrow().is_none()
            && self.spill.borrow().as_ref().is_none_or(Spill::is_empty)
    }

    pub(crate) fn reader_left(&self) {
        self.reader_gone.set(true);
        self.chunks.borrow_mut().clear();
        self.spill.borrow_mut().take();
        self.waiting.set(0);
        let on_abort = self.on_abort.borrow_mut().take();
        if let Some(on_abort) = on_abort {
            on_abort();
        }
        wake(&self.writer);
    }
}

fn wake(slot: &RefCell<Option<Waker>>) {
    let waker = slot.borrow_mut().take();
    if let Some(waker) = waker {
        waker.wake();
    }
}
