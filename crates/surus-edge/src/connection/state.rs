//! The state of a connection.

use std::cell::{Cell, OnceCell, RefCell};
use std::fs::File;
use std::io::{self, IoSlice};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};

use super::commands::{Command, Commands};
use super::phase::{Phase, Progress};
use super::reading::Reading;
use super::refused_input::RefusedInput;
use super::writing::{Sending, Writing};
use crate::connection::buffers;
use crate::connection::flusher::Flusher;
use crate::connection::output::write_header;
use crate::connection::transport::Transport;
use crate::limits::time_slice::TimeSlice;
use crate::log::refusal::Refusal;
use crate::{Connection, Limits};

/// Bytes that are read at once.
const BLOCK: usize = 8 * 1024;

const REQUEST_TIMEOUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Whether another request may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeepAlive {
    Stays,
    /// The request in flight, or the next one, is the last one.
    Last,
    /// The connection is to be closed, but a response without `connection: close` was already begun: wait a moment for
    /// one more request, whose response has it.
    Promised,
    /// No request is waited for.
    Ends,
}

/// Shared by a connection's task, its socket, its bodies and the sweep. Single-threaded: plain cells.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) addresses: Connection,
    /// The addresses from the PROXY protocol, which replace them.
    pub(crate) proxied: OnceCell<Connection>,
    pub(crate) progress: Progress,
    /// Reads and writes its bytes.
    pub(crate) transport: Box<dyn Transport>,
    /// Bytes that were read and that nobody has taken yet.
    pub(crate) buffer: RefCell<BytesMut>,
    pub(super) reading: Cell<Reading>,
    keep_alive: Cell<KeepAlive>,
    writing: Writing,
    pub(crate) turn: TimeSlice,
    refusals: RefusedInput,
    commands: Commands,
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
                progress: Progress::new(clock),
                transport,
                buffer: RefCell::default(),
                reading: Cell::new(Reading::Heads),
                keep_alive: Cell::new(KeepAlive::Stays),
                writing: Writing::default(),
                turn: TimeSlice::default(),
                refusals: RefusedInput::default(),
                commands: Commands::default(),
            }
        })
    }

    /// The client at the other end.
    pub(crate) fn client(&self) -> &Connection {
        self.proxied.get().unwrap_or(&self.addresses)
    }

    /// From here on the timeouts are those of HTTP/2.
    pub(crate) fn speaks_http2(&self) {
        self.progress.speaks_http2();
    }

    /// From here on, notes the first line of input, for the log if it is refused.
    pub(crate) fn notes_first(&self) {
        self.refusals.note_first();
    }

    /// These bytes were received outside of a request.
    pub(crate) fn note_first(&self, bytes: &[u8]) {
        self.refusals.note(bytes);
    }

    /// These bytes were received, and are refused.
    pub(crate) fn refuse_input(&self, bytes: &[u8], why: Refusal) {
        self.refusals.forget();
        self.refusals.note(bytes);
        self.refusals.refuse(why);
    }

    /// The input is refused. Of several reasons the first one counts.
    pub(crate) fn refuse(&self, why: Refusal) {
        self.refusals.refuse(why);
    }

    /// Why the input was refused, and how it begins.
    pub(crate) fn refused(&self) -> Option<(Refusal, Vec<u8>)> {
        self.refusals.take()
    }

    pub(crate) fn begin_request(&self) {
        self.refusals.forget();
        self.progress.begin_request();
    }

    pub(crate) fn end_request(&self) {
        self.progress.end_request();
    }

    /// Sends an interim (1xx) response, but not in the middle of another response. HTTP/2 does this for each stream.
    fn send_interim(&self, status: StatusCode, headers: &HeaderMap) -> bool {
        if self.progress.phase() != Phase::Busy {
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

    /// Bytes were received.
    pub(crate) fn has_read(&self) {
        self.client().arrived.set(Instant::now());
        self.progress.has_read();
    }

    /// # Errors
    /// The headers were not received in time; a 408 response is in the output.
    pub(crate) fn check_timeout(&self) -> io::Result<()> {
        if self.progress.phase() == Phase::Late {
            self.refuse_input(&self.buffer.borrow(), Refusal::Timeout);
            self.writing.output.borrow_mut().push(REQUEST_TIMEOUT);
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    /// Refuses all input with this response; the connection is to be closed.
    pub(crate) fn turn_away(&self, why: Refusal, answer: &[u8]) {
        self.refuse(why);
        self.discard_input();
        self.writing.output.borrow_mut().push(answer);
    }

    /// Whether heads are read, and not a body.
    pub(crate) fn reads_heads(&self) -> bool {
        self.reading.get() == Reading::Heads
    }

    /// A body follows. Its owner reads it.
    pub(crate) fn begin_body(&self) {
        self.reading.set(Reading::Body);
    }

    /// The body has been read: heads follow.
    pub(crate) fn end_body(&self) {
        if self.reading.get() == Reading::Body {
            self.reading.set(Reading::Heads);
        }
        self.free_buffer();
        self.wake();
    }

    /// Gives the buffer back to the pool if it is empty.
    pub(crate) fn free_buffer(&self) {
        if self.buffer.borrow().is_empty() {
            buffers::give(self.buffer.take());
        }
    }

    /// Reads if the buffer is empty. Returns how many bytes are in it; zero at the end of input.
    pub(crate) fn poll_fill(&self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut buffer = self.buffer.borrow_mut();
        if !buffer.is_empty() {
            return Poll::Ready(Ok(buffer.len()));
        }
        if buffer.capacity() == 0 {
            *buffer = buffers::take();
        }
        buffer.reserve(BLOCK);
        let polled = self.transport.poll_read(cx, &mut buffer, BLOCK);
        drop(buffer);
        self.free_buffer();
        polled
    }

    /// Further input is discarded: no request can follow.
    pub(crate) fn discard_input(&self) {
        self.reading.set(Reading::Nobody);
    }

    /// The request in flight is the last one: other implementations may take what follows for a part of it.
    pub(crate) fn is_last_request(&self) {
        if self.keep_alive.get() == KeepAlive::Stays {
            self.keep_alive.set(KeepAlive::Last);
        }
    }

    /// Whether a request may follow the one whose response begins now.
    pub(crate) fn stays(&self) -> bool {
        self.keep_alive.get() == KeepAlive::Stays && self.reading.get() != Reading::Nobody
    }

    /// Whether a request may follow the one that was just answered: its response may have promised that.
    pub(crate) fn may_follow(&self) -> bool {
        self.stays() || self.is_promised() && self.reading.get() != Reading::Nobody
    }

    /// Stops waiting for requests, except for one that a response has already promised to the client. False if this was
    /// so before.
    pub(crate) fn ends(&self) -> bool {
        let phase = self.progress.phase();
        let is_under_way =
            phase == Phase::Answering || phase == Phase::Idle && !self.writing.is_empty();
        let next = match self.keep_alive.get() {
            KeepAlive::Promised => KeepAlive::Promised,
            KeepAlive::Stays if is_under_way && !self.progress.is_http2() => KeepAlive::Promised,
            KeepAlive::Stays | KeepAlive::Last | KeepAlive::Ends => KeepAlive::Ends,
        };
        self.keep_alive.replace(next) != next
    }

    pub(crate) fn is_promised(&self) -> bool {
        self.keep_alive.get() == KeepAlive::Promised
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.keep_alive.get() == KeepAlive::Ends
    }

    /// Takes output of a protocol engine.
    pub(crate) fn poll_write(
        &self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut output = self.writing.output.borrow_mut();
        output.poll_write(&*self.transport, cx, bufs)
    }

    pub(crate) fn order(&self, command: Command) {
        self.commands.give(command);
    }

    /// Retires the connection, to make room for another one.
    pub(crate) fn dismiss(&self) {
        self.progress.dismiss();
        self.order(Command::Retire);
    }

    /// No request is in flight, and all responses have been sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.progress.phase().is_between() && self.writing.is_empty()
    }

    /// True if the connection ends, or was told to.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_ending() || !self.commands.is_empty()
    }

    /// Answers 408 and closes, from within the next read.
    pub(crate) fn time_out(&self) {
        self.progress.is_late();
        self.wake();
    }

    /// The command given since the last poll, if any. Registers the task to wake for the next one.
    pub(crate) fn poll_order(&self, cx: &Context<'_>) -> Option<Command> {
        self.commands.poll(cx)
    }

    /// Makes the kernel discard unsent output on close: otherwise it would keep that for minutes.
    pub(crate) fn reset(&self) {
        self.transport.reset();
    }

    /// Counts a tick of the clock. True if the client has blocked its response for longer than is allowed.
    pub(crate) fn stalls(&self, limits: &Limits) -> bool {
        self.writing.stalls(limits)
    }

    /// Adds to the output.
    #[inline(always)]
    pub(crate) fn respond<T>(&self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        self.writing.output.borrow_mut().append(write)
    }

    /// Adds bytes of a body.
    pub(crate) fn respond_body(&self, bytes: Bytes) {
        self.writing.output.borrow_mut().push_bytes(bytes);
    }

    /// Pending while the output is full.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writing
            .output
            .borrow_mut()
            .poll_room(&*self.transport, cx)
    }

    /// Queues the output for the end of this turn. If the socket did not take all of it then, writes the rest when the
    /// socket is writable.
    pub(crate) fn poll_send(
        self: &Rc<Self>,
        cx: &mut Context<'_>,
        flusher: &Flusher,
    ) -> Poll<io::Result<()>> {
        if self.writing.output.borrow().is_empty() {
            return Poll::Ready(Ok(()));
        }
        match self.writing.sending.get() {
            Sending::Queued => Poll::Ready(Ok(())),
            Sending::Stuck => {
                let polled = self.poll_flush(cx);
                if polled.is_ready() {
                    self.writing.sending.set(Sending::Open);
                }
                polled
            }
            Sending::Open => {
                self.writing.sending.set(Sending::Queued);
                flusher.add(Rc::clone(self));
                Poll::Pending
            }
        }
    }

    /// Writes what the socket takes now. The task writes the rest, and handles an error.
    pub(crate) fn flush_now(&self) {
        if !self.writing.flush_now(&*self.transport) {
            self.wake();
        }
    }

    /// Writes all output. Pending until that is done; an error ends the connection.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writing
            .output
            .borrow_mut()
            .poll_flush(&*self.transport, cx)
    }

    /// Sends up to `most` bytes of a file from `offset` on. The output must be empty. Returns how many; zero at the
    /// file's end.
    pub(crate) fn poll_send_file(
        &self,
        cx: &mut Context<'_>,
        file: &File,
        offset: u64,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        let mut output = self.writing.output.borrow_mut();
        output.poll_send_file(&*self.transport, cx, file, offset, most)
    }

    /// Writes all output, and tells the client that nothing more will come.
    pub(crate) fn poll_finish(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut output = self.writing.output.borrow_mut();
        output.poll_finish(&*self.transport, cx)
    }

    pub(crate) fn wake(&self) {
        self.commands.wake();
    }
}
