//! Publications reach the subscribers of this worker in the order of their channel, each once.
//!
//! A letter of another worker may come early, late or never: its writer may have died. So it is a hint where the channel has a
//! history: subscribers get what is between the last one that they have got and the new one from the history.

use std::rc::Rc;

use super::{channel::Channel, Hub};
use crate::{wire, Message, Position, Publication, Subscriber};

impl Hub {
    /// Something was published, by this worker or another one.
    pub(super) fn arrived(&self, channel: &str, message: Message, position: Option<Position>) {
        let name = {
            let channels = self.channels.borrow();
            channels
                .get(channel)
                .map(|channel| Rc::clone(&channel.name))
        };
        if position.is_some() {
            self.noticed.set(self.noticed.get() + 1);
        }
        let Some(name) = name else {
            return;
        };
        let publication = Rc::new(Publication::new(name, message, position));
        match position {
            Some(position) => self.advance(channel, position, Some(publication)),
            None => self.deliver(&publication),
        }
    }

    /// Of this worker. What they do may change who is there.
    fn subscribers_of(&self, channel: &str) -> Vec<Rc<dyn Subscriber>> {
        let channels = self.channels.borrow();
        channels.get(channel).map_or_else(Vec::new, Channel::all)
    }

    fn deliver(&self, publication: &Rc<Publication>) {
        for subscriber in self.subscribers_of(&publication.channel) {
            self.count(|counts| counts.delivered += 1);
            subscriber.deliver(publication);
        }
    }

    /// Subscribers get all up to this position. `newest` is what is there, if it is at hand.
    pub(super) fn advance(&self, channel: &str, to: Position, newest: Option<Rc<Publication>>) {
        loop {
            let last = match self.last(channel) {
                Some(last) => last,
                // They have subscribed while it was not known where the channel is.
                None if self.has_subscribers(channel) && to.offset > 0 => Position {
                    offset: to.offset - 1,
                    ..to
                },
                None => return,
            };
            if last.epoch != to.epoch {
                // A letter may be older.
                let current = self.newest_of(channel, to.epoch);
                let Some(current) = current else { return };
                let lacks = self.may_lack(current, newest.is_some());
                self.start_at(channel, Position { offset: 0, ..to });
                if lacks {
                    self.lost(channel);
                }
                // Whoever is still there gets what the new epoch has.
                continue;
            }
            let next = last.offset + 1;
            if next > to.offset {
                return;
            }
            let position = Position { offset: next, ..to };
            // Before they have it: what they do may bring another one here.
            self.start_at(channel, position);
            let at_hand = newest.clone().filter(|_| position == to);
            match at_hand.or_else(|| self.kept(channel, position)) {
                Some(publication) => self.deliver(&publication),
                None => {
                    self.lost(channel);
                    // All that is in between is older.
                    self.skip_to(channel, to);
                }
            }
        }
    }

    /// One is not kept any more: the next that is there follows.
    fn skip_to(&self, channel: &str, to: Position) {
        let Some(last) = self.last(channel) else {
            return;
        };
        let keep = self.rules.of(channel);
        let oldest = to
            .offset
            .saturating_sub(keep.map_or(0, |keep| keep.messages));
        let mut offset = (last.offset + 1).max(oldest);
        while offset < to.offset && self.kept(channel, Position { offset, ..to }).is_none() {
            offset += 1;
        }
        let offset = offset - 1;
        self.start_at(channel, Position { offset, ..to });
    }

    /// The position of the newest publication, if the history as it is now has this epoch.
    fn newest_of(&self, channel: &str, epoch: u64) -> Option<Position> {
        let keep = self.rules.of(channel)?;
        let newest = self.history.newest(channel, keep).ok()?;
        (newest.epoch == epoch).then_some(newest)
    }

    /// A history has begun anew, and this is its newest position: whether some of the old one may never have come here. Then it cannot be
    /// known any more how many. `is_heard`: somebody has just said so, and that is counted already.
    fn may_lack(&self, newest: Position, is_heard: bool) -> bool {
        if self.nodes.borrow().is_some() {
            // What other servers let this worker hear is in order: it has heard all before.
            return !is_heard;
        }
        let of_new = newest.offset.saturating_sub(u64::from(is_heard));
        let known = self.caught_up.get() + self.noticed.get() + of_new;
        known != self.history.appended()
    }

    fn has_subscribers(&self, channel: &str) -> bool {
        let channels = self.channels.borrow();
        let found = channels.get(channel);
        found.is_some_and(|found| !found.subscribers.is_empty())
    }

    pub(super) fn last(&self, channel: &str) -> Option<Position> {
        self.channels.borrow().get(channel)?.last
    }

    /// Whoever has subscribed has got all up to this.
    pub(super) fn start_at(&self, channel: &str, position: Position) {
        if let Some(channel) = self.channels.borrow_mut().get_mut(channel) {
            channel.last = Some(position);
        }
    }

    /// What is kept at a position.
    pub(super) fn kept(&self, channel: &str, position: Position) -> Option<Rc<Publication>> {
        let message = wire::kept(&self.history.read(channel, position)?)?;
        let position = Some(position);
        Some(Rc::new(Publication::new(channel.into(), message, position)))
    }

    /// Whether all publications after a position up to another one are kept, as far as the oldest of them tells: they go in order.
    pub(super) fn covers(&self, channel: &str, since: Position, to: Position) -> bool {
        if since.epoch != to.epoch || since.offset > to.offset {
            return false;
        }
        let offset = since.offset + 1;
        offset > to.offset
            || self
                .history
                .read(channel, Position { offset, ..to })
                .is_some()
    }

    /// So many publications after a position up to another one. `None`: some are not kept any more.
    pub(super) fn between(
        &self,
        channel: &str,
        since: Position,
        to: Position,
        count: u64,
    ) -> Option<Vec<Rc<Publication>>> {
        if !self.covers(channel, since, to) {
            return None;
        }
        let last = to.offset.min(since.offset.saturating_add(count));
        let offsets = since.offset + 1..=last;
        let all = offsets.map(|offset| self.kept(channel, Position { offset, ..to }));
        all.collect()
    }

    fn lost(&self, channel: &str) {
        for subscriber in self.subscribers_of(channel) {
            self.count(|counts| counts.missed += 1);
            subscriber.missed(channel);
        }
    }

    /// Looks whether something was appended of which no letter has come, and lets subscribers have it. To be called from time to time.
    pub fn catch_up(&self) {
        if self.nodes.borrow().is_some() {
            // What is shared with other servers each worker hears itself, or fetches: others may have heard what is newer alone.
            return;
        }
        let appended = self.history.appended();
        let noticed = self.noticed.replace(0);
        let differs = self.caught_up.replace(appended) + noticed != appended;
        if !self.looks_again.replace(differs) && !differs {
            return;
        }
        let names: Vec<_> = {
            let channels = self.channels.borrow();
            let with_history = channels.values().filter(|channel| channel.last.is_some());
            with_history
                .map(|channel| Rc::clone(&channel.name))
                .collect()
        };
        for name in names {
            let keep = self.rules.of(&name);
            let newest = keep.and_then(|keep| self.history.newest(&name, keep).ok());
            // A history that has just begun, as the old one was over, has nothing: what of the old one is on its way still comes.
            if let Some(newest) = newest.filter(|newest| newest.offset > 0) {
                self.advance(&name, newest, None);
            }
        }
    }
}
