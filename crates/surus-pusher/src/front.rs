//! The connections of one worker, and what they have subscribed to.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::{Rc, Weak};

use surus_channels::{Hub, Member, Message, Observer, Publication, Refused as NotDone, Subscriber};

use crate::apps::App;
use crate::connection::Connection;
use crate::event::{Frame, Made, SocketId};
use crate::fault::Fault;
use crate::incoming::{self, Subscribe};
use crate::names::{self, Kind, OF_CLIENT};
use crate::outgoing::{self, Refused};
use crate::report::{Happened, Reporter};
use crate::signature::is_authorised;

/// Members of one presence channel: each newcomer is told of all of them.
const MOST_MEMBERS: usize = 1000;

/// Bytes that an application may say about a member.
const LARGEST_INFO: usize = 1024;

/// On which workers tell each other what concerns all connections. No client can subscribe to it.
const CONTROL: &str = "#surus";

/// The event on it that ends the connections of a user.
const TERMINATE: &str = "terminate";

/// The connections of a worker.
pub struct Front {
    spaces: Vec<Space>,
    hub: Rc<Hub>,
    reporter: Option<Box<dyn Reporter>>,
    spawn: Box<dyn Fn(Work)>,
}

/// What goes on while nobody waits for it.
pub type Work = Pin<Box<dyn Future<Output = ()>>>;

/// Connections by their numbers.
type Room = BTreeMap<u64, Rc<Connection>>;

struct Space {
    app: App,
    connections: RefCell<HashMap<SocketId, Rc<Connection>>>,
    /// How many have signed in. While there are some, it listens to [`CONTROL`].
    users: Cell<usize>,
    watch: OnceCell<Rc<Watch>>,
    /// Who is told of members, by channel.
    rooms: RefCell<HashMap<Box<str>, Room>>,
}

impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let apps: Vec<&App> = self.spaces.iter().map(|space| &space.app).collect();
        f.debug_tuple("Front").field(&apps).finish()
    }
}

impl Front {
    /// A front for these applications. `spawn` runs what is given to it, on this thread. The hub is told by [`App::add_rules`] which channels have a history.
    #[must_use]
    pub fn new(
        apps: Vec<App>,
        hub: Rc<Hub>,
        reporter: Option<Box<dyn Reporter>>,
        spawn: impl Fn(Work) + 'static,
    ) -> Rc<Self> {
        let spaces = apps.into_iter().map(Space::new).collect();
        let front = Rc::new(Front {
            spaces,
            hub,
            reporter,
            spawn: Box::new(spawn),
        });
        let watch = |app| {
            Rc::new(Watch {
                front: Rc::downgrade(&front),
                app,
                id: surus_channels::next_id(),
            })
        };
        for (app, space) in front.spaces.iter().enumerate() {
            let watch = watch(app);
            front.hub.observe(watch.clone());
            let _ = space.watch.set(watch);
        }
        front
    }

    pub(crate) fn app(&self, app: usize) -> &App {
        &self.spaces[app].app
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    /// The number of the application with this id.
    #[must_use]
    pub fn by_id(&self, id: &str) -> Option<usize> {
        self.spaces.iter().position(|space| space.app.id == id)
    }

    /// The number of the application with this key.
    #[must_use]
    pub fn by_key(&self, key: &str) -> Option<usize> {
        self.spaces.iter().position(|space| space.app.key == key)
    }

    /// Connections that are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        let count = |space: &Space| space.connections.borrow().len();
        self.spaces.iter().map(count).sum()
    }

    /// A client connects with this key and this version of the protocol; `may`: its page may. If it is refused, the connection
    /// says so and closes.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn connect(
        self: &Rc<Self>,
        key: &str,
        protocol: Option<&str>,
        may: bool,
    ) -> io::Result<Rc<Connection>> {
        let socket = SocketId::random()?;
        let version = protocol.filter(|version| !version.is_empty());
        let number = version.map(str::parse::<u32>);
        let found = self.by_key(key);
        let fault = match (number, found) {
            (None, _) => Some(Fault::NoVersion),
            (Some(Err(_)), _) => Some(Fault::NoVersionNumber),
            (Some(Ok(number)), _) if number != 7 => Some(Fault::OtherVersion),
            (_, None) => Some(Fault::NoSuchApp),
            (_, Some(_)) if !may => Some(Fault::Unauthorised),
            (_, Some(app)) if self.spaces[app].is_full() => Some(Fault::OverQuota),
            _ => None,
        };
        let app = found.unwrap_or_default();
        let connection = Rc::new(Connection::new(self, app, socket));
        if let Some(fault) = fault {
            let origin = "Origin not allowed";
            let why = (fault == Fault::Unauthorised).then_some(origin);
            connection.send(outgoing::error(fault, why));
            connection.close(fault);
            return Ok(connection);
        }
        connection.send(outgoing::established(connection.socket));
        let mut connections = self.spaces[app].connections.borrow_mut();
        connections.insert(connection.socket, connection.clone());
        Ok(connection)
    }

    pub(crate) fn subscribe(&self, connection: &Rc<Connection>, wanted: Subscribe) {
        let place = connection.settings().place(&wanted.channel);
        let is_bounded = connection.asked.borrow().len() < connection.settings().max_channels;
        if self.hub.is_shared(&place) && is_bounded && self.admit(connection, &wanted).is_ok() {
            return self.subscribe_later(connection, place, wanted);
        }
        self.subscribe_now(connection, &wanted);
    }

    /// Other servers have to be asked where the history of the channel is.
    fn subscribe_later(&self, connection: &Rc<Connection>, place: String, wanted: Subscribe) {
        let is_new = connection.asked.borrow_mut().insert(wanted.channel.clone());
        if !is_new {
            return;
        }
        let connection = connection.clone();
        (self.spawn)(Box::pin(async move {
            let front = connection.front.clone();
            // Without an answer the channel says why it cannot be subscribed to.
            let _ = front.hub.fetch(&place).await;
            // It may have changed its mind, or be gone.
            if connection.asked.borrow_mut().remove(&wanted.channel) {
                front.subscribe_now(&connection, &wanted);
            }
        }));
    }

    fn subscribe_now(&self, connection: &Rc<Connection>, wanted: &Subscribe) {
        let channel = &wanted.channel;
        let added = self
            .admit(connection, wanted)
            .and_then(|member| self.add(connection, channel, member));
        if let Err((refused, why)) = added {
            connection.send(outgoing::refused(channel, refused, &why));
        }
    }

    /// Who subscribes, if that is a member.
    fn admit(
        &self,
        connection: &Connection,
        wanted: &Subscribe,
    ) -> Result<Option<Member>, (Refused, String)> {
        let (channel, socket) = (&wanted.channel, connection.socket);
        let refuse = |refused, why: &str| Err((refused, why.to_owned()));
        let Some(kind) = names::kind(channel) else {
            return refuse(Refused::Channel, "This is no name of a channel");
        };
        if connection.channels.borrow().contains_key(channel.as_str()) {
            return refuse(Refused::Channel, "The client has subscribed already");
        }
        if connection.channels.borrow().len() >= connection.settings().max_channels {
            return refuse(Refused::Limit, "The connection has too many channels");
        }
        let auth = wanted.auth.as_deref().unwrap_or_default();
        let app = connection.settings();
        let member = match kind {
            Kind::Public => return Ok(None),
            Kind::User(user) if connection.is_of(user) => return Ok(None),
            Kind::User(_) => return refuse(Refused::Auth, "The user has not signed in"),
            Kind::Private => {
                // What the application says about the subscriber is signed, too, if it says something.
                let text = match &wanted.channel_data {
                    None => format!("{socket}:{channel}"),
                    Some(data) => format!("{socket}:{channel}:{data}"),
                };
                return match is_authorised(app, &text, auth) {
                    true => Ok(None),
                    false => refuse(Refused::Auth, "The signature of the channel is wrong"),
                };
            }
            Kind::Presence => {
                let data = wanted.channel_data.as_deref().unwrap_or_default();
                if !is_authorised(app, &format!("{socket}:{channel}:{data}"), auth) {
                    return refuse(Refused::Auth, "The signature of the channel is wrong");
                }
                match incoming::member(data) {
                    Some(member) => member,
                    None => return refuse(Refused::Channel, "channel_data has no user_id"),
                }
            }
        };
        if member.info.len() > LARGEST_INFO {
            let why = format!("user_info is longer than {LARGEST_INFO} bytes");
            return Err((Refused::Limit, why));
        }
        let members = self.hub.members(&app.place(channel));
        let is_there = members.iter().any(|other| other.id == member.id);
        if members.len() >= MOST_MEMBERS && !is_there {
            return refuse(Refused::Limit, "The channel has too many members");
        }
        Ok(Some(member))
    }

    fn add(
        &self,
        connection: &Rc<Connection>,
        channel: &str,
        member: Option<Member>,
    ) -> Result<(), (Refused, String)> {
        let place = connection.settings().place(channel);
        let refuse = |refused: NotDone| (Refused::Limit, refused.to_string());
        let subscribed = self
            .hub
            .subscribe(&place, connection.id, connection.clone(), None);
        subscribed.map_err(refuse)?;
        if let Some(Member { id, info }) = &member {
            // Before the newcomer is among those who are told.
            if let Err(refused) = self.hub.join(&place, connection.id, id, info) {
                self.hub.unsubscribe(&place, connection.id);
                return Err(refuse(refused));
            }
        }
        let members = member.as_ref().map(|_| self.hub.members(&place));
        if member.is_some() {
            let mut rooms = self.spaces[connection.app].rooms.borrow_mut();
            let room = rooms.entry(channel.into()).or_default();
            room.insert(connection.id, connection.clone());
        }
        let mut own = connection.channels.borrow_mut();
        own.insert(channel.into(), member.map(|member| member.id));
        drop(own);
        connection.send(outgoing::subscribed(channel, members.as_deref()));
        if names::is_cache(channel) {
            let last = self.last(&place, channel);
            connection.send(last.unwrap_or_else(|| outgoing::cache_miss(channel)));
        }
        Ok(())
    }

    /// The last event of a channel that keeps it, but those of clients.
    fn last(&self, place: &str, channel: &str) -> Option<Frame> {
        let kept = self.hub.history(place, None, u64::MAX).ok().flatten();
        let (_, kept) = kept?;
        let of_server =
            |publication: &&Rc<Publication>| !publication.message.event.starts_with(OF_CLIENT);
        let last = kept.iter().rev().find(of_server)?;
        Made::of(channel, &last.message).frame
    }

    pub(crate) fn unsubscribe(&self, connection: &Connection, channel: &str) {
        connection.asked.borrow_mut().remove(channel);
        let removed = connection.channels.borrow_mut().remove(channel);
        if let Some(member) = removed {
            self.remove(connection, channel, member.is_some());
        }
    }

    fn remove(&self, connection: &Connection, channel: &str, is_member: bool) {
        let space = &self.spaces[connection.app];
        let place = space.app.place(channel);
        if is_member {
            // Before others are told.
            space.leave_room(channel, connection.id);
            self.hub.leave(&place, connection.id);
        }
        self.hub.unsubscribe(&place, connection.id);
    }

    /// The connection is over.
    pub(crate) fn forget(&self, connection: &Connection) {
        if connection.has_signed_in() {
            self.count_user(connection.app, false);
        }
        connection.asked.take();
        let channels = connection.channels.take();
        for (channel, member) in channels {
            self.remove(connection, &channel, member.is_some());
        }
        let mut connections = self.spaces[connection.app].connections.borrow_mut();
        let removed = connections.remove(&connection.socket);
        drop(connections);
        drop(removed);
    }

    /// Publishes to all subscribers, in all workers. It waits only where other servers decide about positions in the history of the
    /// channel.
    pub(crate) async fn publish(
        &self,
        app: usize,
        channel: &str,
        message: Message,
    ) -> Result<(), NotDone> {
        let place = self.app(app).place(channel);
        let published = match self.hub.is_shared(&place) {
            true => self.hub.publish_and_wait(&place, message).await,
            false => self.hub.publish(&place, message),
        };
        published.map(|_| ())
    }

    /// The same for a client, which is told if it is not published.
    pub(crate) fn publish_of(
        &self,
        connection: &Rc<Connection>,
        channel: &str,
        message: Message,
    ) -> Result<(), NotDone> {
        let place = self.app(connection.app).place(channel);
        if !self.hub.is_shared(&place) {
            return self.hub.publish(&place, message).map(|_| ());
        }
        let (connection, channel) = (connection.clone(), channel.to_owned());
        (self.spawn)(Box::pin(async move {
            let front = connection.front.clone();
            let published = front.publish(connection.app, &channel, message).await;
            if let Err(refused) = published {
                let why = refused.to_string();
                connection.send(outgoing::error(Fault::ClientEvent, Some(&why)));
            }
        }));
        Ok(())
    }

    /// One more has signed in, or one of them is gone.
    pub(crate) fn count_user(&self, app: usize, is_there: bool) {
        let space = &self.spaces[app];
        let (users, place) = (space.users.get(), space.app.place(CONTROL));
        let Some(watch) = space.watch.get() else {
            return;
        };
        if is_there {
            space.users.set(users + 1);
            if users == 0 {
                let subscriber: Rc<dyn Subscriber> = watch.clone();
                // The name is short, and the channel has no history.
                let _ = self.hub.subscribe(&place, watch.id, subscriber, None);
            }
        } else {
            space.users.set(users - 1);
            if users == 1 {
                self.hub.unsubscribe(&place, watch.id);
            }
        }
    }

    /// Tells the application's server.
    pub(crate) fn report(&self, app: usize, happened: impl FnOnce() -> Happened) {
        if let Some(reporter) = &self.reporter {
            reporter.report(app, happened());
        }
    }

    /// Ends the connections of a user, of all workers.
    pub(crate) async fn terminate(&self, app: usize, user: &str) -> Result<(), NotDone> {
        let message = Message {
            event: TERMINATE.into(),
            data: user.to_owned().into(),
            ..Message::default()
        };
        self.publish(app, CONTROL, message).await
    }
}

impl Space {
    fn new(app: App) -> Self {
        Space {
            app,
            connections: RefCell::default(),
            users: Cell::new(0),
            watch: OnceCell::new(),
            rooms: RefCell::default(),
        }
    }

    fn is_full(&self) -> bool {
        self.connections.borrow().len() >= self.app.max_connections
    }

    fn leave_room(&self, channel: &str, id: u64) {
        let mut rooms = self.rooms.borrow_mut();
        let Some(room) = rooms.get_mut(channel) else {
            return;
        };
        let left = room.remove(&id);
        if room.is_empty() {
            rooms.remove(channel);
        }
        drop(rooms);
        drop(left);
    }

    /// Sends what is made once to all who are told of the members of this channel.
    fn tell(&self, place: &str, make: impl FnOnce(&str) -> Frame) {
        let Some(channel) = place.strip_prefix(&*self.app.prefix) else {
            return;
        };
        let rooms = self.rooms.borrow();
        if let Some(room) = rooms.get(channel) {
            let frame = make(channel);
            room.values().for_each(|each| each.offer(&frame));
        }
    }
}

/// What an application is told by the channels.
struct Watch {
    front: Weak<Front>,
    app: usize,
    /// Its number among all subscribers of this worker.
    id: u64,
}

impl Watch {
    fn with(&self, act: impl FnOnce(&Space)) {
        if let Some(front) = self.front.upgrade() {
            act(&front.spaces[self.app]);
        }
    }

    /// Something has happened in a channel, whose name is one of this protocol.
    fn report(&self, place: &str, happened: impl FnOnce(String) -> Happened) {
        let Some(front) = self.front.upgrade() else {
            return;
        };
        let channel = place.strip_prefix(&*front.app(self.app).prefix);
        if let Some(channel) = channel.filter(|channel| names::kind(channel).is_some()) {
            front.report(self.app, || happened(channel.to_owned()));
        }
    }
}

impl Subscriber for Watch {
    fn deliver(&self, publication: &Rc<Publication>) {
        let message = &publication.message;
        let Some(user) = std::str::from_utf8(&message.data).ok() else {
            return;
        };
        if &*message.event != TERMINATE {
            return;
        }
        self.with(|space| {
            let connections = space.connections.borrow();
            let of_user = connections.values().filter(|each| each.is_of(user));
            for connection in of_user {
                let why = "The connection was terminated by the application";
                connection.refuse(Fault::Unauthorised, why);
            }
        });
    }

    fn missed(&self, _: &str) {}
}

impl Observer for Watch {
    fn occupied(&self, channel: &str) {
        self.report(channel, |channel| Happened::ChannelOccupied { channel });
    }

    fn vacated(&self, channel: &str) {
        self.report(channel, |channel| Happened::ChannelVacated { channel });
    }

    fn joined(&self, channel: &str, member: &Member) {
        let user_id = member.id.to_string();
        self.report(channel, |channel| Happened::MemberAdded {
            channel,
            user_id,
        });
        self.with(|space| space.tell(channel, |channel| outgoing::member_added(channel, member)));
    }

    fn left(&self, channel: &str, member: &Member) {
        let user_id = member.id.to_string();
        self.report(channel, |channel| Happened::MemberRemoved {
            channel,
            user_id,
        });
        self.with(|space| {
            space.tell(channel, |channel| {
                outgoing::member_removed(channel, &member.id)
            });
        });
    }
}
