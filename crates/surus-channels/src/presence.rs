//! Who is in a channel: members, each with one connection or more, of this worker and of others.

use std::collections::{btree_map::Entry, BTreeMap, HashMap};

use bytes::Bytes;

/// Somebody who is in a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name, of which there is one in a channel.
    pub id: Box<str>,
    /// What it says of itself: JSON, say.
    pub info: Bytes,
}

/// The members of one channel. A member is held by workers; this worker holds it with its connections.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    members: BTreeMap<Box<str>, Holders>,
    /// The members of this worker's connections.
    connections: HashMap<u64, Box<str>>,
}

#[derive(Debug, Default)]
struct Holders {
    /// What each worker says of it.
    by: BTreeMap<u64, Bytes>,
    /// Connections of this worker.
    own: usize,
}

impl Holders {
    /// All workers agree upon it.
    fn member(&self, id: &str) -> Member {
        Member {
            id: id.into(),
            info: self.by.values().next().cloned().unwrap_or_default(),
        }
    }
}

/// What a change has brought about.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// The member has come or gone, for everybody.
    pub(crate) seen: Option<Member>,
    /// Others have to be told.
    pub(crate) is_new_here: bool,
}

impl Presence {
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = Member> + '_ {
        self.members.iter().map(|(id, holders)| holders.member(id))
    }

    /// The member of a connection.
    pub(crate) fn of(&self, connection: u64) -> Option<&str> {
        self.connections.get(&connection).map(|id| &**id)
    }

    /// The workers that hold some.
    pub(crate) fn holders(&self) -> impl Iterator<Item = u64> + '_ {
        self.members
            .values()
            .flat_map(|holders| holders.by.keys().copied())
    }

    /// Those that this worker holds.
    pub(crate) fn held_by(&self, worker: u64) -> impl Iterator<Item = Member> + '_ {
        self.members.iter().filter_map(move |(id, holders)| {
            let info = holders.by.get(&worker)?.clone();
            Some(Member {
                id: id.clone(),
                info,
            })
        })
    }

    /// A connection of this worker joins. It is a member no more than once.
    pub(crate) fn join(&mut self, me: u64, connection: u64, id: &str, info: &Bytes) -> Change {
        if self.connections.contains_key(&connection) {
            return Change::default();
        }
        self.connections.insert(connection, id.into());
        let mut change = self.hold(me, id, info);
        if let Some(holders) = self.members.get_mut(id) {
            change.is_new_here = holders.own == 0;
            holders.own += 1;
        }
        change
    }

    /// A connection of this worker leaves. Who it was.
    pub(crate) fn leave(&mut self, me: u64, connection: u64) -> Option<(Box<str>, Change)> {
        let id = self.connections.remove(&connection)?;
        let holders = self.members.get_mut(&id)?;
        holders.own -= 1;
        if holders.own > 0 {
            return Some((id, Change::default()));
        }
        let seen = self.release(me, &id);
        let is_new_here = true;
        Some((id, Change { seen, is_new_here }))
    }

    /// A worker says that it has a member.
    pub(crate) fn hold(&mut self, worker: u64, id: &str, info: &Bytes) -> Change {
        let mut change = Change::default();
        let holders = match self.members.entry(id.into()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let info = info.clone();
                change.seen = Some(Member {
                    id: id.into(),
                    info,
                });
                entry.insert(Holders::default())
            }
        };
        holders.by.entry(worker).or_insert_with(|| info.clone());
        change
    }

    /// A worker has a member no longer. The member, if nobody has it.
    pub(crate) fn release(&mut self, worker: u64, id: &str) -> Option<Member> {
        let holders = self.members.get_mut(id)?;
        let member = holders.member(id);
        holders.by.remove(&worker)?;
        if !holders.by.is_empty() {
            return None;
        }
        self.members.remove(id);
        Some(member)
    }

    /// A worker is gone. Those whom nobody has any more.
    pub(crate) fn release_all(&mut self, worker: u64) -> Vec<Member> {
        let held: Vec<_> = self.held_by(worker).collect();
        let released = held
            .iter()
            .filter_map(|member| self.release(worker, &member.id));
        released.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn a_member_comes_with_its_first_connection_and_goes_with_its_last() {
        let mut book = Presence::default();
        let first = book.join(1, 10, "ann", &info("a"));
        assert!(first.is_new_here && first.seen.is_some());
        assert_eq!(book.join(1, 10, "bob", &info("b")), Change::default());
        assert_eq!(book.join(1, 11, "ann", &info("z")), Change::default());
        assert_eq!(
            book.members().map(|m| m.info).collect::<Vec<_>>(),
            [info("a")]
        );
        assert_eq!(book.hold(2, "ann", &info("c")), Change::default());
        assert_eq!(book.leave(1, 10), Some(("ann".into(), Change::default())));
        assert_eq!(book.leave(1, 10), None);
        let (_, last_here) = book.leave(1, 11).unwrap();
        assert!(last_here.is_new_here && last_here.seen.is_none());
        assert_eq!(
            book.members().map(|m| m.info).collect::<Vec<_>>(),
            [info("c")]
        );
        assert_eq!(book.release_all(2).len(), 1);
        assert!(book.is_empty());
        assert_eq!(book.release_all(2), []);
    }
}
