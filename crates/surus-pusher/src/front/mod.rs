//! The connections of one worker: [`subscribing`] to channels, and to [`watch`] them.

mod subscribing;
mod watch;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::{Rc, Weak};

use surus_channels::{Hub, Message, Refused as NotDone, Subscriber};

use crate::apps::App;
use crate::connection::Connection;
use crate::event::{Frame, SocketId};
use crate::fault::Fault;
use crate::names;
use crate::outgoing;
use crate::report::{Happened, Reporter};
use watch::Watch;

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
    watch: Rc<Watch>,
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
        let front = Rc::new_cyclic(|front| {
            let spaces = apps.into_iter().enumerate().map(|(number, app)| {
                let watch = Watch {
                    front: Weak::clone(front),
                    app: number,
                    id: surus_channels::next_id(),
                };
                Space::new(app, watch)
            });
            Front {
                spaces: spaces.collect(),
                hub,
                reporter,
                spawn: Box::new(spawn),
            }
        });
        for space in &front.spaces {
            front.hub.observe(space.watch.clone());
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
    pub(crate) fn by_id(&self, id: &str) -> Option<usize> {
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
            // What this server says is the same in all of these.
            (Some(Ok(number)), _) if !(5..=7).contains(&number) => Some(Fault::OtherVersion),
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
        let published = self.hub.publish_and_wait(&place, message).await;
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
        if names::is_cache(channel) {
            // What is kept there is the last event of a server: it would have to make room.
            return self.hub.publish_unkept(&place, message);
        }
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
        let watch = &space.watch;
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
    fn new(app: App, watch: Watch) -> Self {
        Space {
            app,
            connections: RefCell::default(),
            users: Cell::new(0),
            watch: Rc::new(watch),
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
