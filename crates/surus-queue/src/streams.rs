//! Streams: entries that stay until each group of readers has acknowledged them.
//!
//! A group reads each entry once. Who has read one has it until it acknowledges it; if its process dies, or is silent for too long, the
//! entry goes to the next reader of the group. What all groups have acknowledged is gone.

mod group;
mod log;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::book::Peer;
use crate::job::Id;
use crate::message::{Entry, Reading};
use crate::recent::Recent;
use crate::record::Record;
use group::{Group, Held};

/// Names come from code, so more are a mistake: of streams, and of the groups of one.
const NAMES: usize = 10_000;
/// After the start of an owner, readers have this time to say what they have read.
const CLAIMS: u64 = 1000;

#[derive(Debug, Default)]
struct Stream {
    entries: VecDeque<Kept>,
    /// The position of the last one that was appended.
    last: u64,
    /// What is on disk: those after it are read by nobody.
    saved: u64,
    groups: BTreeMap<String, Group>,
}

#[derive(Debug)]
struct Kept {
    id: Id,
    position: u64,
    at: u64,
    payload: Bytes,
}

impl Kept {
    fn size(&self) -> u64 {
        const ITSELF: usize = 100;
        (ITSELF + self.payload.len()) as u64
    }
}

/// One who waits for entries.
#[derive(Debug)]
struct Reader {
    peer: Peer,
    request: u64,
    wanted: Reading,
    /// It waits no longer, and is answered, be it with nothing.
    ends: bool,
}

/// All streams of a server.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    all: BTreeMap<String, Stream>,
    readers: VecDeque<Reader>,
    /// Appends, and their positions.
    recent: Recent<u64>,
    bytes: u64,
    /// Nobody reads before this time.
    not_before: u64,
}

impl Streams {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A new owner has read the log.
    pub(crate) fn begin(&mut self, now: u64) {
        for stream in self.all.values_mut() {
            stream.saved = stream.last;
        }
        if self.all.values().any(|stream| !stream.groups.is_empty()) {
            self.not_before = now + CLAIMS;
        }
    }

    /// The clock was set by so many milliseconds.
    pub(crate) fn shift(&mut self, by: i64) {
        self.not_before = self.not_before.saturating_add_signed(by);
        for group in self
            .all
            .values_mut()
            .flat_map(|stream| stream.groups.values_mut())
        {
            for held in group.held.values_mut() {
                held.since = held.since.saturating_add_signed(by);
            }
        }
    }

    /// Takes an entry in; nobody reads it before [`Streams::saved`]. `room`: bytes that it may take. `None`: it is there already.
    pub(crate) fn append(
        &mut self,
        name: &str,
        id: Id,
        payload: Bytes,
        now: u64,
        room: u64,
    ) -> Result<(u64, Option<Record>), String> {
        if let Some(&position) = self.recent.get(&id) {
            return Ok((position, None));
        }
        if !self.all.contains_key(name) && self.all.len() >= NAMES {
            return Err(format!("there are {NAMES} streams already"));
        }
        let position = self.all.get(name).map_or(0, |stream| stream.last) + 1;
        let kept = Kept {
            id,
            position,
            at: now,
            payload: payload.clone(),
        };
        if kept.size() > room {
            return Err(
                "there is no room for another entry (`queue_size`): are there groups that do not read?"
                    .to_owned(),
            );
        }
        self.put(name, kept);
        let record = Record::Append {
            stream: name.to_owned(),
            id,
            position,
            at: now,
            payload,
        };
        Ok((position, Some(record)))
    }

    fn put(&mut self, name: &str, kept: Kept) {
        self.recent.add(kept.id, kept.position);
        self.bytes += kept.size();
        let stream = self.all.entry(name.to_owned()).or_default();
        stream.last = stream.last.max(kept.position);
        stream.entries.push_back(kept);
    }

    /// What was appended is on disk, or could not be written.
    pub(crate) fn saved(&mut self, name: &str, is_written: bool) {
        let Some(stream) = self.all.get_mut(name) else {
            return;
        };
        if is_written {
            stream.saved = stream.last;
            return;
        }
        while stream
            .entries
            .back()
            .is_some_and(|kept| kept.position > stream.saved)
        {
            if let Some(kept) = stream.entries.pop_back() {
                self.bytes -= kept.size();
                self.recent.remove(&kept.id);
            }
        }
        stream.last = stream.saved;
    }

    /// Acknowledges what a group has read. Returns how many were not acknowledged before.
    pub(crate) fn acknowledge(&mut self, name: &str, group: &str, positions: &[u64]) -> u64 {
        let Some(stream) = self.all.get_mut(name) else {
            return 0;
        };
        let last = stream.last;
        let Some(own) = stream.groups.get_mut(group) else {
            return 0;
        };
        let known = positions.iter().filter(|&&position| position <= last);
        let count = known.filter(|&&position| own.acknowledge(position)).count();
        self.trim(name);
        count as u64
    }

    /// What all groups have acknowledged is gone.
    fn trim(&mut self, name: &str) {
        let Some(stream) = self.all.get_mut(name) else {
            return;
        };
        let Some(done) = stream.groups.values().map(|group| group.done).min() else {
            return;
        };
        while stream
            .entries
            .front()
            .is_some_and(|kept| kept.position <= done)
        {
            self.bytes -= stream.entries.pop_front().map_or(0, |kept| kept.size());
        }
    }

    /// One wants entries. The record is that of a group that is new: it begins with what is there.
    pub(crate) fn read(
        &mut self,
        peer: Peer,
        request: u64,
        wanted: Reading,
    ) -> Result<Option<Record>, String> {
        if !self.all.contains_key(&wanted.stream) && self.all.len() >= NAMES {
            return Err(format!("there are {NAMES} streams already"));
        }
        let stream = self.all.entry(wanted.stream.clone()).or_default();
        let is_new = !stream.groups.contains_key(&wanted.group);
        if is_new && stream.groups.len() >= NAMES {
            return Err(format!("the stream has {NAMES} groups already"));
        }
        let mut record = None;
        if is_new {
            let first = stream.entries.front().map(|kept| kept.position);
            let done = first.map_or(stream.last, |first| first - 1);
            stream.groups.insert(wanted.group.clone(), Group::at(done));
            record = Some(Record::Group {
                stream: wanted.stream.clone(),
                group: wanted.group.clone(),
                done,
                acknowledged: Vec::new(),
            });
        }
        self.readers.push_back(Reader {
            peer,
            request,
            wanted,
            ends: false,
        });
        Ok(record)
    }

    /// It waits no longer: [`Streams::next`] has its answer. Returns whether it is known.
    pub(crate) fn unread(&mut self, peer: Peer, request: u64) -> bool {
        let mut readers = self.readers.iter_mut();
        let reader = readers.find(|reader| reader.peer == peer && reader.request == request);
        reader.map(|reader| reader.ends = true).is_some()
    }

    /// Its process is dead, or will come with another connection.
    pub(crate) fn leave(&mut self, peer: Peer) {
        self.readers.retain(|reader| reader.peer != peer);
        for group in self
            .all
            .values_mut()
            .flat_map(|stream| stream.groups.values_mut())
        {
            let Group { held, back, .. } = group;
            held.retain(|&position, held| {
                let stays = held.by != peer;
                if !stays {
                    back.insert(position);
                }
                stays
            });
        }
    }

    /// Entries that this connection's process has read from an earlier owner; or that it has got too late, and does not want.
    pub(crate) fn claim(
        &mut self,
        peer: Peer,
        name: &str,
        group: &str,
        positions: &[u64],
        keeps: bool,
        now: u64,
    ) {
        let group = self
            .all
            .get_mut(name)
            .and_then(|stream| Some((stream.last, stream.groups.get_mut(group)?)));
        let Some((last, group)) = group else {
            return;
        };
        for &position in positions {
            if position <= group.done
                || position > last
                || group.acknowledged.contains(&position)
                || group
                    .held
                    .get(&position)
                    .is_some_and(|held| held.by != peer)
            {
                continue;
            }
            if keeps {
                group.back.remove(&position);
                let since = now;
                group.held.insert(position, Held { by: peer, since });
            } else if group.held.remove(&position).is_some() {
                group.back.insert(position);
            }
        }
    }

    /// Entries for those who wait, as far as there are any; none for one that waits no longer.
    pub(crate) fn next(&mut self, now: u64) -> Option<(Peer, u64, Vec<Entry>)> {
        if now < self.not_before {
            return None;
        }
        for at in 0..self.readers.len() {
            let reader = &self.readers[at];
            let entries = match self.all.get_mut(&reader.wanted.stream) {
                Some(stream) => stream.take(reader.peer, &reader.wanted, now),
                None => Vec::new(),
            };
            if !entries.is_empty() || reader.ends {
                let (peer, request) = (reader.peer, reader.request);
                self.readers.remove(at);
                return Some((peer, request, entries));
            }
        }
        None
    }

    /// When somebody may read what another one has had for too long, or an owner that has begun gives out what there is.
    pub(crate) fn next_due(&self, now: u64) -> Option<u64> {
        if self.readers.is_empty() {
            return None;
        }
        let late = self.readers.iter().filter_map(|reader| {
            let group = self
                .all
                .get(&reader.wanted.stream)?
                .groups
                .get(&reader.wanted.group)?;
            let since = group.held.values().map(|held| held.since).min()?;
            (reader.wanted.idle > 0).then(|| since.saturating_add(reader.wanted.idle))
        });
        let begins = Some(self.not_before).filter(|&at| at > now);
        late.filter(|&at| at > now).chain(begins).min()
    }

    /// A group is forgotten: nothing is kept for it any more.
    pub(crate) fn ungroup(&mut self, name: &str, group: &str) -> Option<Record> {
        self.all.get_mut(name)?.groups.remove(group)?;
        self.readers
            .retain(|reader| reader.wanted.stream != name || reader.wanted.group != group);
        self.trim(name);
        Some(Record::Ungroup {
            stream: name.to_owned(),
            group: group.to_owned(),
        })
    }
}

impl Stream {
    fn take(&mut self, peer: Peer, wanted: &Reading, now: u64) -> Vec<Entry> {
        let Some(group) = self.groups.get_mut(&wanted.group) else {
            return Vec::new();
        };
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while entries.len() < wanted.count as usize && bytes < Reading::MOST {
            let Some(position) = group.next(self.saved, now, wanted.idle) else {
                break;
            };
            // A disk may have damaged the record of one, so positions may have gaps.
            let at = self
                .entries
                .binary_search_by_key(&position, |kept| kept.position);
            let Some(kept) = at.ok().and_then(|at| self.entries.get(at)) else {
                group.acknowledge(position);
                continue;
            };
            let since = now;
            group.held.insert(position, Held { by: peer, since });
            let attempt = group.attempts.entry(position).or_insert(0);
            *attempt += 1;
            bytes += kept.payload.len();
            entries.push(Entry {
                position,
                attempt: *attempt,
                at: kept.at,
                payload: kept.payload.clone(),
            });
        }
        entries
    }
}

#[cfg(test)]
mod tests;
