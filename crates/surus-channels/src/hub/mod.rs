//! The channels of one worker.

mod channel;
mod live;
mod nodes;
mod others;
mod presence;
#[cfg(test)]
mod tests;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashMap},
    fmt,
    rc::Rc,
};

use bytes::Bytes;

use crate::{
    name::check,
    wire::{Content, Letter},
    History, HistoryError, Message, Nodes, Observer, Position, Publication, Refused, Rules,
    Subscriber, LARGEST_DATA,
};
use channel::Channel;

/// The way to the other workers.
pub trait Links {
    /// Sends a letter to all other workers, in order. Waits for none.
    fn send(&self, letter: Bytes);

    /// Lets somebody call [`Hub::flush`] soon.
    fn soon(&self);
}

/// What a subscriber gets of what was published before it has subscribed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovery {
    /// It has got all that was published since the position it has given; without one, or without a history, it is false.
    pub recovered: bool,
    /// Where it is now; what follows, it gets. `None`: the channel has no history.
    pub position: Option<Position>,
    /// It is full, and has not subscribed: when it has room, it subscribes again, from its position.
    pub behind: bool,
}

/// Numbers for status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Channels that have subscribers or members in this worker, or members elsewhere.
    pub channels: usize,
    /// Subscriptions of this worker.
    pub subscriptions: usize,
    /// Members of all channels.
    pub members: usize,
    /// Publications of this worker, so far.
    pub published: u64,
    /// Publications to subscribers of this worker, so far, counted for each.
    pub delivered: u64,
    /// Publications that subscribers of this worker have missed, so far.
    pub missed: u64,
}

/// The channels of one worker: its subscribers, and what it knows of the other workers.
pub struct Hub {
    /// Of this worker: no other one has it, on no node.
    me: u64,
    links: Box<dyn Links>,
    nodes: RefCell<Option<Rc<dyn Nodes>>>,
    history: Box<dyn History>,
    rules: Rules,
    channels: RefCell<HashMap<Rc<str>, Channel>>,
    observers: RefCell<Vec<Rc<dyn Observer>>>,
    /// Channels whose subscribers others will be told of.
    changed: RefCell<BTreeSet<Rc<str>>>,
    counts: Cell<Figures>,
    /// What was appended to histories when all subscribers had got it.
    caught_up: Cell<u64>,
    /// Publications with a position that were noticed since then.
    noticed: Cell<u64>,
    /// What was counted last may not have been there yet.
    looks_again: Cell<bool>,
}

impl Hub {
    /// `me`: a number that no other worker of any node has; not 0.
    #[must_use]
    pub fn new(me: u64, links: Box<dyn Links>, history: Box<dyn History>, rules: Rules) -> Hub {
        let caught_up = Cell::new(history.appended());
        Hub {
            me,
            links,
            nodes: RefCell::default(),
            history,
            rules,
            channels: RefCell::default(),
            observers: RefCell::default(),
            changed: RefCell::default(),
            counts: Cell::default(),
            caught_up,
            noticed: Cell::new(0),
            looks_again: Cell::new(false),
        }
    }

    /// The number of this worker.
    #[must_use]
    pub fn me(&self) -> u64 {
        self.me
    }

    /// Tells it from now on what happens in all channels.
    pub fn observe(&self, observer: Rc<dyn Observer>) {
        self.observers.borrow_mut().push(observer);
    }

    /// Lets a connection have what is published on this channel. `id`: its number, from [`crate::next_id`]. What was published since
    /// `since` it gets before this returns, if that is kept. Nothing of what follows is left out or comes twice. One that has
    /// subscribed already goes on from `since`, if there is one.
    ///
    /// # Errors
    /// It has not subscribed.
    pub fn subscribe(
        &self,
        channel: &str,
        id: u64,
        subscriber: Rc<dyn Subscriber>,
        since: Option<Position>,
    ) -> Result<Recovery, Refused> {
        check(channel)?;
        let Some(keep) = self.rules.of(channel) else {
            self.add_subscriber(channel, id, subscriber);
            return Ok(Recovery::default());
        };
        let newest = self
            .history
            .newest(channel, keep)
            .map_err(Refused::History)?;
        if since.is_some() {
            // It goes on from there: what others get now, or while it is behind, would come to it twice.
            self.unsubscribe(channel, id);
        }
        // Those who are there get it first, so that all are at the same place.
        self.advance(channel, newest, None);
        let mut recovered = since.is_some_and(|since| self.covers(channel, since, newest));
        let mut at = since.filter(|_| recovered).unwrap_or(newest);
        while recovered && at.offset < newest.offset {
            if subscriber.is_full() {
                return Ok(Recovery {
                    recovered,
                    position: Some(at),
                    behind: true,
                });
            }
            at.offset += 1;
            match self.kept(channel, at) {
                Some(publication) => {
                    self.count(|counts| counts.delivered += 1);
                    subscriber.deliver(&publication);
                }
                // It was removed to make room, since it was looked for.
                None => recovered = false,
            }
        }
        self.add_subscriber(channel, id, subscriber);
        self.start_at(channel, newest);
        Ok(Recovery {
            recovered,
            position: Some(newest),
            behind: false,
        })
    }

    /// As [`Hub::subscribe`], for what comes from now on. A history that has not begun does not begin with it: whoever may name any
    /// channel takes no memory.
    ///
    /// # Errors
    /// It has not subscribed.
    pub fn follow(
        &self,
        channel: &str,
        id: u64,
        subscriber: Rc<dyn Subscriber>,
    ) -> Result<(), Refused> {
        check(channel)?;
        if self.is_shared(channel) || self.has_begun(channel) {
            return self.subscribe(channel, id, subscriber, None).map(|_| ());
        }
        self.add_subscriber(channel, id, subscriber);
        Ok(())
    }

    /// Whether the channel has a history, and somebody has asked for it or published.
    #[must_use]
    pub fn has_begun(&self, channel: &str) -> bool {
        self.rules.of(channel).is_some() && self.history.is_known(channel)
    }

    /// It gets nothing more of this channel.
    pub fn unsubscribe(&self, channel: &str, id: u64) {
        let (removed, vacated) = {
            let mut channels = self.channels.borrow_mut();
            let Some(found) = channels.get_mut(channel) else {
                return;
            };
            let was_occupied = found.is_occupied();
            let removed = found.subscribers.remove(&id);
            if removed.is_none() {
                return;
            }
            if found.subscribers.is_empty() {
                found.last = None;
            }
            let vacated = was_occupied && !found.is_occupied();
            self.note_changed(&found.name);
            drop_if_empty(&mut channels, channel);
            (removed, vacated)
        };
        self.count(|counts| counts.subscriptions -= 1);
        // It may be the last owner, which looks for channels.
        drop(removed);
        if vacated {
            self.tell(|observer| observer.vacated(channel));
        }
    }

    fn add_subscriber(&self, name: &str, id: u64, subscriber: Rc<dyn Subscriber>) {
        let occupied = {
            let mut channels = self.channels.borrow_mut();
            let channel = open(&mut channels, name);
            let was_occupied = channel.is_occupied();
            if channel.subscribers.insert(id, subscriber).is_none() {
                self.count(|counts| counts.subscriptions += 1);
                self.note_changed(&channel.name);
            }
            !was_occupied
        };
        if occupied {
            self.tell(|observer| observer.occupied(name));
        }
    }

    /// Publishes to all subscribers, in all workers. Those of this worker have it when this returns.
    ///
    /// # Errors
    /// Nobody gets it.
    pub fn publish(&self, channel: &str, message: Message) -> Result<Option<Position>, Refused> {
        Hub::check(channel, &message)?;
        if self.is_shared(channel) {
            // It would have to wait: `publish_and_wait`.
            return Err(Refused::History(HistoryError::Unavailable));
        }
        let position = match self.rules.of(channel) {
            Some(keep) => {
                let content = crate::wire::to_keep(&message);
                let appended = self.history.append(channel, keep, &content);
                Some(appended.map_err(Refused::History)?)
            }
            None => None,
        };
        self.spread(channel, message, position);
        Ok(position)
    }

    /// As [`Hub::publish`], for those who are there only: a history of the channel does not get it. Waits for nobody, on channels that
    /// are shared, too.
    ///
    /// # Errors
    /// Nobody gets it.
    pub fn publish_unkept(&self, channel: &str, message: Message) -> Result<(), Refused> {
        Hub::check(channel, &message)?;
        self.spread(channel, message, None);
        Ok(())
    }

    fn spread(&self, channel: &str, message: Message, position: Option<Position>) {
        self.count(|counts| counts.published += 1);
        let letter = Letter {
            from: self.me,
            to: 0,
            content: Content::Published {
                channel: channel.into(),
                message,
                position,
            },
        };
        self.pass_on(letter.write());
        if let Content::Published { message, .. } = letter.content {
            self.arrived(channel, message, position);
        }
    }

    /// The newest publications that are kept, at most `count`, in order; those after `since` if it is given. `None`: the channel has no
    /// history, or not all after `since` are kept.
    ///
    /// # Errors
    /// The history cannot be read.
    #[allow(clippy::type_complexity)]
    pub fn history(
        &self,
        channel: &str,
        since: Option<Position>,
        count: u64,
    ) -> Result<Option<(Position, Vec<Rc<Publication>>)>, Refused> {
        check(channel)?;
        let Some(keep) = self.rules.of(channel) else {
            return Ok(None);
        };
        let newest = self
            .history
            .newest(channel, keep)
            .map_err(Refused::History)?;
        if let Some(since) = since {
            let between = self.between(channel, since, newest, count);
            return Ok(between.map(|all| (newest, all)));
        }
        let first = newest.offset.saturating_sub(count.min(keep.messages));
        let offsets = first + 1..=newest.offset;
        let found = offsets.filter_map(|offset| self.kept(channel, Position { offset, ..newest }));
        Ok(Some((newest, found.collect())))
    }

    /// How many have subscribed, in all workers.
    #[must_use]
    pub fn subscribers(&self, channel: &str) -> usize {
        let channels = self.channels.borrow();
        channels.get(channel).map_or(0, Channel::count)
    }

    /// The names of all channels with subscribers in any worker that begin with this, and how many have subscribed.
    #[must_use]
    pub fn occupied(&self, prefix: &str) -> Vec<(Rc<str>, usize)> {
        let channels = self.channels.borrow();
        let all = channels.values().filter(|channel| channel.is_occupied());
        let found = all.filter(|channel| channel.name.starts_with(prefix));
        let mut found: Vec<_> = found.map(|c| (Rc::clone(&c.name), c.count())).collect();
        found.sort();
        found
    }

    /// Numbers for status.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let channels = self.channels.borrow();
        Figures {
            channels: channels.len(),
            members: channels
                .values()
                .map(|channel| channel.presence.len())
                .sum(),
            ..self.counts.get()
        }
    }

    fn check(channel: &str, message: &Message) -> Result<(), Refused> {
        check(channel)?;
        for name in [&message.event, &message.except] {
            if name.len() > crate::LONGEST_NAME {
                return Err(Refused::Name);
            }
        }
        let fits = message.data.len() <= LARGEST_DATA;
        fits.then_some(()).ok_or(Refused::TooLarge)
    }

    /// To all other workers, of all servers.
    fn pass_on(&self, letter: Bytes) {
        if let Some(nodes) = &*self.nodes.borrow() {
            nodes.send(letter.clone());
        }
        self.links.send(letter);
    }

    fn count(&self, change: impl FnOnce(&mut Figures)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    fn tell(&self, event: impl Fn(&dyn Observer)) {
        let observers = self.observers.borrow().clone();
        observers.iter().for_each(|observer| event(&**observer));
    }

    fn note_changed(&self, name: &Rc<str>) {
        let mut changed = self.changed.borrow_mut();
        if changed.is_empty() {
            self.links.soon();
        }
        changed.insert(Rc::clone(name));
    }
}

fn open<'a>(channels: &'a mut HashMap<Rc<str>, Channel>, name: &str) -> &'a mut Channel {
    if !channels.contains_key(name) {
        let name: Rc<str> = name.into();
        channels.insert(Rc::clone(&name), Channel::new(Rc::clone(&name)));
    }
    channels.get_mut(name).expect("it was inserted")
}

fn drop_if_empty(channels: &mut HashMap<Rc<str>, Channel>, name: &str) {
    if channels.get(name).is_some_and(Channel::is_empty) {
        channels.remove(name);
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("me", &self.me)
            .field("figures", &self.figures())
            .finish_non_exhaustive()
    }
}
