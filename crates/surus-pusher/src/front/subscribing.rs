//! Who may subscribe, and what subscribers are told first.

use std::rc::Rc;

use surus_channels::{Member, Publication, Refused as NotDone};

use super::Front;
use crate::connection::Connection;
use crate::event::{Frame, Made};
use crate::incoming::{self, Subscribe};
use crate::names::{self, Kind, OF_CLIENT};
use crate::outgoing::{self, Refused};
use crate::signature::is_authorised;

/// Members of one presence channel: each newcomer is told of all of them.
const MOST_MEMBERS: usize = 1000;

/// Bytes that an application may say about a member.
const LARGEST_INFO: usize = 1024;

impl Front {
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
        let subscribed = self.hub.follow(&place, connection.id, connection.clone());
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
        if !self.hub.has_begun(place) {
            return None;
        }
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

    pub(super) fn remove(&self, connection: &Connection, channel: &str, is_member: bool) {
        let space = &self.spaces[connection.app];
        let place = space.app.place(channel);
        if is_member {
            // Before others are told.
            space.leave_room(channel, connection.id);
            self.hub.leave(&place, connection.id);
        }
        self.hub.unsubscribe(&place, connection.id);
    }
}
