//! Streams as the log has them, and as operators see them.

use bytes::Bytes;
use serde_json::{json, Value};

use super::group::Group;
use super::{Kept, Stream, Streams};
use crate::record::Record;

impl Streams {
    /// A new owner reads the log.
    pub(crate) fn apply(&mut self, record: Record) {
        match record {
            Record::Append {
                stream,
                id,
                position,
                at,
                payload,
            } => {
                let payload = Bytes::copy_from_slice(&payload);
                let kept = Kept {
                    id,
                    position,
                    at,
                    payload,
                };
                self.put(&stream, kept);
            }
            Record::Acknowledged {
                stream,
                group,
                positions,
            } => _ = self.acknowledge(&stream, &group, &positions),
            Record::Group {
                stream,
                group,
                done,
                acknowledged,
            } => {
                let own = Group {
                    acknowledged: acknowledged.into_iter().collect(),
                    ..Group::at(done)
                };
                let stream = self.all.entry(stream).or_default();
                stream.groups.insert(group, own);
            }
            Record::Ungroup { stream, group } => _ = self.ungroup(&stream, &group),
            Record::Stream { stream, last } => {
                let stream = self.all.entry(stream).or_default();
                stream.last = stream.last.max(last);
            }
            _ => {}
        }
    }

    /// All that must be kept.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> + '_ {
        self.all.iter().flat_map(|(name, stream)| {
            let saved = stream
                .entries
                .iter()
                .filter(|kept| kept.position <= stream.saved);
            let entries = saved.map(move |kept| Record::Append {
                stream: name.clone(),
                id: kept.id,
                position: kept.position,
                at: kept.at,
                payload: kept.payload.clone(),
            });
            let groups = stream.groups.iter().map(move |(group, own)| Record::Group {
                stream: name.clone(),
                group: group.clone(),
                done: own.done,
                acknowledged: own.acknowledged.iter().copied().collect(),
            });
            let last = Record::Stream {
                stream: name.clone(),
                last: stream.saved,
            };
            entries.chain(groups).chain([last])
        })
    }

    pub(crate) fn shown(&self, name: Option<&str>) -> Value {
        let meant = self
            .all
            .iter()
            .filter(|(own, _)| name.is_none_or(|name| name == *own));
        let stream = |(name, stream): (&String, &Stream)| {
            let group = |(group, own): (&String, &Group)| {
                let waiting = stream.last - own.done - own.acknowledged.len() as u64;
                json!({
                    "group": group,
                    "acknowledged": own.done,
                    "read": own.held.len(),
                    "left": waiting,
                })
            };
            json!({
                "stream": name,
                "entries": stream.entries.len(),
                "last": stream.last,
                "groups": stream.groups.iter().map(group).collect::<Vec<Value>>(),
            })
        };
        meant.map(stream).collect()
    }
}
