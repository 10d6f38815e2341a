//! One client: what it says, and what waits for it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use surus_channels::{Publication, Subscriber};

use crate::apps::App;
use crate::event::{self, Frame, Made, SocketId};
use crate::fault::Fault;
use crate::front::Front;
use crate::incoming::{self, Incoming, SignIn};
use crate::names::{self, Kind};
use crate::outgoing;
use crate::pace::Pace;
use crate::report::Happened;
use crate::signature::is_authorised;

/// Bytes of events that may wait for a client; then it has to come again.
const HIGHEST: usize = 2 * 1024 * 1024;

/// Bytes of answers that may wait for a client; then nothing more is read of it. The members of a large presence channel take more:
/// they are one answer.
const MOST_ANSWERS: usize = 1024 * 1024;

/// What a client is sent.
#[derive(Debug)]
pub enum Output {
    /// A message.
    Text(Frame),
    /// The last frame, with its code and reason.
    Close(u16, String),
}

/// Why a client is sent something.
#[derive(Clone, Copy, Debug)]
enum Why {
    /// It has said something.
    Answer,
    /// Others have.
    Event,
}

/// A connection of a client. It is open until [`Connection::ended`].
pub struct Connection {
    pub(crate) socket: SocketId,
    /// Its number among all subscribers of this worker.
    pub(crate) id: u64,
    /// The number of its application.
    pub(crate) app: usize,
    pub(crate) front: Rc<Front>,
    /// With the member that it is there, if it is one.
    pub(crate) channels: RefCell<BTreeMap<Box<str>, Option<Box<str>>>>,
    /// Channels that it will subscribe to once others have answered.
    pub(crate) asked: RefCell<BTreeSet<String>>,
    /// Who has signed in.
    user: RefCell<Option<Box<str>>>,
    pace: Pace,
    outbound: RefCell<VecDeque<(Frame, Why)>>,
    /// Bytes of events that are outbound.
    events: Cell<usize>,
    /// Bytes of answers that are.
    answers: Cell<usize>,
    /// Sent after what is outbound.
    closing: Cell<Option<(u16, &'static str)>>,
    is_over: Cell<bool>,
    server: RefCell<Option<Waker>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connection").field(&self.socket).finish()
    }
}

impl Connection {
    pub(crate) fn new(front: &Rc<Front>, app: usize, socket: SocketId) -> Self {
        Connection {
            socket,
            id: surus_channels::next_id(),
            app,
            front: front.clone(),
            channels: RefCell::default(),
            asked: RefCell::default(),
            user: RefCell::default(),
            pace: Pace::new(),
            outbound: RefCell::default(),
            events: Cell::new(0),
            answers: Cell::new(0),
            closing: Cell::new(None),
            is_over: Cell::new(false),
            server: RefCell::default(),
        }
    }

    pub(crate) fn settings(&self) -> &App {
        self.front.app(self.app)
    }

    /// A message of the client has come.
    pub fn receive(self: &Rc<Self>, text: &[u8]) {
        // One that was refused has no application.
        if self.is_over.get() || self.is_closing() {
            return;
        }
        let parsed = std::str::from_utf8(text).ok().and_then(incoming::parse);
        let Some(message) = parsed else {
            return self.send(outgoing::error(Fault::Message, None));
        };
        match message {
            Incoming::Ping => self.send(outgoing::pong()),
            Incoming::Nothing => {}
            Incoming::Subscribe(subscribe) => self.front.subscribe(self, subscribe),
            Incoming::Unsubscribe(channel) => self.front.unsubscribe(self, &channel),
            Incoming::SignIn(sign_in) => self.sign_in(&sign_in),
            Incoming::Event {
                name,
                channel,
                data,
            } => {
                let data = data.map_or("null", |data| data.get());
                if let Err(why) = self.publish(name, &channel, data) {
                    self.send(outgoing::error(Fault::ClientEvent, Some(&why)));
                }
            }
        }
    }

    fn sign_in(&self, sign_in: &SignIn) {
        let text = format!("{}::user::{}", self.socket, sign_in.user_data);
        let user = incoming::user(&sign_in.user_data);
        let Some(user) = user.filter(|_| is_authorised(self.settings(), &text, &sign_in.auth))
        else {
            return self.refuse(Fault::Unauthorised, "The signature of the user is wrong");
        };
        let new = user.clone();
        match self.user.replace(Some(user)) {
            None => self.front.count_user(self.app, true),
            // What is for the other one is not for this one.
            Some(old) if old != new => self.front.unsubscribe(self, &names::of_user(&old)),
            Some(_) => {}
        }
        self.send(outgoing::signed_in(&sign_in.user_data));
    }

    /// An event for the others of a channel.
    fn publish(self: &Rc<Self>, name: String, channel: &str, data: &str) -> Result<(), String> {
        let settings = self.settings();
        if !settings.client_events {
            return Err("Client events are not enabled for this application".to_owned());
        }
        if !names::is_event(&name) {
            return Err("The name of the event is too long".to_owned());
        }
        let allows = matches!(names::kind(channel), Some(Kind::Private | Kind::Presence))
            && !names::is_encrypted(channel);
        if !allows {
            let why = "Client events are only for private and presence channels";
            return Err(why.to_owned());
        }
        let Some(member) = self.channels.borrow().get(channel).cloned() else {
            return Err(format!("The client has not subscribed to {channel}"));
        };
        if data.len() > settings.max_event {
            let most = settings.max_event;
            return Err(format!("The data is longer than {most} bytes"));
        }
        if !self.pace.allows() {
            return Err("More than 10 client events a second".to_owned());
        }
        let report = || Happened::ClientEvent {
            channel: channel.to_owned(),
            event: name.clone(),
            data: data.to_owned(),
            socket_id: self.socket.to_string(),
            user_id: member.as_deref().map(str::to_owned),
        };
        self.front.report(self.app, report);
        let message = event::of_client(name, data, self.socket, member.as_deref());
        let published = self.front.publish_of(self, channel, message);
        published.map_err(|refused| refused.to_string())
    }

    pub(crate) fn has_signed_in(&self) -> bool {
        self.user.borrow().is_some()
    }

    /// Whether somebody has signed in as this user.
    pub(crate) fn is_of(&self, user: &str) -> bool {
        self.user.borrow().as_deref() == Some(user)
    }

    /// Whether its messages are taken: what answers those before has room. If not, there is something that is to be sent next.
    #[must_use]
    pub fn takes_more(&self) -> bool {
        self.answers.get() <= MOST_ANSWERS
    }

    /// Sends an answer.
    pub(crate) fn send(&self, frame: Frame) {
        self.push(frame, Why::Answer);
    }

    /// Sends what is for many, and waits for nobody.
    pub(crate) fn offer(&self, frame: &Frame) {
        if self.events.get() > HIGHEST {
            self.outbound.borrow_mut().clear();
            self.events.set(0);
            self.answers.set(0);
            return self.close(Fault::TooSlow);
        }
        self.push(frame.clone(), Why::Event);
    }

    fn push(&self, frame: Frame, why: Why) {
        if self.is_over.get() || self.is_closing() {
            return;
        }
        let bytes = self.bytes_of(why);
        bytes.set(bytes.get() + frame.text.len());
        self.outbound.borrow_mut().push_back((frame, why));
        self.wake();
    }

    fn bytes_of(&self, why: Why) -> &Cell<usize> {
        match why {
            Why::Answer => &self.answers,
            Why::Event => &self.events,
        }
    }

    /// Says why, and closes.
    pub(crate) fn refuse(&self, fault: Fault, why: &str) {
        self.send(outgoing::error(fault, Some(why)));
        self.close(fault);
    }

    /// Says why, and closes.
    pub(crate) fn close(&self, fault: Fault) {
        let Some(code) = fault.code() else {
            return;
        };
        if !self.is_closing() {
            let reason = match fault {
                Fault::TooSlow | Fault::Leaving => fault.text(),
                // The error before it has said why.
                _ => "",
            };
            self.closing.set(Some((code, reason)));
            self.wake();
        }
    }

    fn is_closing(&self) -> bool {
        self.closing.get().is_some()
    }

    /// What is to be sent next.
    pub fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Output> {
        let next = self.outbound.borrow_mut().pop_front();
        if let Some((frame, why)) = next {
            let bytes = self.bytes_of(why);
            bytes.set(bytes.get() - frame.text.len());
            return Poll::Ready(Output::Text(frame));
        }
        if let Some((code, reason)) = self.closing.get().filter(|_| !self.is_over.get()) {
            self.end();
            return Poll::Ready(Output::Close(code, reason.to_owned()));
        }
        let mut server = self.server.borrow_mut();
        if !server
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            *server = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// The server ends: the client is to connect to its successor.
    pub fn leave(&self) {
        self.close(Fault::Leaving);
    }

    /// The client closes it: it is answered at once.
    pub fn finish(&self, code: u16) {
        if !self.is_closing() {
            // What has no code is answered with an ordinary one.
            let code = if code == 1005 { 1000 } else { code };
            self.closing.set(Some((code, "")));
            self.wake();
        }
    }

    /// Nothing more comes from the client, and nothing reaches it.
    pub fn ended(&self) {
        self.outbound.borrow_mut().clear();
        self.end();
    }

    fn end(&self) {
        if !self.is_over.replace(true) {
            self.front.forget(self);
        }
    }

    fn wake(&self) {
        let waiting = self.server.take();
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

impl Subscriber for Connection {
    fn deliver(&self, publication: &Rc<Publication>) {
        let made = publication.made(|publication| {
            let prefix = &self.settings().prefix;
            let channel = publication.channel.strip_prefix(&**prefix);
            Made::of(channel.unwrap_or_default(), &publication.message)
        });
        if let Some(frame) = made
            .frame
            .as_ref()
            .filter(|_| made.except != Some(self.socket))
        {
            self.offer(frame);
        }
    }

    fn missed(&self, _: &str) {
        // This protocol promises nothing.
    }
}
