//! The body of a request. Its consumer reads it from the socket: nothing is passed between tasks, and what the consumer
//! does not need yet stays with the client.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{ready, Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

use super::chunks::{Chunks, Decoded};
use super::head::{Asked, Length};
use super::long_blocks::{LongBlocks, LONG_BLOCK};
use crate::body::incoming::{self, Direct};
use crate::body::offload::Rest;
use crate::connection::buffers;
use crate::connection::State;
use crate::{BoxError, Limits};

/// Bytes that are read at once: first, and at most, as the size doubles after each full block. Other tasks wait
/// meanwhile.
const FIRST_BLOCK: usize = 8 * 1024;
const BLOCK: usize = 64 * 1024;

/// A body with at least this `Content-Length` is read in large blocks from its beginning.
const LONG: u64 = 256 * 1024;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What is still to be read of a body.
#[derive(Debug)]
pub(super) struct Decoder {
    framing: Framing,
    /// The client waits for `100 Continue` before it sends the body.
    expects: bool,
    /// Bytes to be read at once.
    block: usize,
    /// Held while they are more than [`BLOCK`].
    _long: Option<LongBlocks>,
}

#[derive(Debug)]
enum Framing {
    /// Bytes that are still to be read.
    Length(u64),
    Chunked(Box<Chunks>),
}

/// What comes next of a body, and whether that was all.
pub(super) enum Next {
    Some(Frame<Bytes>, bool),
    End,
}

impl Decoder {
    pub(super) fn new(asked: &Asked, limits: &Limits) -> Self {
        let is_long = matches!(asked.body, Length::Known(length) if length >= LONG);
        let long = is_long.then(LongBlocks::take).flatten();
        Decoder {
            framing: match asked.body {
                Length::Known(length) => Framing::Length(length),
                Length::Chunked => Framing::Chunked(Box::new(Chunks::new(limits))),
            },
            expects: asked.expects,
            block: match &long {
                Some(_) => LONG_BLOCK,
                None if is_long => BLOCK,
                None => FIRST_BLOCK,
            },
            _long: long,
        }
    }

    /// Takes the next piece of the body from `input`. `None`: more has to be read.
    pub(super) fn decode(&mut self, input: &mut BytesMut) -> Result<Option<Next>, BoxError> {
        match &mut self.framing {
            Framing::Length(0) => Ok(Some(Next::End)),
            Framing::Length(_) if input.is_empty() => Ok(None),
            Framing::Length(left) => {
                let bytes = input.split_to(at_most(*left).min(input.len())).freeze();
                *left -= bytes.len() as u64;
                Ok(Some(Next::Some(Frame::data(bytes), *left == 0)))
            }
            Framing::Chunked(chunks) => match chunks.decode(input) {
                Ok(None) => Ok(None),
                Ok(Some(Decoded::Data(bytes))) => Ok(Some(Next::Some(Frame::data(bytes), false))),
                Ok(Some(Decoded::End(None))) => Ok(Some(Next::End)),
                Ok(Some(Decoded::End(Some(fields)))) => {
                    Ok(Some(Next::Some(Frame::trailers(fields), true)))
                }
                Err(_) => Err("the chunks of the request's body are malformed".into()),
            },
        }
    }

    /// Bytes that may be read: not beyond the end of a body whose length is known.
    fn room(&self) -> usize {
        match self.framing {
            Framing::Length(left) => at_most(left).min(self.block),
            Framing::Chunked(_) => self.block,
        }
    }
}

/// A body that is being read. Its consumer shares this with the connection's task, which may be done with it first.
#[derive(Debug)]
pub(super) struct Receiving {
    state: Rc<State>,
    progress: RefCell<Progress>,
}

#[derive(Debug)]
enum Progress {
    Coming(Decoder),
    /// The body has been read, or reading it has failed.
    Ended,
    /// The request was answered before its body had been read.
    Left,
}

/// The handle of a body. If it is dropped before the end of the body, no request can follow on the connection.
#[derive(Debug)]
pub(crate) struct Incoming(Rc<Receiving>);

impl Incoming {
    /// The body that the connection begins to read.
    pub(super) fn new(state: &Rc<State>, decoder: Decoder) -> (Self, Rc<Receiving>) {
        state.begin_body();
        let receiving = Rc::new(Receiving {
            state: Rc::clone(state),
            progress: RefCell::new(Progress::Coming(decoder)),
        });
        (Incoming(Rc::clone(&receiving)), receiving)
    }

    /// Bytes that are still to be read, where that is known.
    fn left(&self) -> Option<u64> {
        match &*self.0.progress.borrow() {
            Progress::Coming(Decoder {
                framing: Framing::Length(left),
                ..
            }) => Some(*left),
            Progress::Ended => Some(0),
            Progress::Coming(_) | Progress::Left => None,
        }
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = BoxError;

    /// The next frame. After an error there is none.
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.is_end_stream() {
            return Poll::Ready(None);
        }
        match ready!(self.0.poll_next(cx)) {
            Ok(Next::Some(frame, is_last)) => {
                if is_last {
                    self.0.end(frame.is_trailers());
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Ok(Next::End) => {
                self.0.end(false);
                Poll::Ready(None)
            }
            Err(error) => {
                self.0.fail();
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(*self.0.progress.borrow(), Progress::Ended)
    }

    fn size_hint(&self) -> SizeHint {
        self.left()
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl incoming::Incoming for Incoming {
    /// Only a chunked body may.
    fn may_have_trailers(&self) -> bool {
        self.left().is_none()
    }

    fn direct(&mut self) -> Option<&mut dyn Direct> {
        self.left()?;
        Some(self)
    }
}

impl Direct for Incoming {
    fn rest(&self) -> Option<io::Result<Rest>> {
        let state = &self.0.state;
        let socket = state.transport.kernel()?;
        let is_ahead = state.buffer.borrow().is_empty();
        is_ahead.then(|| Rest::new(socket))
    }

    fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let state = &self.0.state;
        if let Progress::Coming(decoder) = &mut *self.0.progress.borrow_mut() {
            decoder.invite(state);
        }
        match ready!(state.transport.poll_arrival(cx)) {
            Ok(true) => Poll::Ready(Ok(())),
            Ok(false) => Poll::Ready(Err(ended_early())),
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }

    fn took(&mut self, count: u64) {
        let mut has_ended = false;
        if let Progress::Coming(decoder) = &mut *self.0.progress.borrow_mut() {
            if let Framing::Length(left) = &mut decoder.framing {
                *left -= count;
                has_ended = *left == 0;
            }
        }
        if has_ended {
            self.0.end(false);
        }
    }

    fn has_ended(&self) -> bool {
        self.is_end_stream()
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Receiving {
    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Result<Next, BoxError>> {
        let state = &self.state;
        let mut progress = self.progress.borrow_mut();
        let Progress::Coming(body) = &mut *progress else {
            return Poll::Ready(Err("the request has been answered".into()));
        };
        let mut buffer = state.buffer.borrow_mut();
        loop {
            if let Some(next) = body.decode(&mut buffer)? {
                return Poll::Ready(Ok(next));
            }
            body.invite(state);
            if buffer.capacity() == 0 {
                *buffer = buffers::take();
            }
            let most = body.room();
            buffer.reserve(most);
            match state.transport.poll_read_long(cx, &mut buffer, most) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(ended_early())),
                Poll::Ready(Ok(count)) => {
                    state.has_read();
                    if count == body.block && count < BLOCK {
                        body.block = (2 * count).min(BLOCK);
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => {
                    buffers::give(std::mem::take(&mut buffer));
                    return Poll::Pending;
                }
            }
        }
    }

    /// The body has been read, and a head follows. `has_trailers`: then no request may follow, because other
    /// implementations may take a part of the trailers for the next head.
    fn end(&self, has_trailers: bool) {
        self.progress.replace(Progress::Ended);
        if has_trailers {
            self.state.is_last_request();
        }
        self.state.end_body();
    }

    /// Reading has failed. Further input is discarded, unless the body had already ended.
    fn fail(&self) {
        if let Progress::Coming(_) = self.progress.replace(Progress::Ended) {
            self.abandon();
        }
    }

    /// The body is not needed any more. If the rest of it has been received, it is skipped.
    pub(super) fn leave(&self) {
        let skipped = match &mut *self.progress.borrow_mut() {
            Progress::Coming(body) => body.skip(&mut self.state.buffer.borrow_mut()),
            Progress::Ended | Progress::Left => return,
        };
        match skipped {
            Some(has_trailers) => self.end(has_trailers),
            None => self.abandon(),
        }
        self.progress.replace(Progress::Left);
    }

    /// The rest of it will not be read.
    fn abandon(&self) {
        self.state.discard_input();
        self.state.wake();
    }
}

impl Decoder {
    fn invite(&mut self, state: &State) {
        if std::mem::take(&mut self.expects) {
            state.respond(|output| output.extend_from_slice(CONTINUE));
            state.wake();
        }
    }

    /// Skips the rest of the body if all of it has been received: `Some(true)` if it had trailers. `None` if it has
    /// not.
    fn skip(&mut self, input: &mut BytesMut) -> Option<bool> {
        loop {
            match self.decode(input) {
                Ok(Some(Next::Some(frame, true))) => return Some(frame.is_trailers()),
                Ok(Some(Next::Some(_, false))) => {}
                Ok(Some(Next::End)) => return Some(false),
                Ok(None) | Err(_) => return None,
            }
        }
    }
}

fn ended_early() -> BoxError {
    io::Error::from(io::ErrorKind::UnexpectedEof).into()
}

fn at_most(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
