//! A WebSocket between PHP and its client: messages on their way in both directions, each way bounded, one thread.
//!
//! ```text
//!   client ──► inbound  ──► PHP receives      the client is not read while this is full
//!   client ◄── outbound ◄── PHP sends         PHP waits while this is full
//! ```
//!
//! It ends once: PHP closes it, the server does, or the client does or is gone. What the client has sent before is still
//! received, unless PHP has closed it. When the client closes, PHP may answer what came before: it is over when PHP asks for
//! more.

pub(crate) mod events;
pub(crate) mod extension;
mod queue;
mod subscriptions;

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::HashMap,
    fmt,
    rc::{Rc, Weak},
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll, Waker},
    time::Instant,
};

use bytes::Bytes;

use events::{Event, Listener};
use queue::{Queue, INBOUND, OUTBOUND};
pub(crate) use subscriptions::NoSubscription;
use subscriptions::Subscriptions;

thread_local! {
    static OPEN: RefCell<HashMap<u64, Weak<WebSocket>>> = RefCell::default();
    static COUNTS: Cell<SocketCounts> = const { Cell::new(SocketCounts::NONE) };
}

/// Messages of the WebSockets of this thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketCounts {
    /// Those that are open.
    pub open: u64,
    /// From clients.
    pub received: u64,
    /// To clients.
    pub sent: u64,
}

impl SocketCounts {
    const NONE: SocketCounts = SocketCounts {
        open: 0,
        received: 0,
        sent: 0,
    };

    fn change(change: impl FnOnce(&mut SocketCounts)) {
        let mut counts = COUNTS.get();
        change(&mut counts);
        COUNTS.set(counts);
    }
}

static WITHOUT: AtomicBool = AtomicBool::new(false);

/// Requests of this process come from other ones, which have the connections: none can become a WebSocket. Before it boots an
/// application.
pub fn without_websockets() {
    WITHOUT.store(true, Ordering::Relaxed);
}

pub(crate) fn are_possible() -> bool {
    !WITHOUT.load(Ordering::Relaxed)
}

/// The messages of the WebSockets of this thread, so far.
#[must_use]
pub fn socket_counts() -> SocketCounts {
    COUNTS.get()
}

/// A message of a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketMessage {
    /// Otherwise it is text, which is valid UTF-8.
    pub binary: bool,
    /// Its payload.
    pub data: Bytes,
    /// If it is for many: what the server makes of it once for all of them.
    pub shared: Option<Rc<OnceCell<Option<Bytes>>>>,
}

/// The end of a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketClose {
    /// As in RFC 6455, 7.4.
    pub code: u16,
    /// For people.
    pub reason: String,
}

impl SocketClose {
    /// The client is gone without a closing handshake.
    #[must_use]
    pub fn gone() -> Self {
        SocketClose {
            code: 1006,
            reason: String::new(),
        }
    }
}

/// What the server sends to the client.
#[derive(Debug)]
pub enum SocketOutput {
    /// A message.
    Message(SocketMessage),
    /// The last frame.
    Close(SocketClose),
}

/// What PHP gets when it receives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Message(SocketMessage),
    /// No more will come.
    End,
}

/// Whether a server may close with this code (RFC 6455, 7.4; IANA, "WebSocket Close Code Number").
pub(crate) fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

/// A conversation with one client.
pub struct WebSocket {
    number: u64,
    max_message: usize,
    deflate: Option<u8>,
    inbound: RefCell<Queue>,
    outbound: RefCell<Queue>,
    /// PHP or the server closes it: sent after what is outbound, and taken then.
    closing: RefCell<Option<SocketClose>>,
    /// The client closes it: it is over when PHP has received what came before.
    leaving: RefCell<Option<SocketClose>>,
    /// No message can be sent any more, and none will come.
    is_over: Cell<bool>,
    end: RefCell<Option<SocketClose>>,
    ended_at: Cell<Option<Instant>>,
    subscriptions: RefCell<Subscriptions>,
    /// PHP, where it receives or waits for room.
    php: RefCell<Vec<Waker>>,
    /// Some of it waits for room.
    wants_room: Cell<bool>,
    listener: RefCell<Option<Rc<dyn Listener>>>,
    /// The connection.
    server: RefCell<Option<Waker>>,
    /// In which it has waited for room last, that all share.
    round: Cell<u64>,
    on_end: Box<dyn Fn()>,
}

impl WebSocket {
    /// `on_end` is called when it is over.
    pub(crate) fn new(
        max_message: usize,
        deflate: Option<u8>,
        on_end: impl Fn() + 'static,
    ) -> Rc<WebSocket> {
        let number = surus_channels::next_id();
        let socket = Rc::new(WebSocket {
            number,
            max_message,
            deflate,
            inbound: Queue::new(&INBOUND),
            outbound: Queue::new(&OUTBOUND),
            closing: RefCell::default(),
            leaving: RefCell::default(),
            is_over: Cell::new(false),
            end: RefCell::default(),
            ended_at: Cell::new(None),
            subscriptions: RefCell::default(),
            php: RefCell::default(),
            wants_room: Cell::new(false),
            listener: RefCell::default(),
            server: RefCell::default(),
            round: Cell::new(0),
            on_end: Box::new(on_end),
        });
        OPEN.with_borrow_mut(|open| open.insert(number, Rc::downgrade(&socket)));
        SocketCounts::change(|counts| counts.open += 1);
        socket
    }

    /// The one with this number in this thread, as long as its client or its handler is there.
    pub(crate) fn find(number: u64) -> Option<Rc<WebSocket>> {
        OPEN.with_borrow(|open| open.get(&number).and_then(Weak::upgrade))
    }

    /// Numbers are not used again.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The largest message of the client, in bytes.
    #[must_use]
    pub fn max_message(&self) -> usize {
        self.max_message
    }

    /// The window of what is sent compressed, in bits; `None`: nothing is compressed.
    #[must_use]
    pub fn deflate(&self) -> Option<u8> {
        self.deflate
    }

    // ---- PHP's side

    pub(crate) fn poll_receive(&self, cx: &mut Context<'_>) -> Poll<Received> {
        let received = self.try_receive();
        if received.is_none() {
            self.wait(cx);
        }
        received.map_or(Poll::Pending, Poll::Ready)
    }

    /// `None`: there is nothing yet.
    pub(crate) fn try_receive(&self) -> Option<Received> {
        let mut inbound = self.inbound.borrow_mut();
        let was_full = inbound.is_full();
        if let Some(message) = inbound.pop() {
            let is_read_again = was_full && !inbound.is_full();
            drop(inbound);
            if is_read_again {
                self.wake_server();
            }
            return Some(Received::Message(message));
        }
        drop(inbound);
        self.answer_client();
        self.is_over.get().then_some(Received::End)
    }

    /// What the next fiber deals with, if the handler has none.
    pub(crate) fn next_event(&self) -> Option<Event> {
        if !self.inbound.borrow().is_empty() {
            return Some(Event::Messages);
        }
        self.answer_client();
        self.is_over.get().then_some(Event::End)
    }

    /// From now on it is told that something has happened, or nobody is any more.
    pub(crate) fn listen(&self, listener: Option<Rc<dyn Listener>>) {
        let old = self.listener.replace(listener);
        // It may be the last owner.
        drop(old);
    }

    /// Nothing happens for a while.
    pub(crate) fn shrink(&self) {
        self.inbound.borrow_mut().shrink();
    }

    /// The client closes it, and PHP has received what came before.
    fn answer_client(&self) {
        let leaving = self.leaving.borrow_mut().take();
        if let Some(close) = leaving {
            self.begin_close(close);
        }
    }

    /// Ready when there is room for a message, or nobody would read it.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_full() {
            self.wants_room.set(true);
            self.wait(cx);
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Whether PHP has to wait before it sends.
    pub(crate) fn is_full(&self) -> bool {
        let outbound = self.outbound.borrow();
        let is_high = outbound.bytes > 0 && outbound.is_high();
        !self.is_over.get() && (is_high || outbound.is_full())
    }

    /// Sends a message, even beyond the bound: call [`WebSocket::poll_room`] first. False: it is over.
    pub(crate) fn send(&self, message: SocketMessage) -> bool {
        if self.is_over.get() {
            return false;
        }
        SocketCounts::change(|counts| counts.sent += 1);
        self.outbound.borrow_mut().push(message);
        self.wake_server();
        true
    }

    /// PHP closes it: what it has not received yet is dropped.
    pub(crate) fn close(&self, close: SocketClose) {
        self.begin_close(close);
        self.inbound.borrow_mut().clear();
    }

    /// The server closes it.
    pub fn close_by_server(&self, code: u16) {
        let reason = String::new();
        self.begin_close(SocketClose { code, reason });
    }

    fn begin_close(&self, close: SocketClose) {
        if self.is_over.get() {
            return;
        }
        *self.closing.borrow_mut() = Some(close.clone());
        self.is_over(close);
        self.wake_server();
    }

    /// How it has ended; `None` while it is open.
    pub(crate) fn end(&self) -> Option<SocketClose> {
        self.end.borrow().clone()
    }

    /// When it was over.
    pub(crate) fn ended_at(&self) -> Option<Instant> {
        self.ended_at.get()
    }

    // ---- the server's side

    /// Pending while PHP has not received what has come before.
    pub fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        let inbound = self.inbound.borrow();
        let is_high = inbound.is_high();
        if self.is_over.get() || !(is_high || inbound.is_full()) {
            return Poll::Ready(());
        }
        if is_high {
            INBOUND.with(|total| total.wait(&self.round, cx));
        }
        self.wait_as_server(cx);
        Poll::Pending
    }

    /// A message has come.
    pub fn receive(&self, message: SocketMessage) {
        if !self.is_over.get() {
            SocketCounts::change(|counts| counts.received += 1);
            self.inbound.borrow_mut().push(message);
            self.wake_php();
        }
    }

    /// What is to be sent next.
    pub fn poll_next(&self, cx: &mut Context<'_>) -> Poll<SocketOutput> {
        let mut outbound = self.outbound.borrow_mut();
        if let Some(message) = outbound.pop() {
            // Whoever waits is asked, and not what was full: messages of others may have left in the meantime.
            let is_room = self.wants_room.get() && !outbound.is_full();
            drop(outbound);
            if is_room {
                self.wants_room.set(false);
                self.wake_php();
            }
            return Poll::Ready(SocketOutput::Message(message));
        }
        drop(outbound);
        if let Some(close) = self.closing.take() {
            return Poll::Ready(SocketOutput::Close(close));
        }
        self.wait_as_server(cx);
        Poll::Pending
    }

    /// The client closes it: what PHP sends until it knows still reaches it.
    pub fn finish(&self, close: SocketClose) {
        if !self.is_over.get() {
            *self.leaving.borrow_mut() = Some(close);
            self.wake_php();
        }
    }

    /// Nothing more comes from the client, and nothing reaches it.
    pub fn ended(&self, close: SocketClose) {
        self.outbound.borrow_mut().clear();
        self.is_over(close);
        self.wake_php();
    }

    fn is_over(&self, close: SocketClose) {
        if self.is_over.replace(true) {
            return;
        }
        *self.end.borrow_mut() = Some(close);
        self.ended_at.set(Some(Instant::now()));
        SocketCounts::change(|counts| counts.open -= 1);
        self.end_subscriptions();
        self.wake_php();
        (self.on_end)();
    }

    fn wait(&self, cx: &mut Context<'_>) {
        let mut waiting = self.php.borrow_mut();
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
    }

    fn wait_as_server(&self, cx: &mut Context<'_>) {
        let mut server = self.server.borrow_mut();
        if !server
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            *server = Some(cx.waker().clone());
        }
    }

    fn wake_php(&self) {
        let waiting = self.php.take();
        waiting.into_iter().for_each(Waker::wake);
        let listener = self.listener.borrow().clone();
        if let Some(listener) = listener {
            listener.notice();
        }
    }

    fn wake_server(&self) {
        let waiting = self.server.take();
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

impl Drop for WebSocket {
    fn drop(&mut self) {
        if !self.is_over.get() {
            SocketCounts::change(|counts| counts.open -= 1);
        }
        // The thread may end: then its list is gone.
        let _ = OPEN.try_with(|open| open.borrow_mut().remove(&self.number));
    }
}

impl fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocket")
            .field("number", &self.number)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
