use bytes::Bytes;

use super::Streams;
use crate::job::Id;
use crate::message::{Entry, Reading};
use crate::record::Record;

const ROOM: u64 = 1 << 20;

fn wanted(group: &str, count: u32, idle: u64) -> Reading {
    Reading {
        stream: "s".to_owned(),
        group: group.to_owned(),
        count,
        idle,
    }
}

/// Streams, and what a log would have of them.
#[derive(Default)]
struct Logged {
    streams: Streams,
    log: Vec<Record>,
    requests: u64,
}

impl Logged {
    fn append(&mut self, payload: &'static str) -> u64 {
        let payload = Bytes::from_static(payload.as_bytes());
        let appended = self.streams.append("s", Id::new(), payload, 0, ROOM);
        let (position, record) = appended.expect("room");
        self.log.extend(record);
        self.streams.saved("s", true);
        position
    }

    /// The positions that this connection reads for a group.
    fn read(&mut self, peer: u64, group: &str, count: u32, now: u64) -> Vec<u64> {
        self.requests += 1;
        let wanted = wanted(group, count, 1000);
        let record = self
            .streams
            .read(peer, self.requests, wanted)
            .expect("room");
        self.log.extend(record);
        let Some((to, request, entries)) = self.streams.next(now) else {
            assert!(self.streams.unread(peer, self.requests));
            let (to, request, entries) = self.streams.next(now).expect("an answer");
            assert_eq!((to, request), (peer, self.requests));
            assert!(entries.is_empty());
            return Vec::new();
        };
        assert_eq!((to, request), (peer, self.requests));
        entries.iter().map(|entry| entry.position).collect()
    }

    fn acknowledge(&mut self, group: &str, positions: &[u64]) -> u64 {
        self.log.push(Record::Acknowledged {
            stream: "s".to_owned(),
            group: group.to_owned(),
            positions: positions.to_vec(),
        });
        self.streams.acknowledge("s", group, positions)
    }

    fn restored(&self) -> [Streams; 2] {
        let all = [self.log.clone(), self.streams.records().collect()];
        all.map(|log: Vec<Record>| {
            let mut streams = Streams::default();
            log.into_iter().for_each(|record| streams.apply(record));
            streams.begin(0);
            streams
        })
    }
}

#[test]
fn a_group_reads_each_entry_once_and_what_all_have_acknowledged_is_gone() {
    let mut logged = Logged::default();
    for payload in ["a", "b", "c", "d"] {
        logged.append(payload);
    }
    assert_eq!(logged.read(1, "one", 2, 0), [1, 2]);
    assert_eq!(logged.read(2, "one", 9, 0), [3, 4]);
    assert_eq!(logged.read(1, "one", 9, 0), [0; 0]);
    assert_eq!(logged.read(1, "two", 9, 0), [1, 2, 3, 4]);
    // In any order, once.
    assert_eq!(logged.acknowledge("one", &[4, 2, 1, 99]), 3);
    assert_eq!(logged.acknowledge("one", &[1]), 0);
    assert_eq!(logged.streams.shown(None)[0]["entries"], 4);
    assert_eq!(logged.acknowledge("two", &[1, 2, 3]), 3);
    assert_eq!(logged.streams.shown(None)[0]["entries"], 2);
    assert_eq!(logged.acknowledge("one", &[3]), 1);
    for streams in logged.restored() {
        let (here, there) = (logged.streams.shown(None), streams.shown(None));
        for key in ["entries", "last"] {
            assert_eq!(here[0][key], there[0][key], "{key}");
        }
        for group in 0..2 {
            let left = |shown: &serde_json::Value| shown[0]["groups"][group]["left"].clone();
            assert_eq!(left(&here), left(&there));
        }
        assert_eq!(streams.bytes(), logged.streams.bytes());
    }
    logged.acknowledge("two", &[4]);
    assert_eq!(logged.streams.bytes(), 0);
    // Positions go on, also after the log was written anew.
    for mut streams in logged.restored() {
        let appended = streams.append("s", Id::new(), Bytes::new(), 0, ROOM);
        assert_eq!(appended.map(|(position, _)| position), Ok(5));
    }
}

#[test]
fn what_a_dead_reader_had_goes_to_the_next_one() {
    let mut logged = Logged::default();
    (0..4).for_each(|_| _ = logged.append("x"));
    assert_eq!(logged.read(1, "g", 3, 0), [1, 2, 3]);
    logged.acknowledge("g", &[2]);
    logged.streams.leave(1);
    assert_eq!(logged.read(2, "g", 9, 0), [1, 3, 4]);
    // One that is silent has them no longer than that.
    assert_eq!(logged.read(3, "g", 9, 999), [0; 0]);
    assert_eq!(logged.read(3, "g", 9, 1000), [1, 3, 4]);
    assert_eq!(logged.read(2, "g", 9, 1999), [0; 0]);
    // A new owner waits for those who say what they have.
    let [mut next, _] = logged.restored();
    next.claim(7, "s", "g", &[1, 2, 3], true, 500);
    next.read(8, 1, wanted("g", 9, 0)).expect("room");
    assert!(next.next(999).is_none());
    assert_eq!(next.next_due(999), Some(1000));
    let (_, _, entries) = next.next(1000).expect("entries");
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].position, 4);
    // Given back: it had come too late.
    next.claim(7, "s", "g", &[3], false, 1000);
    next.claim(7, "s", "g", &[4], true, 1000);
    next.read(8, 2, wanted("g", 9, 0)).expect("room");
    let (_, _, entries) = next.next(1000).expect("entries");
    assert_eq!(entries.len(), 1);
    assert_eq!((entries[0].position, entries[0].attempt), (3, 1));
}

#[test]
fn one_that_waits_no_longer_gets_what_there_is() {
    let mut logged = Logged::default();
    logged.append("a");
    assert_eq!(logged.read(1, "g", 9, 0), [1]);
    logged.append("b");
    // Not before an owner that has begun knows who has what.
    let [mut next, _] = logged.restored();
    next.claim(1, "s", "g", &[1], true, 0);
    for request in [1, 2] {
        next.read(3, request, wanted("g", 9, 0)).expect("room");
        assert!(next.unread(3, request));
    }
    assert!(next.next(999).is_none() && !next.unread(3, 4));
    let mut answers = std::iter::from_fn(|| next.next(1000));
    let positions =
        |entries: Vec<Entry>| -> Vec<u64> { entries.iter().map(|entry| entry.position).collect() };
    let mut answer = || answers.next().map(|(.., entries)| positions(entries));
    assert_eq!(answer(), Some(vec![2]));
    assert_eq!(answer(), Some(Vec::new()));
    assert_eq!(answer(), None);
}

#[test]
fn readers_have_their_time_whatever_the_clock_is_set_to() {
    let mut logged = Logged::default();
    logged.append("a");
    assert_eq!(logged.read(1, "g", 9, 10_000), [1]);
    logged.streams.shift(5000);
    assert_eq!(logged.read(2, "g", 9, 15_999), [0; 0]);
    logged.streams.shift(-10_000);
    assert_eq!(logged.read(2, "g", 9, 6000), [1]);
    // So has an owner that has begun.
    let [mut next, _] = logged.restored();
    next.shift(-5000);
    next.read(3, 1, wanted("g", 9, 0)).expect("room");
    assert!(next.next(0).is_some());
}

#[test]
fn what_cannot_be_written_is_not_there() {
    let mut logged = Logged::default();
    logged.append("a");
    let (id, payload) = (Id::new(), Bytes::from_static(b"b"));
    let append = |streams: &mut Streams| streams.append("s", id, payload.clone(), 0, ROOM);
    assert!(append(&mut logged.streams).is_ok_and(|(position, _)| position == 2));
    assert_eq!(logged.read(1, "g", 9, 0), [1]);
    logged.streams.saved("s", false);
    assert_eq!(logged.append("c"), 2);
    assert_eq!(logged.read(1, "g", 9, 0), [2]);
    // Sent again, it is the same entry.
    let (id, payload) = (Id::new(), Bytes::from_static(b"d"));
    let (first, _) = logged
        .streams
        .append("s", id, payload.clone(), 0, ROOM)
        .expect("room");
    let again = logged
        .streams
        .append("s", id, payload, 0, ROOM)
        .expect("room");
    assert!(again.0 == first && again.1.is_none());
    let full = logged
        .streams
        .append("s", Id::new(), Bytes::from_static(b"e"), 0, 10);
    assert!(full.is_err_and(|why| why.contains("queue_size")));
}

#[test]
fn an_entry_that_the_disk_has_damaged_costs_no_other_one() {
    let mut logged = Logged::default();
    for payload in ["a", "b", "c", "d"] {
        logged.append(payload);
    }
    logged.log.remove(1);
    let [mut next, _] = logged.restored();
    next.read(1, 1, wanted("g", 9, 0)).expect("room");
    let (_, _, entries) = next.next(0).expect("entries");
    let read: Vec<(u64, &[u8])> = entries
        .iter()
        .map(|entry| (entry.position, &*entry.payload))
        .collect();
    assert_eq!(read, [(1, &b"a"[..]), (3, &b"c"[..]), (4, &b"d"[..])]);
    assert_eq!(next.acknowledge("s", "g", &[1, 3, 4]), 3);
    assert_eq!(next.bytes(), 0);
}
