//! Members join and leave, with connections of this worker.

use bytes::Bytes;

use super::{drop_if_empty, open, Hub};
use crate::{name::check, wire::Content, Member, Refused, LARGEST_INFO};

impl Hub {
    /// A connection of this worker is a member from now on. It keeps its first name in this channel until it leaves.
    ///
    /// # Errors
    /// It is no member.
    pub fn join(&self, channel: &str, id: u64, member: &str, info: &Bytes) -> Result<(), Refused> {
        check(channel)?;
        check(member)?;
        if info.len() > LARGEST_INFO {
            return Err(Refused::TooLarge);
        }
        let change = {
            let mut channels = self.channels.borrow_mut();
            let book = &mut open(&mut channels, channel).presence;
            book.join(self.me, id, member, info)
        };
        if change.is_new_here {
            self.send(Content::Joined {
                channel: channel.into(),
                member: member.into(),
                info: info.clone(),
            });
        }
        if let Some(member) = change.seen {
            self.tell(|observer| observer.joined(channel, &member));
        }
        Ok(())
    }

    /// It is no member any more.
    pub fn leave(&self, channel: &str, id: u64) {
        let left = {
            let mut channels = self.channels.borrow_mut();
            let found = channels.get_mut(channel);
            let left = found.and_then(|found| found.presence.leave(self.me, id));
            drop_if_empty(&mut channels, channel);
            left
        };
        let Some((member, change)) = left else {
            return;
        };
        if change.is_new_here {
            let channel = channel.into();
            self.send(Content::Left { channel, member });
        }
        if let Some(member) = change.seen {
            self.tell(|observer| observer.left(channel, &member));
        }
    }

    /// Who is in a channel, in the order of their names.
    #[must_use]
    pub fn members(&self, channel: &str) -> Vec<Member> {
        let channels = self.channels.borrow();
        let found = channels.get(channel);
        found.map_or_else(Vec::new, |found| found.presence.members().collect())
    }

    /// As which member this connection is there.
    #[must_use]
    pub fn member(&self, channel: &str, id: u64) -> Option<Box<str>> {
        let channels = self.channels.borrow();
        channels.get(channel)?.presence.of(id).map(Into::into)
    }
}
