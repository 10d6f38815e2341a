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

use std::cell::{Cell, OnceCell, RefCell};
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};

use crate::buffers;
use crate::flush::Flusher;
use crate::http1::Reading;
use crate::output::{write_header, Output};
use crate::refused::{first_line, Refusal};
use crate::stall::Stall;
use crate::transport::Transport;
use crate::turn::Turn;
use crate::{Connection, Limits};

/// Bounds how much of a refused request is read for the sake of the client that is still sending it.
const LINGER_BYTES: usize = 64 * 1024 * 1024;

/// Bytes of that at once.
const SCRATCH: usize = 4096;

const REQUEST_TIMEOUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing has come yet.
    New,
    /// Between requests.
    Idle,
    Head,
    /// The head has not come in time.
    Late,
    /// A request is being answered.
    Busy,
    /// The same, and the head of the answer is on its way.
    Answering,
}

impl Phase {
    /// No request has begun.
    pub(crate) fn is_between(self) -> bool {
        matches!(self, Phase::New | Phase::Idle)
    }

    /// A request is being answered.
    pub(crate) fn is_busy(self) -> bool {
        matches!(self, Phase::Busy | Phase::Answering)
    }
}

/// Whether another request may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeepAlive {
    Stays,
    /// The request in flight, or the next one, is the last one.
    Last,
    /// The same, and none is waited for.
    Ends,
}

/// What becomes of the output that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    /// Nothing yet.
    Open,
    /// It leaves with the flusher's next round.
    Queued,
    /// The socket has not taken all of it at once: the connection's task sees to the rest.
    Stuck,
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
    /// Its bytes.
    pub(crate) transport: Box<dyn Transport>,
    /// What was read and nobody has had yet.
    pub(crate) buffer: RefCell<BytesMut>,
    /// Who reads on.
    pub(crate) reading: RefCell<Reading>,
    /// Bodies that were not read at once, so far.
    pub(crate) bodies: Cell<u32>,
    pub(crate) keep_alive: Cell<KeepAlive>,
    /// Some of the request stays unread (413, 431): see [`State::close`].
    pub(crate) linger: Cell<bool>,
    /// It has been idle, and another one wants its place.
    dismissed: Cell<bool>,
    output: RefCell<Output>,
    sending: Cell<Sending>,
    pub(crate) stall: Stall,
    pub(crate) turn: Turn,
    /// Several requests at a time, and no phases of one.
    http2: Cell<bool>,
    /// Since when a client of HTTP/2 owes the rest of a head.
    owes_since: Cell<Option<u32>>,
    /// Requests that are being answered.
    requests: Cell<u32>,
    /// What was refused before there was a request.
    refused: Cell<Option<Refusal>>,
    /// The beginning of what has come and is no request yet, where a log will want it.
    first: RefCell<Vec<u8>>,
    notes_first: Cell<bool>,
    command: Cell<Option<Command>>,
    task: RefCell<Option<Waker>>,
    clock: Rc<Cell<u32>>,
}

impl State {
    pub(crate) fn new(
        mut addresses: Connection,
        transport: Box<dyn Transport>,
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
                transport,
                buffer: RefCell::default(),
                reading: RefCell::new(Reading::Heads),
                bodies: Cell::new(0),
                keep_alive: Cell::new(KeepAlive::Stays),
                linger: Cell::new(false),
                dismissed: Cell::new(false),
                output: RefCell::default(),
                sending: Cell::new(Sending::Open),
                stall: Stall::default(),
                turn: Turn::default(),
                http2: Cell::new(false),
                owes_since: Cell::new(None),
                requests: Cell::new(0),
                refused: Cell::new(None),
                first: RefCell::default(),
                notes_first: Cell::new(false),
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

    /// This has come, and is refused.
    pub(crate) fn refuse_input(&self, bytes: &[u8], why: Refusal) {
        self.first.take();
        self.note_first(bytes);
        self.refuse(|_| why);
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
        self.dismissed.set(false);
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
        if self.phase.get() != Phase::Busy {
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
        if self.phase.get() == Phase::Late {
            self.refuse_input(&self.buffer.borrow(), Refusal::Timeout);
            self.output.borrow_mut().push(REQUEST_TIMEOUT);
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    /// Answers this to what has come or will come; the connection is to be closed.
    pub(crate) fn turn_away(&self, why: Refusal, answer: &[u8]) {
        self.refuse(|_| why);
        self.linger.set(true);
        self.output.borrow_mut().push(answer);
    }

    /// The body has been read: heads follow.
    pub(crate) fn rejoin(&self) {
        self.reading.replace(Reading::Heads);
        if self.buffer.borrow().is_empty() {
            buffers::give(self.buffer.take());
        }
        self.wake();
    }

    /// The rest of the body will not be read: no request can follow.
    pub(crate) fn abandon(&self) {
        self.reading.replace(Reading::Nobody);
        self.linger.set(true);
        self.wake();
    }

    /// Nothing that follows the request in flight is a request: others may take it for a part of this one.
    pub(crate) fn is_last_request(&self) {
        if self.keep_alive.get() == KeepAlive::Stays {
            self.keep_alive.set(KeepAlive::Last);
        }
    }

    /// Whether a request may follow the one in flight.
    pub(crate) fn stays(&self) -> bool {
        self.keep_alive.get() == KeepAlive::Stays
            && !matches!(*self.reading.borrow(), Reading::Nobody)
    }

    /// No request is waited for any more. False if it was so before.
    pub(crate) fn ends(&self) -> bool {
        self.keep_alive.replace(KeepAlive::Ends) != KeepAlive::Ends
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.keep_alive.get() == KeepAlive::Ends
    }

    /// Takes what an engine writes.
    pub(crate) fn poll_write(
        &self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut output = self.output.borrow_mut();
        output.poll_write(&*self.transport, cx, bufs)
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
        self.is_ending() || self.command.get().is_some()
    }

    /// Answers 408 and closes, from within the next read.
    pub(crate) fn time_out(&self) {
        self.phase.set(Phase::Late);
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

    /// When it is closed, the kernel forgets what the client has not taken: it would keep that for minutes.
    pub(crate) fn reset(&self) {
        self.transport.reset();
    }

    /// Counts a tick of the clock. True if the client has held up its response for longer than it may.
    pub(crate) fn stalls(&self, limits: &Limits) -> bool {
        self.stall.tick(&self.output.borrow(), limits)
    }

    /// Adds to the output.
    #[inline(always)]
    pub(crate) fn respond<T>(&self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        self.output.borrow_mut().append(write)
    }

    /// Adds bytes of a body.
    pub(crate) fn respond_body(&self, bytes: Bytes) {
        self.output.borrow_mut().push_bytes(bytes);
    }

    /// Pending while so much output waits that no more may be added.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.borrow_mut().poll_room(&*self.transport, cx)
    }

    /// Leaves what waits to the end of this turn; the rest of what the socket would not take to its readiness.
    pub(crate) fn poll_send(
        self: &Rc<Self>,
        cx: &mut Context<'_>,
        flusher: &Flusher,
    ) -> Poll<io::Result<()>> {
        if self.output.borrow().is_empty() {
            return Poll::Ready(Ok(()));
        }
        match self.sending.get() {
            Sending::Queued => Poll::Ready(Ok(())),
            Sending::Stuck => {
                let polled = self.poll_flush(cx);
                if polled.is_ready() {
                    self.sending.set(Sending::Open);
                }
                polled
            }
            Sending::Open => {
                self.sending.set(Sending::Queued);
                flusher.add(Rc::clone(self));
                Poll::Pending
            }
        }
    }

    /// Writes what the socket takes; the task sees to the rest, and to an error.
    pub(crate) fn flush_now(&self) {
        if self.output.borrow_mut().try_flush(&*self.transport) {
            self.sending.set(Sending::Open);
        } else {
            self.sending.set(Sending::Stuck);
            self.wake();
        }
    }

    /// Writes what waits. Not done as long as this is pending; an error ends the connection.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.borrow_mut().poll_flush(&*self.transport, cx)
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
        output.poll_send_file(&*self.transport, cx, file, offset, most)
    }

    /// When all is done with the connection: sends what still waits and, if part of the request is unread, reads it
    /// for a moment. Closing on unread data makes the kernel reset the connection, and the client may lose the response
    /// that it has not read yet.
    pub(crate) async fn close(&self) -> io::Result<()> {
        if !self.linger.get() {
            return poll_fn(|cx| self.poll_flush(cx)).await;
        }
        poll_fn(|cx| {
            let mut output = self.output.borrow_mut();
            output.poll_finish(&*self.transport, cx)
        })
        .await?;
        let mut budget = LINGER_BYTES;
        loop {
            match poll_fn(|cx| self.poll_skip(cx)).await? {
                0 => return Ok(()),
                count if count > budget => return Ok(()),
                count => budget -= count,
            }
        }
    }

    /// Reads what nobody wants.
    fn poll_skip(&self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut scratch = buffers::take();
        scratch.reserve(SCRATCH);
        let polled = self.transport.poll_read(cx, &mut scratch, SCRATCH);
        buffers::give(scratch);
        polled
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = self.task.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }
}
