//! Notifications: one connection of a client that only listens, for all its listeners.
//!
//! When that connection is lost, another one is opened, and who has listened is told that something may have been missed, as soon as
//! it listens again: nothing after that is missed.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, VecDeque},
    future::{poll_fn, Future},
    io,
    pin::{pin, Pin},
    rc::{Rc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use bytes::BytesMut;
use postgres_protocol::message::{backend::Message, frontend};
use tokio::{
    io::{AsyncReadExt, AsyncWrite},
    task::spawn_local,
    time::{sleep, timeout},
};

use crate::{
    client::Client,
    failure::{Failure, Kind},
    handshake::{self, Connection},
    stream::Stream,
    waiter::Waiter,
};

/// What waits for a listener; then it is told that something was missed instead.
const MOST: usize = 1000;
const MOST_BYTES: usize = 4 << 20;
/// PostgreSQL cuts longer names.
const LONGEST_NAME: usize = 63;
/// A connection that nobody listens on is kept for so long.
const IDLE: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What somebody has sent with `NOTIFY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// The text that was sent.
    pub payload: String,
    /// The server's process that has sent it.
    pub process: i32,
    /// None was received: some may have been missed before.
    pub missed: bool,
}

impl Notification {
    fn gap() -> Self {
        Notification {
            payload: String::new(),
            process: 0,
            missed: true,
        }
    }
}

#[derive(Default)]
struct Inbox {
    channel: String,
    waiting: RefCell<VecDeque<Notification>>,
    bytes: Cell<usize>,
    /// The server sends it what comes.
    listens: Cell<bool>,
    /// It has listened before.
    has_listened: Cell<bool>,
    failure: RefCell<Option<Failure>>,
    waiter: Waiter,
}

impl Inbox {
    fn put(&self, notification: Notification) {
        let mut waiting = self.waiting.borrow_mut();
        let bytes = self.bytes.get() + notification.payload.len();
        if waiting.len() >= MOST || bytes > MOST_BYTES {
            waiting.clear();
            waiting.push_back(Notification::gap());
            self.bytes.set(0);
        } else {
            waiting.push_back(notification);
            self.bytes.set(bytes);
        }
        drop(waiting);
        self.waiter.wake();
    }

    /// The server has said that it listens.
    fn confirm(&self) {
        if !self.listens.replace(true) {
            if self.has_listened.replace(true) {
                self.put(Notification::gap());
            }
            self.waiter.wake();
        }
    }
}

/// The listeners of a client.
#[derive(Default)]
pub(crate) struct Hub {
    inboxes: RefCell<Vec<Weak<Inbox>>>,
    is_running: Cell<bool>,
    waiter: Waiter,
}

impl Hub {
    fn inboxes(&self) -> Vec<Rc<Inbox>> {
        let mut inboxes = self.inboxes.borrow_mut();
        inboxes.retain(|inbox| inbox.strong_count() > 0);
        inboxes.iter().filter_map(Weak::upgrade).collect()
    }

    fn of(&self, channel: &str) -> Vec<Rc<Inbox>> {
        let mut all = self.inboxes();
        all.retain(|inbox| inbox.channel == channel);
        all
    }
}

/// Gets what is sent to a channel. Dropping it ends that.
pub struct Listener {
    inbox: Rc<Inbox>,
    client: Rc<Client>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.client.hub.waiter.wake();
    }
}

impl Client {
    /// Listens to a channel: its name as it is, not folded to small letters. Returns when the server has confirmed it.
    ///
    /// # Errors
    /// The name is none, or there is no connection.
    pub async fn listen(
        self: Rc<Self>,
        channel: &str,
        patience: Duration,
    ) -> Result<Listener, Failure> {
        if channel.is_empty() || channel.len() > LONGEST_NAME || channel.contains('\0') {
            return Err(Failure::usage(format!(
                "A channel's name has 1 to {LONGEST_NAME} bytes, and no NUL"
            )));
        }
        let inbox = Rc::new(Inbox {
            channel: channel.to_owned(),
            ..Inbox::default()
        });
        let hub = self.hub.clone();
        hub.inboxes.borrow_mut().push(Rc::downgrade(&inbox));
        let listener = Listener {
            inbox,
            client: self.clone(),
        };
        if hub.is_running.replace(true) {
            hub.waiter.wake();
        } else {
            spawn_local(run(self));
        }
        let inbox = &listener.inbox;
        let confirmed = poll_fn(|cx| {
            if let Some(failure) = inbox.failure.take() {
                return Poll::Ready(Err(failure));
            }
            if inbox.has_listened.get() {
                return Poll::Ready(Ok(()));
            }
            inbox.waiter.register(cx);
            Poll::Pending
        });
        match timeout(patience, confirmed).await {
            Ok(confirmed) => confirmed.map(|()| listener),
            Err(_) => Err(Failure::new(
                Kind::Connection,
                format!(
                    "The server has not confirmed LISTEN within {} s",
                    patience.as_secs()
                ),
            )),
        }
    }
}

impl Listener {
    /// Waits for the next one.
    pub async fn next(&self) -> Notification {
        poll_fn(|cx| {
            let inbox = &self.inbox;
            if let Some(next) = inbox.waiting.borrow_mut().pop_front() {
                inbox
                    .bytes
                    .set(inbox.bytes.get().saturating_sub(next.payload.len()));
                return Poll::Ready(next);
            }
            inbox.waiter.register(cx);
            Poll::Pending
        })
        .await
    }
}

/// The task of the connection, as long as somebody listens.
async fn run(client: Rc<Client>) {
    let hub = client.hub.clone();
    let mut pause = FIRST_PAUSE;
    loop {
        match handshake::connect(&client.config, &*client.resolve).await {
            Ok(connection) => {
                let mut driver = Driver::new(hub.clone(), connection);
                let _lost: io::Error = poll_fn(|cx| driver.poll(cx)).await;
                if hub.inboxes().iter().any(|inbox| inbox.listens.get()) {
                    pause = FIRST_PAUSE;
                }
            }
            Err(failure) => {
                // Who has listened before waits for the next try.
                for inbox in hub.inboxes() {
                    if !inbox.has_listened.get() {
                        *inbox.failure.borrow_mut() = Some(failure.clone());
                        inbox.waiter.wake();
                    }
                }
            }
        }
        let inboxes = hub.inboxes();
        for inbox in &inboxes {
            inbox.listens.set(false);
        }
        if !inboxes.iter().any(|inbox| inbox.failure.borrow().is_none()) {
            hub.is_running.set(false);
            return;
        }
        drop(inboxes);
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

struct Driver {
    hub: Rc<Hub>,
    stream: Stream,
    input: BytesMut,
    output: BytesMut,
    /// Channels for which the server was asked.
    asked: BTreeSet<String>,
    /// Of what was sent, in its order: a channel that is listened to from its answer on.
    sent: VecDeque<Option<String>>,
    idle: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Driver {
    fn new(hub: Rc<Hub>, connection: Connection) -> Self {
        Driver {
            hub,
            stream: connection.stream,
            input: connection.input,
            output: BytesMut::new(),
            asked: BTreeSet::new(),
            sent: VecDeque::new(),
            idle: None,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        self.hub.waiter.register(cx);
        match self.turn(cx) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(error),
        }
    }

    fn turn(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while self.read(cx)? {
            while let Some(message) = Message::parse(&mut self.input)? {
                self.receive(message)?;
            }
        }
        let inboxes = self.hub.inboxes();
        self.ask(&inboxes)?;
        while !self.output.is_empty() && self.stream.send(cx, &mut self.output)? {}
        let _ = Pin::new(&mut self.stream).poll_flush(cx)?;
        if !inboxes.is_empty() {
            self.idle = None;
            return Ok(());
        }
        let idle = self.idle.get_or_insert_with(|| Box::pin(sleep(IDLE)));
        match idle.as_mut().poll(cx) {
            Poll::Ready(()) => Err(io::Error::other("nobody listens")),
            Poll::Pending => Ok(()),
        }
    }

    fn read(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        self.input.reserve(4096);
        let reading = pin!(self.stream.read_buf(&mut self.input));
        match reading.poll(cx)? {
            Poll::Pending => Ok(false),
            Poll::Ready(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Poll::Ready(_) => Ok(true),
        }
    }

    /// Who comes to a channel that is listened to already listens at once.
    fn ask(&mut self, inboxes: &[Rc<Inbox>]) -> io::Result<()> {
        let wanted: BTreeSet<_> = inboxes.iter().map(|inbox| inbox.channel.clone()).collect();
        let mut say = |command: &str, channel: &str| {
            let name = channel.replace('"', "\"\"");
            frontend::query(&format!("{command} \"{name}\""), &mut self.output)
        };
        for channel in wanted.difference(&self.asked) {
            say("LISTEN", channel)?;
            self.sent.push_back(Some(channel.clone()));
        }
        for channel in self.asked.difference(&wanted) {
            say("UNLISTEN", channel)?;
            self.sent.push_back(None);
        }
        self.asked = wanted;
        for inbox in inboxes.iter().filter(|inbox| !inbox.listens.get()) {
            if !self.is_sent(&inbox.channel) {
                inbox.confirm();
            }
        }
        Ok(())
    }

    /// Whether the server was asked to listen to it, and has not answered.
    fn is_sent(&self, channel: &str) -> bool {
        self.sent.iter().flatten().any(|sent| sent == channel)
    }

    fn receive(&mut self, message: Message) -> io::Result<()> {
        match message {
            Message::NotificationResponse(body) => {
                let notification = Notification {
                    payload: body.message()?.to_owned(),
                    process: body.process_id(),
                    missed: false,
                };
                for inbox in self.hub.of(body.channel()?) {
                    if inbox.listens.get() {
                        inbox.put(notification.clone());
                    }
                }
            }
            Message::ErrorResponse(body) => {
                let failure = Failure::from_server(&body);
                let Some(Some(channel)) = self.sent.front() else {
                    return Err(io::Error::other(failure.message.clone()));
                };
                let inboxes = self.hub.of(channel);
                let (old, new): (Vec<_>, Vec<_>) = inboxes
                    .into_iter()
                    .partition(|inbox| inbox.has_listened.get());
                for inbox in new {
                    *inbox.failure.borrow_mut() = Some(failure.clone());
                    inbox.waiter.wake();
                }
                if !old.is_empty() {
                    // Nobody would tell them: a standby refuses LISTEN until it is promoted.
                    return Err(io::Error::other(failure.message.clone()));
                }
                self.sent[0] = None;
            }
            Message::ReadyForQuery(_) => {
                if let Some(Some(channel)) = self.sent.pop_front() {
                    // If it was asked for again, it is left in between.
                    if !self.is_sent(&channel) {
                        let inboxes = self.hub.of(&channel);
                        inboxes.iter().for_each(|inbox| inbox.confirm());
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}
