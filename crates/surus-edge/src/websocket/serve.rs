//! One conversation: a client's frames to the application, the application's messages to the client.
//!
//! ```text
//!       the application closes, or the server ends           the client answers, or 5 s
//!   Open ─────────────────────────────────────────► Closing ────────────────────────────► over
//!    │ │ the client closes                                  the application closes, or 5 s ▲ ▲
//!    │ └──────────────────────────────────────────► Answering ───────────────────────────────┘ │
//!    └─────────────────────────────────────────────────────────────────────────────────────────┘
//!      the client violates the protocol, is gone
//! ```
//!
//! A client is read only while its last messages were taken, and while what was sent before finds room: neither side's
//! backlog grows. A client that does not read is ended by the edge's `write_timeout`.

use std::future::{poll_fn, Future};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep};

use super::decoder::{Decoder, Event};
use super::frame::{self, Opcode};
use super::{deflate, Application, Bounds, Close, Message, Outgoing};
use crate::connection::State;
use crate::Upgraded;

/// How long each side may take to answer the end of a conversation.
const CLOSING: Duration = Duration::from_secs(5);

/// Frames of a client that are handled before others have their turn.
const TURN: usize = 64;

/// Questions without an answer after which a client is gone.
const UNANSWERED: u32 = 2;

/// What happens next in a conversation.
#[derive(Debug)]
enum Phase {
    Open,
    /// The server's last frame is sent.
    Closing,
    /// The client's last frame has come.
    Answering(Close),
}

struct Serving<'a, A> {
    state: Rc<State>,
    application: &'a A,
    decoder: Decoder,
    /// The window of what is sent, in bits, if messages may be compressed.
    deflate: Option<u8>,
    phase: Phase,
    /// The application was told that the server ends.
    leaves: bool,
    /// For the next question, and for the end of `Closing`.
    alarm: Option<Pin<Box<Sleep>>>,
    ping: Duration,
    /// Questions since the client was heard last.
    asked: u32,
    /// The conversation has ended so.
    over: Option<Close>,
}

/// Serves a conversation until its end. If the future is dropped before, the application is told that the client is gone.
pub async fn serve<A: Application>(connection: Upgraded, application: &A, bounds: Bounds) {
    let _guard = Guard(application);
    let mut serving = Serving {
        state: connection.into_state(),
        application,
        decoder: Decoder::new(bounds.max_message, bounds.deflate.is_some()),
        deflate: bounds.deflate,
        phase: Phase::Open,
        leaves: false,
        alarm: (!bounds.ping.is_zero()).then(|| Box::pin(tokio::time::sleep(bounds.ping))),
        ping: bounds.ping,
        asked: 0,
        over: None,
    };
    poll_fn(|cx| serving.poll(cx)).await;
}

/// The compressed payload of a message, if that is smaller.
fn packed(message: &Message, window: u8) -> Option<Bytes> {
    let pack = || deflate::compress(&message.data, window).map(Bytes::from);
    match &message.shared {
        Some(shared) if window == deflate::LARGEST => shared.get_or_init(pack).clone(),
        _ => pack(),
    }
}

/// Tells an application that its client is gone, if nothing else was told before.
struct Guard<'a, A: Application>(&'a A);

impl<A: Application> Drop for Guard<'_, A> {
    fn drop(&mut self) {
        self.0.ended(Close::new(Close::ABNORMAL));
    }
}

impl<A: Application> Serving<'_, A> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.leaves && self.state.is_ending() {
            self.leaves = true;
            self.application.leave();
        }
        self.poll_turn(cx).map(|end| {
            // An error: the connection has broken.
            self.application
                .ended(end.unwrap_or_else(|_| Close::new(Close::ABNORMAL)));
        })
    }

    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Close>> {
        let mut turn = 0;
        loop {
            if self.poll_alarm(cx).is_ready() {
                return Poll::Ready(Ok(self.give_up()));
            }
            // Also for answers to what the client has sent.
            match self.state.poll_room(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    // The question waits behind what it has not taken yet, and nobody reads its answers: until then
                    // its time is that of `write_timeout`.
                    self.asked = 0;
                    return Poll::Pending;
                }
            }
            let sent = self.poll_send(cx);
            if let Some(end) = self.over.take() {
                return Poll::Ready(Ok(end));
            }
            if turn == TURN {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            turn += 1;
            match self.poll_event(cx) {
                Poll::Ready(Ok(None)) => {}
                Poll::Ready(Ok(Some(end))) => return Poll::Ready(Ok(end)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending if sent => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Sends one message of the application; false if there is none.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> bool {
        if matches!(self.phase, Phase::Closing) {
            return false;
        }
        let Poll::Ready(next) = self.application.poll_next(cx) else {
            return false;
        };
        match next {
            Outgoing::Message(message) => {
                let opcode = match message.binary {
                    true => Opcode::Binary,
                    false => Opcode::Text,
                };
                let packed = self.deflate.and_then(|window| packed(&message, window));
                let is_packed = packed.is_some();
                let payload = packed.unwrap_or(message.data);
                let length = payload.len();
                self.state
                    .respond(|output| frame::write_head(output, opcode, is_packed, length));
                self.state.respond_body(payload);
            }
            Outgoing::Close(close) => {
                self.state
                    .respond(|output| frame::write_close(output, &close));
                match std::mem::replace(&mut self.phase, Phase::Closing) {
                    Phase::Answering(close) => self.over = Some(close),
                    Phase::Open | Phase::Closing => self.set_alarm(),
                }
            }
        }
        true
    }

    /// Handles one event of the client. Its result is the end of the conversation.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Close>>> {
        match self.phase {
            Phase::Open => {
                if self.application.poll_ready(cx).is_pending() {
                    // It may have answered: nobody has read that.
                    self.asked = 0;
                    return Poll::Pending;
                }
            }
            Phase::Closing => {}
            // Nothing follows.
            Phase::Answering(_) => return Poll::Pending,
        }
        match self.state.poll_fill(cx) {
            Poll::Ready(Ok(1..)) => {}
            Poll::Ready(Ok(0)) => return Poll::Ready(Ok(Some(Close::new(Close::ABNORMAL)))),
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        }
        self.asked = 0;
        let decoded = {
            let mut input = self.state.buffer.borrow_mut();
            self.decoder.decode(&mut *input)
        };
        self.state.free_buffer();
        Poll::Ready(Ok(match decoded {
            Ok(None) => None,
            Ok(Some(event)) => self.handle(event),
            Err(violation) => {
                let close = Close {
                    code: violation.code,
                    reason: violation.why.to_owned(),
                };
                Some(self.answer(close))
            }
        }))
    }

    fn handle(&mut self, event: Event) -> Option<Close> {
        match event {
            // What comes between the server's last frame and the client's is dropped.
            Event::Close(close) if !self.is_open() => return Some(close),
            _ if !self.is_open() => {}
            Event::Message(message) => self.application.receive(message),
            Event::Ping(payload) => {
                self.state
                    .respond(|output| frame::write(output, Opcode::Pong, &payload));
            }
            Event::Pong => {}
            Event::Close(close) => {
                self.phase = Phase::Answering(close.clone());
                self.set_alarm();
                self.application.finish(close);
            }
        }
        None
    }

    fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    /// The other side has some time to answer the end.
    fn set_alarm(&mut self) {
        self.alarm = Some(Box::pin(tokio::time::sleep(CLOSING)));
    }

    /// The other side does not answer.
    fn give_up(&mut self) -> Close {
        match std::mem::replace(&mut self.phase, Phase::Closing) {
            Phase::Open => {
                // Nothing that is written reaches it.
                self.state.reset();
                Close::new(Close::ABNORMAL)
            }
            Phase::Closing => Close::new(Close::ABNORMAL),
            Phase::Answering(close) => {
                self.state
                    .respond(|output| frame::write_close(output, &close));
                close
            }
        }
    }

    /// The last frame, if none was sent before.
    fn answer(&mut self, close: Close) -> Close {
        if self.is_open() {
            self.state
                .respond(|output| frame::write_close(output, &close));
        }
        close
    }

    /// Ready when the client is gone, or has not answered the end.
    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(alarm) = &mut self.alarm else {
            return Poll::Pending;
        };
        while alarm.as_mut().poll(cx).is_ready() {
            if !matches!(self.phase, Phase::Open) || self.asked >= UNANSWERED {
                return Poll::Ready(());
            }
            self.asked += 1;
            self.state
                .respond(|output| frame::write(output, Opcode::Ping, b""));
            alarm.as_mut().reset(Instant::now() + self.ping);
        }
        Poll::Pending
    }
}
