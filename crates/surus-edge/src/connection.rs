//! One client connection.
//!
//! ```text
//!            first byte             headers complete          response body dropped
//!   New ────────────────► Head ───────────────────────► Busy ───────────────────────► Idle
//!    │ header_timeout      │ header_timeout             │ write_timeout               │ keep_alive; first byte: Head
//!    ▼                     ▼                            ▼                             ▼
//!  closed                 408, closed                  cut                          closed
//! ```
//!
//! The phases are noted here with plain cells and judged once a second by [`crate::sweep`]: a timer of its own for each
//! request would cost an allocation and two visits to the timer wheel.

use std::cell::{Cell, OnceCell, Ref, RefCell};
use std::fs::File;
use std::future::{poll_fn, Future};
use std::io::{self, IoSlice};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::TcpStream;

use crate::flush::Flusher;
use crate::output::{write_header, Output};
use crate::refused::{first_line, Refusal};
use crate::stall::Stall;
use crate::turn::Turn;
use crate::{Connection, Limits};

/// Bounds how much of a refused request is read for the sake of the client that is still sending it.
const LINGER_BYTES: usize = 64 * 1024 * 1024;

const REQUEST_TIMEOUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

const HEADERS_TOO_LARGE: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing has come yet.
    New,
    /// Between requests.
    Idle,
    Head,
    Busy,
}

impl Phase {
    /// No request has begun.
    pub(crate) fn is_between(self) -> bool {
        matches!(self, Phase::New | Phase::Idle)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// The lane, then hyper.
    Usual,
    /// A body: see [`crate::direct`].
    Body,
    /// Nobody: what comes is a body that is not wanted any more.
    Nobody,
}

/// What the connection's task is asked to do when it is next polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Finish the request in flight, then close; close at once if there is none.
    Finish,
    /// The same where nothing seems to be asked for: a request that has come while the thread was busy is the last one.
    Retire,
    /// Give up: drop the connection and the request in flight.
    Abort,
}

/// Shared by a connection's task, its socket, its bodies and the sweep. Single-threaded: plain cells.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) addresses: Connection,
    /// What the PROXY protocol has said instead.
    pub(crate) proxied: OnceCell<Connection>,
    pub(crate) phase: Cell<Phase>,
    /// When `phase` was entered, in ticks of the sweep's clock (seconds).
    pub(crate) since: Cell<u32>,
    /// Some of the request stays unread (413, 431): see [`State::close`].
    pub(crate) linger: Cell<bool>,
    /// `Finish` has been passed on to hyper.
    pub(crate) finishing: Cell<bool>,
    /// It has been idle, and another one wants its place.
    dismissed: Cell<bool>,
    output: RefCell<Output>,
    /// In the flusher's list.
    queued: Cell<bool>,
    /// The socket has not taken all of the output at once.
    stuck: Cell<bool>,
    header_timed_out: Cell<bool>,
    /// Bytes that hyper has read since its last request began.
    pub(crate) head: Cell<usize>,
    pub(crate) stall: Stall,
    pub(crate) turn: Turn,
    /// Several requests at a time, and no phases of one.
    http2: Cell<bool>,
    /// Since when a client of HTTP/2 owes the rest of a head.
    owes_since: Cell<Option<u32>>,
    /// Requests that are being answered.
    requests: Cell<u32>,
    /// Who reads what the client sends.
    reader: Cell<Reader>,
    /// What follows the request in flight is none.
    is_last: Cell<bool>,
    /// What was refused before there was a request.
    refused: Cell<Option<Refusal>>,
    /// The beginning of what has come and is no request yet, where a log will want it.
    first: RefCell<Vec<u8>>,
    notes_first: Cell<bool>,
    /// hyper has the connection.
    by_hyper: Cell<bool>,
    /// hyper is to give it back after this request.
    lent: Cell<bool>,
    /// Nothing of what hyper has written is left in hyper: other bytes may follow.
    flushed: Cell<bool>,
    command: Cell<Option<Command>>,
    task: RefCell<Option<Waker>>,
    clock: Rc<Cell<u32>>,
}

impl State {
    pub(crate) fn new(
        mut addresses: Connection,
        output: OwnedWriteHalf,
        clock: Rc<Cell<u32>>,
    ) -> Rc<Self> {
        Rc::new_cyclic(|weak: &Weak<State>| {
            let state = weak.clone();
            addresses.interim = Some(Rc::new(move |status, headers| {
                state
                    .upgrade()
                    .is_some_and(|state| state.send_interim(status, headers))
            }));
            State {
                addresses,
                proxied: OnceCell::new(),
                phase: Cell::new(Phase::New),
                since: Cell::new(clock.get()),
                linger: Cell::new(false),
                finishing: Cell::new(false),
                dismissed: Cell::new(false),
                output: RefCell::new(Output::new(output)),
                queued: Cell::new(false),
                stuck: Cell::new(false),
                header_timed_out: Cell::new(false),
                head: Cell::new(0),
                stall: Stall::default(),
                turn: Turn::default(),
                http2: Cell::new(false),
                owes_since: Cell::new(None),
                requests: Cell::new(0),
                reader: Cell::new(Reader::Usual),
                is_last: Cell::new(false),
                refused: Cell::new(None),
                first: RefCell::default(),
                notes_first: Cell::new(false),
                by_hyper: Cell::new(false),
                lent: Cell::new(false),
                flushed: Cell::new(true),
                command: Cell::new(None),
                task: RefCell::new(None),
                clock,
            }
        })
    }

    /// Who is at the other end.
    pub(crate) fn client(&self) -> &Connection {
        self.proxied.get().unwrap_or(&self.addresses)
    }

    pub(crate) fn is_http2(&self) -> bool {
        self.http2.get()
    }

    /// From here on it is judged as HTTP/2.
    pub(crate) fn speaks_http2(&self) {
        self.http2.set(true);
        self.enter(Phase::Idle);
    }

    /// Whether a client of HTTP/2 is in the midst of a head. `has_ended`: not of the same one as before.
    pub(crate) fn notes_head(&self, is_open: bool, has_ended: bool) {
        let since = self.owes_since.get().filter(|_| !has_ended);
        let since = since.unwrap_or_else(|| self.clock.get());
        self.owes_since.set(is_open.then_some(since));
    }

    /// How long a client of HTTP/2 has owed the rest of a head, in ticks.
    pub(crate) fn owes_head_for(&self, now: u32) -> u32 {
        let since = self.owes_since.get();
        since.map_or(0, |since| now.wrapping_sub(since))
    }

    /// What comes first is wanted if it is refused.
    pub(crate) fn notes_first(&self) {
        self.notes_first.set(true);
    }

    /// This has come, outside of a request.
    pub(crate) fn note_first(&self, bytes: &[u8]) {
        if self.notes_first.get() && self.first.borrow().is_empty() {
            *self.first.borrow_mut() = first_line(bytes).to_vec();
        }
    }

    /// What has come is refused. The first reason is the one.
    pub(crate) fn refuse(&self, why: impl FnOnce(&[u8]) -> Refusal) {
        if self.refused.get().is_none() {
            self.refused.set(Some(why(&self.first.borrow())));
        }
    }

    /// What was refused, and what it begins with.
    pub(crate) fn refused(&self) -> Option<(Refusal, Vec<u8>)> {
        let why = self.refused.take()?;
        Some((why, self.first.take()))
    }

    pub(crate) fn begin_request(&self) {
        if self.notes_first.get() {
            self.first.take();
        }
        self.requests.set(self.requests.get() + 1);
        // Its head has come after all.
        self.header_timed_out.set(false);
        self.dismissed.set(false);
        self.head.set(0);
        self.enter(Phase::Busy);
    }

    pub(crate) fn end_request(&self) {
        self.requests.set(self.requests.get() - 1);
        if self.requests.get() == 0 {
            self.enter(Phase::Idle);
        }
    }

    /// Not in the middle of another response. HTTP/2 has its own way, stream by stream.
    fn send_interim(&self, status: StatusCode, headers: &HeaderMap) -> bool {
        if !self.flushed.get() || self.phase.get() != Phase::Busy {
            return false;
        }
        self.respond(|output| {
            output.extend_from_slice(format!("HTTP/1.1 {status}\r\n").as_bytes());
            for (name, value) in headers {
                write_header(output, name, value);
            }
            output.extend_from_slice(b"\r\n");
        });
        self.wake();
        true
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.since.set(self.clock.get());
    }

    /// Bytes have come. HTTP/2 has no phases of one request.
    pub(crate) fn has_read(&self) {
        self.client().arrived.set(Instant::now());
        if self.phase.get().is_between() && !self.is_http2() {
            self.enter(Phase::Head);
        }
    }

    /// # Errors
    /// The headers have not come in time; 408 is among the output.
    pub(crate) fn check_timeout(&self) -> io::Result<()> {
        if self.header_timed_out.get() {
            self.refuse(|_| Refusal::Timeout);
            self.output.borrow_mut().push(REQUEST_TIMEOUT);
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    /// Answers 431 and closes, from within a read.
    pub(crate) fn refuse_head(&self) -> io::Error {
        self.turn_away(Refusal::Head, HEADERS_TOO_LARGE);
        io::ErrorKind::InvalidData.into()
    }

    /// Answers this to what has come or will come; the connection is to be closed.
    pub(crate) fn turn_away(&self, why: Refusal, answer: &[u8]) {
        self.refuse(|_| why);
        self.linger.set(true);
        self.output.borrow_mut().push(answer);
    }

    pub(crate) fn reader(&self) -> Reader {
        self.reader.get()
    }

    /// A body is read from the socket from now on.
    pub(crate) fn divert(&self) {
        self.reader.set(Reader::Body);
    }

    /// The body has been read.
    pub(crate) fn rejoin(&self) {
        self.reader.set(Reader::Usual);
        self.wake();
    }

    /// The rest of the body will not be read: no request can follow.
    pub(crate) fn abandon(&self) {
        self.reader.set(Reader::Nobody);
        self.linger.set(true);
        self.order(Command::Finish);
    }

    /// What follows the request in flight may be a part of it to others, so it is no request.
    pub(crate) fn ends_behind(&self) {
        self.is_last.set(true);
        self.order(Command::Finish);
    }

    /// Whether the response in flight is the last one.
    pub(crate) fn is_last(&self) -> bool {
        self.is_last.get() || self.reader() == Reader::Nobody
    }

    /// hyper gets the connection until it has answered the request that has been begun.
    pub(crate) fn lend(&self) {
        self.lent.set(true);
    }

    /// Notes whether hyper has it.
    pub(crate) fn note_hyper(&self, has_it: bool) {
        self.by_hyper.set(has_it);
    }

    /// While nothing is asked for, the lane needs less memory for it than hyper.
    pub(crate) fn rest(&self) {
        if self.by_hyper.get() && !self.lent.replace(true) {
            self.wake();
        }
    }

    /// Whether hyper is done with what it was lent the connection for, and it goes on.
    pub(crate) fn takes_back(&self) -> bool {
        let is_done = self.phase.get().is_between() && self.flushed.get();
        let goes_on = self.reader.get() == Reader::Usual && !self.is_closing();
        is_done && goes_on && self.lent.replace(false)
    }

    pub(crate) fn stream(&self) -> Ref<'_, TcpStream> {
        Ref::map(self.output.borrow(), Output::stream)
    }

    /// Takes what hyper writes.
    pub(crate) fn poll_write(
        &self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.flushed.set(false);
        self.output.borrow_mut().poll_write(cx, bufs)
    }

    /// hyper has nothing left to write for now.
    pub(crate) fn has_written_all(&self) {
        self.flushed.set(true);
    }

    pub(crate) fn order(&self, command: Command) {
        let is_stricter = self.command.get() == Some(Command::Finish);
        if !(is_stricter && command == Command::Retire) {
            self.command.set(Some(command));
        }
        self.wake();
    }

    /// To make room for another one.
    pub(crate) fn dismiss(&self) {
        self.dismissed.set(true);
        // A client of HTTP/2 has its time from here on.
        self.enter(self.phase.get());
        self.order(Command::Retire);
    }

    pub(crate) fn is_dismissed(&self) -> bool {
        self.dismissed.get()
    }

    /// Nothing is asked for, and all that was has been sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.phase.get().is_between() && self.output.borrow().is_empty()
    }

    /// True if it ends, or has been told to.
    pub(crate) fn is_closing(&self) -> bool {
        self.finishing.get() || self.command.get().is_some()
    }

    /// Answers 408 and closes, from within the next read.
    pub(crate) fn time_out(&self) {
        self.header_timed_out.set(true);
        self.wake();
    }

    /// The order given since the last poll, if any. Notes whom to wake for the next one.
    pub(crate) fn poll_order(&self, cx: &Context<'_>) -> Option<Command> {
        let mut task = self.task.borrow_mut();
        if !task
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            *task = Some(cx.waker().clone());
        }
        self.command.take()
    }

    /// True if the client has closed its side. hyper finds that out by reading, but it does not read while there is a
    /// pipelined request in its buffer.
    pub(crate) fn client_has_left(&self) -> bool {
        let output = self.output.borrow();
        let ready = pin!(output.stream().ready(Interest::READABLE));
        let polled = ready.poll(&mut Context::from_waker(Waker::noop()));
        matches!(polled, Poll::Ready(Ok(ready)) if ready.is_read_closed())
    }

    /// When it is closed, the kernel forgets what the client has not taken: it would keep that for minutes.
    pub(crate) fn reset(&self) {
        let output = self.output.borrow();
        let _ = SockRef::from(output.stream()).set_linger(Some(Duration::ZERO));
    }

    /// Counts a tick of the clock. True if the client has held up its response for longer than it may.
    pub(crate) fn stalls(&self, limits: &Limits) -> bool {
        self.stall.tick(&self.output.borrow(), limits)
    }

    /// Adds to the output. hyper has nothing to do with the connection then.
    pub(crate) fn respond<T>(&self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        self.output.borrow_mut().append(write)
    }

    /// Pending while so much output waits that no more may be added.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.borrow_mut().poll_room(cx)
    }

    /// Leaves what waits to the end of this turn; the rest of what the socket would not take to its readiness.
    pub(crate) fn poll_send(
        self: &Rc<Self>,
        cx: &mut Context<'_>,
        flusher: &Flusher,
    ) -> Poll<io::Result<()>> {
        if self.queued.get() || self.output.borrow().is_empty() {
            return Poll::Ready(Ok(()));
        }
        if self.stuck.get() {
            let polled = self.poll_flush(cx);
            self.stuck.set(polled.is_pending());
            return polled;
        }
        self.queued.set(true);
        flusher.add(Rc::clone(self));
        Poll::Pending
    }

    /// Writes what the socket takes; the task sees to the rest, and to an error.
    pub(crate) fn flush_now(&self) {
        self.queued.set(false);
        if !self.output.borrow_mut().try_flush() {
            self.stuck.set(true);
            self.wake();
        }
    }

    /// Writes what waits. Not done as long as this is pending; an error ends the connection.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.borrow_mut().poll_flush(cx)
    }

    /// Sends up to `most` bytes of a file from `offset` on, when nothing waits; how many. Zero at the file's end.
    pub(crate) fn poll_send_file(
        &self,
        cx: &mut Context<'_>,
        file: &File,
        offset: u64,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        let mut output = self.output.borrow_mut();
        output.poll_send_file(cx, file, offset, most)
    }

    /// After hyper is done with the connection: sends what still waits and, if part of the request is unread, reads it
    /// for a moment. Closing on unread data makes the kernel reset the connection, and the client may lose the response
    /// that it has not read yet.
    pub(crate) async fn close(&self) -> io::Result<()> {
        if !self.linger.get() {
            return poll_fn(|cx| self.poll_flush(cx)).await;
        }
        poll_fn(|cx| self.output.borrow_mut().poll_finish(cx)).await?;
        let mut budget = LINGER_BYTES;
        loop {
            poll_fn(|cx| self.output.borrow().stream().poll_read_ready(cx)).await?;
            match self.skip() {
                Ok(0) => return Ok(()),
                Ok(count) if count > budget => return Ok(()),
                Ok(count) => budget -= count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads what nobody wants. Its buffer is not part of what waits: every connection would have room for it.
    fn skip(&self) -> io::Result<usize> {
        let mut scratch = [0; 4096];
        self.output.borrow().stream().try_read(&mut scratch)
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = self.task.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }
}
