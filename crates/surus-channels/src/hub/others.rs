//! What this worker tells others, and gets to know of them.

use std::{collections::HashSet, rc::Rc};

use super::{drop_if_empty, open, Hub};
use crate::{
    wire::{in_letters, Content, Letter},
    Member,
};

impl Hub {
    /// This worker is new: it asks the others who is there.
    pub fn hello(&self) {
        self.send(Content::Hello);
    }

    /// A letter of another worker has come. The sender; `None`: it is malformed.
    pub fn receive(&self, letter: &[u8]) -> Option<u64> {
        let letter = Letter::read(letter)?;
        let from = letter.from;
        if letter.to != 0 && letter.to != self.me || from == self.me {
            return Some(from);
        }
        match letter.content {
            Content::Published {
                channel,
                message,
                position,
            } => self.arrived(&channel, message, position),
            Content::Subscribers(counts) => {
                for (channel, count) in counts {
                    self.count_elsewhere(&channel, from, count);
                }
            }
            Content::Joined {
                channel,
                member,
                info,
            } => self.hold(&channel, from, &member, &info),
            Content::Left { channel, member } => self.release(&channel, from, &member),
            Content::Hello => self.introduce(from),
            Content::Anew => self.gone(from),
            Content::Members(members) => {
                for (channel, member, info) in members {
                    self.hold(&channel, from, &member, &info);
                }
            }
        }
        Some(from)
    }

    /// The others of which something is known.
    #[must_use]
    pub fn others(&self) -> HashSet<u64> {
        let channels = self.channels.borrow();
        let mut others = HashSet::new();
        for channel in channels.values() {
            others.extend(channel.elsewhere.keys());
            others.extend(channel.presence.holders());
        }
        others.remove(&self.me);
        others
    }

    /// Another worker has ended: its subscribers and members are gone.
    pub fn gone(&self, worker: u64) {
        let mut vacated: Vec<Rc<str>> = Vec::new();
        let mut left: Vec<(Rc<str>, Member)> = Vec::new();
        self.channels.borrow_mut().retain(|name, channel| {
            let had = channel.elsewhere.remove(&worker).is_some();
            if had && !channel.is_occupied() {
                vacated.push(Rc::clone(name));
            }
            let members = channel.presence.release_all(worker);
            left.extend(members.into_iter().map(|member| (Rc::clone(name), member)));
            !channel.is_empty()
        });
        for (channel, member) in left {
            self.tell(|observer| observer.left(&channel, &member));
        }
        for channel in vacated {
            self.tell(|observer| observer.vacated(&channel));
        }
    }

    /// Tells the others what has changed. Called after [`crate::Links::soon`].
    pub fn flush(&self) {
        let changed = self.changed.take();
        let counts = {
            let channels = self.channels.borrow();
            let count = |name: &Rc<str>| channels.get(name).map_or(0, |c| c.subscribers.len());
            let all = changed
                .iter()
                .map(|name| (Box::from(&**name), short(count(name))));
            all.collect()
        };
        self.send_counts(counts, 0);
    }

    fn send_counts(&self, counts: Vec<(Box<str>, u32)>, to: u64) {
        for list in in_letters(counts, |(name, _)| name.len()) {
            self.send_to(to, Content::Subscribers(list));
        }
    }

    pub(super) fn send(&self, content: Content) {
        self.send_to(0, content);
    }

    fn send_to(&self, to: u64, content: Content) {
        let from = self.me;
        self.pass_on(Letter { from, to, content }.write());
    }

    /// Tells one other worker all of this one.
    pub(super) fn introduce(&self, to: u64) {
        let (mut counts, mut members) = (Vec::new(), Vec::new());
        for channel in self.channels.borrow().values() {
            let name: Box<str> = Box::from(&*channel.name);
            let held = channel.presence.held_by(self.me);
            members.extend(held.map(|member| (name.clone(), member.id, member.info)));
            if !channel.subscribers.is_empty() {
                counts.push((name, short(channel.subscribers.len())));
            }
        }
        self.send_counts(counts, to);
        let size = |(name, id, info): &(Box<str>, Box<str>, bytes::Bytes)| {
            name.len() + id.len() + info.len()
        };
        for list in in_letters(members, size) {
            self.send_to(to, Content::Members(list));
        }
    }

    /// Letters to another worker were lost: what it knows of this one may be wrong.
    pub fn introduce_anew(&self, to: u64) {
        self.send_to(to, Content::Anew);
        self.introduce(to);
    }

    fn count_elsewhere(&self, name: &str, worker: u64, count: u32) {
        let (was_occupied, is_occupied) = {
            let mut channels = self.channels.borrow_mut();
            let channel = open(&mut channels, name);
            let was_occupied = channel.is_occupied();
            match count {
                0 => _ = channel.elsewhere.remove(&worker),
                _ => _ = channel.elsewhere.insert(worker, count),
            }
            let is_occupied = channel.is_occupied();
            drop_if_empty(&mut channels, name);
            (was_occupied, is_occupied)
        };
        match (was_occupied, is_occupied) {
            (false, true) => self.tell(|observer| observer.occupied(name)),
            (true, false) => self.tell(|observer| observer.vacated(name)),
            _ => {}
        }
    }

    fn hold(&self, channel: &str, worker: u64, member: &str, info: &bytes::Bytes) {
        let change = {
            let mut channels = self.channels.borrow_mut();
            open(&mut channels, channel)
                .presence
                .hold(worker, member, info)
        };
        if let Some(member) = change.seen {
            self.tell(|observer| observer.joined(channel, &member));
        }
    }

    fn release(&self, channel: &str, worker: u64, member: &str) {
        let left = {
            let mut channels = self.channels.borrow_mut();
            let found = channels.get_mut(channel);
            let left = found.and_then(|found| found.presence.release(worker, member));
            drop_if_empty(&mut channels, channel);
            left
        };
        if let Some(member) = left {
            self.tell(|observer| observer.left(channel, &member));
        }
    }
}

fn short(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
