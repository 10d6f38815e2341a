//! What comes from other servers, and goes to them.

use std::rc::Rc;

use super::Hub;
use crate::{
    wire::{self, Content, Letter},
    Fetched, HistoryError, Message, Nodes, Position, Refused,
};

impl Hub {
    /// From now on its channels are shared with other servers.
    pub fn share(&self, nodes: Rc<dyn Nodes>) {
        *self.nodes.borrow_mut() = Some(nodes);
    }

    /// Whether others decide about the positions of this channel: [`Hub::publish_and_wait`], [`Hub::fetch`].
    #[must_use]
    pub fn is_shared(&self, channel: &str) -> bool {
        self.nodes.borrow().is_some() && self.rules.of(channel).is_some()
    }

    /// As [`Hub::publish`], on a channel that is shared. Subscribers get it when it comes back.
    ///
    /// # Errors
    /// It is not known whether anybody gets it.
    pub async fn publish_and_wait(
        &self,
        channel: &str,
        message: Message,
    ) -> Result<Option<Position>, Refused> {
        Hub::check(channel, &message)?;
        let nodes = self.nodes.borrow().clone();
        let (Some(keep), Some(nodes)) = (self.rules.of(channel), nodes) else {
            return self.publish(channel, message);
        };
        let content = wire::to_keep(&message).into();
        let position = nodes.append(channel, keep, content).await;
        let position = position.map_err(Refused::History)?;
        self.count(|counts| counts.published += 1);
        Ok(Some(position))
    }

    /// Brings the history of this server up to date with that of the others.
    ///
    /// # Errors
    /// They cannot be asked.
    pub async fn fetch(&self, channel: &str) -> Result<(), HistoryError> {
        let nodes = self.nodes.borrow().clone();
        let (Some(keep), Some(nodes)) = (self.rules.of(channel), nodes) else {
            return Ok(());
        };
        // Other workers of this server may have heard what is newer, while neither they nor this one have what is in between.
        let newest = || self.history.newest(channel, keep).ok();
        let mut known = self.last(channel).or_else(newest);
        loop {
            let Fetched { newest, kept, left } = nodes.fetch(channel, keep, known).await?;
            let last = Position {
                offset: newest.offset.saturating_sub(left),
                ..newest
            };
            for (content, behind) in kept.iter().zip((0..kept.len() as u64).rev()) {
                let Some(offset) = last.offset.checked_sub(behind) else {
                    continue;
                };
                let position = Position { offset, ..last };
                // Without room it is lost, and those who have subscribed are told.
                let _ = self.history.put(channel, keep, position, Some(content));
            }
            self.history.put(channel, keep, last, None)?;
            self.advance(channel, last, None);
            if left == 0 || kept.is_empty() {
                return Ok(());
            }
            // Not what others have heard meanwhile: there may be some in between.
            known = Some(last);
        }
    }

    /// A publication of a channel that is shared has come.
    pub fn came(&self, channel: &str, position: Position, content: &[u8]) {
        let (Some(keep), Some(message)) = (self.rules.of(channel), wire::kept(content)) else {
            return;
        };
        // Without room it is lost for those who come again: they are told.
        let _ = self.history.put(channel, keep, position, Some(content));
        self.arrived(channel, message, Some(position));
    }

    /// A letter of any server has come. What this one has sent is not for its own workers.
    pub fn receive_of_nodes(&self, letter: &[u8]) {
        let from = Letter::read(letter).map_or(self.me, |letter| letter.from);
        if !self.is_of_this_server(from) {
            self.receive(letter);
        }
    }

    /// Whether a worker is one of the same server.
    #[must_use]
    pub fn is_of_this_server(&self, worker: u64) -> bool {
        worker >> 32 == self.me >> 32
    }

    /// The way to the other servers was cut off, and is there again: what is known of them may be wrong.
    pub fn begin_anew(&self) {
        for other in self.others() {
            if !self.is_of_this_server(other) {
                self.gone(other);
            }
        }
        self.hello();
        // They may not know who has left meanwhile. The workers of this server do.
        let letter = Letter {
            from: self.me,
            to: 0,
            content: Content::Anew,
        };
        if let Some(nodes) = &*self.nodes.borrow() {
            nodes.send(letter.write());
        }
        self.introduce(0);
    }

    /// The channels whose subscribers here get what is kept.
    #[must_use]
    pub fn followed(&self) -> Vec<Rc<str>> {
        let channels = self.channels.borrow();
        let all = channels.values().filter(|channel| {
            !channel.subscribers.is_empty() && self.rules.of(&channel.name).is_some()
        });
        all.map(|channel| Rc::clone(&channel.name)).collect()
    }
}
