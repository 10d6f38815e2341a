//! Channels that a WebSocket has subscribed to, and is a member of.

use std::{collections::BTreeSet, rc::Rc};

use bytes::Bytes;
use surus_channels::{Position, Publication, Recovery, Refused, Subscriber};

use super::{SocketMessage, WebSocket};
use crate::shared::channels::channels;

/// Bytes of published messages that wait for a client which reads slowly; then it has to come again.
const HIGHEST: usize = 1024 * 1024;

/// Channels of one WebSocket.
pub(crate) const MOST_CHANNELS: usize = 1000;

/// The client may come back later (IANA, "WebSocket Close Code Number").
const TOO_SLOW: u16 = 1013;

#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    /// It gets what is published there.
    channels: BTreeSet<Box<str>>,
    /// It is a member there.
    joined: BTreeSet<Box<str>>,
}

/// Why a WebSocket has not subscribed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoSubscription {
    /// It is over.
    Over,
    /// It has [`MOST_CHANNELS`].
    TooMany,
    Refused(Refused),
}

impl Subscriber for WebSocket {
    /// Waits for nobody: a client that is much too slow has to come again.
    fn deliver(&self, publication: &Rc<Publication>) {
        if self.outbound.borrow().bytes > HIGHEST {
            return self.has_missed();
        }
        let message = publication.made(|publication| SocketMessage {
            binary: publication.message.binary,
            data: publication.message.data.clone(),
            shared: Some(Rc::default()),
        });
        self.send(SocketMessage::clone(&message));
    }

    fn is_full(&self) -> bool {
        WebSocket::is_full(self)
    }

    fn missed(&self, _: &str) {
        self.has_missed();
    }
}

impl WebSocket {
    fn has_missed(&self) {
        self.outbound.borrow_mut().clear();
        self.close_by_server(TOO_SLOW);
    }

    /// Sends it what is published on this channel, and before that what was published since a position.
    pub(crate) fn subscribe(
        self: &Rc<Self>,
        channel: &str,
        since: Option<Position>,
    ) -> Result<Recovery, NoSubscription> {
        self.check(|own| &own.channels, channel)?;
        let Some(hub) = channels() else {
            return Err(NoSubscription::Over);
        };
        let recovery = hub.subscribe(channel, self.number, self.clone(), since);
        let recovery = recovery.map_err(NoSubscription::Refused)?;
        if recovery.behind {
            return Ok(recovery);
        }
        if self.is_over.get() {
            // What it has missed was too much.
            hub.unsubscribe(channel, self.number);
            return Err(NoSubscription::Over);
        }
        let mut own = self.subscriptions.borrow_mut();
        own.channels.insert(channel.into());
        Ok(recovery)
    }

    pub(crate) fn unsubscribe(&self, channel: &str) {
        let was_there = self.subscriptions.borrow_mut().channels.remove(channel);
        if let Some(hub) = channels().filter(|_| was_there) {
            hub.unsubscribe(channel, self.number);
        }
    }

    /// Makes its client a member of this channel.
    pub(crate) fn join(
        &self,
        channel: &str,
        member: &str,
        info: &Bytes,
    ) -> Result<(), NoSubscription> {
        self.check(|own| &own.joined, channel)?;
        let Some(hub) = channels() else {
            return Err(NoSubscription::Over);
        };
        let joined = hub.join(channel, self.number, member, info);
        joined.map_err(NoSubscription::Refused)?;
        let mut own = self.subscriptions.borrow_mut();
        own.joined.insert(channel.into());
        Ok(())
    }

    pub(crate) fn leave(&self, channel: &str) {
        let was_there = self.subscriptions.borrow_mut().joined.remove(channel);
        if let Some(hub) = channels().filter(|_| was_there) {
            hub.leave(channel, self.number);
        }
    }

    fn check(
        &self,
        list: impl FnOnce(&Subscriptions) -> &BTreeSet<Box<str>>,
        channel: &str,
    ) -> Result<(), NoSubscription> {
        if self.is_over.get() {
            return Err(NoSubscription::Over);
        }
        let own = self.subscriptions.borrow();
        let list = list(&own);
        if list.len() >= MOST_CHANNELS && !list.contains(channel) {
            return Err(NoSubscription::TooMany);
        }
        Ok(())
    }

    /// It is over: nobody else keeps it.
    pub(super) fn end_subscriptions(&self) {
        let own = self.subscriptions.take();
        let Some(hub) = channels() else {
            return;
        };
        for channel in own.joined {
            hub.leave(&channel, self.number);
        }
        for channel in own.channels {
            hub.unsubscribe(&channel, self.number);
        }
    }
}
