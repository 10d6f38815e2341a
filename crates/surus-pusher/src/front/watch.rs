//! What the channels tell an application.

use std::rc::{Rc, Weak};

use surus_channels::{Member, Observer, Publication, Subscriber};

use super::{Front, Space, TERMINATE};
use crate::fault::Fault;
use crate::names;
use crate::outgoing;
use crate::report::Happened;

/// What an application is told by the channels.
pub(super) struct Watch {
    pub(super) front: Weak<Front>,
    pub(super) app: usize,
    /// Its number among all subscribers of this worker.
    pub(super) id: u64,
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
