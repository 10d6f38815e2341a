use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;

use super::{Book, Peer};
use crate::clock::Clock;
use crate::holder::Holder;
use crate::job::{Ending, Id, Push};
use crate::record::Record;

const MOST: u64 = 1 << 20;

fn push(queue: &str) -> Push {
    Push {
        queue: queue.to_owned(),
        payload: Bytes::from_static(b"payload"),
        priority: 0,
        delay: Duration::ZERO,
        unique: None,
    }
}

fn this() -> Holder {
    Holder::of(std::process::id()).expect("this process")
}

/// A book, and what a log would have of it.
#[derive(Default)]
struct Logged {
    book: Book,
    log: Vec<Record>,
    holders: HashMap<Peer, Holder>,
}

impl Logged {
    fn with_taker(queue: &str, places: u32) -> Logged {
        let mut logged = Logged::default();
        logged.holders.insert(1, this());
        logged.book.subscribe(1, queue, places, Some(2));
        logged
    }

    fn push(&mut self, push: Push, now: u64) -> Id {
        let id = Id::new();
        let (_, job) = self.book.push(id, push, now, MOST).expect("room");
        self.log.push(Record::Job(job.expect("a new job").clone()));
        self.book.saved(id, now);
        id
    }

    fn next(&mut self) -> Option<Id> {
        let (_, job, record) = self.book.next(&self.holders)?;
        let id = job.id;
        self.log.push(record);
        Some(id)
    }

    fn end(&mut self, id: Id, ending: Ending, now: u64) {
        let record = self.book.end(1, id, ending, now).expect("its job");
        self.log.push(record);
    }

    /// The book that a new owner reads.
    fn restored(&self, now: u64) -> Book {
        Book::restored(self.log.clone(), now)
    }
}

fn number(book: &Book, queue: &str, what: &str) -> u64 {
    let counts = book.counts();
    let mut queues = counts["queues"].as_array().expect("queues").iter();
    let found = queues.find(|each| each["queue"] == queue);
    found.map_or(0, |queue| queue[what].as_u64().expect("a number"))
}

#[test]
fn no_more_than_its_places_are_given_to_a_taker() {
    let mut logged = Logged::with_taker("a", 2);
    let ids: Vec<Id> = (0..3).map(|_| logged.push(push("a"), 0)).collect();
    assert_eq!(logged.next(), Some(ids[0]));
    assert_eq!(logged.next(), Some(ids[1]));
    assert_eq!(logged.next(), None);
    logged.end(ids[0], Ending::Done, 0);
    assert_eq!(logged.next(), Some(ids[2]));
}

#[test]
fn a_push_that_comes_again_is_one_job() {
    let mut logged = Logged::with_taker("a", 2);
    let id = logged.push(push("a"), 0);
    let again = logged.book.push(id, push("a"), 0, MOST);
    assert!(matches!(again, Ok((pushed, None)) if pushed.is_new && pushed.id == id));
    logged.next();
    logged.end(id, Ending::Done, 0);
    for book in [&mut logged.restored(0), &mut logged.book] {
        let again = book.push(id, push("a"), 0, MOST);
        assert!(matches!(again, Ok((pushed, None)) if pushed.id == id));
    }
}

#[test]
fn what_waits_for_the_disk_is_not_given_to_anybody() {
    let mut logged = Logged::with_taker("a", 1);
    let id = Id::new();
    logged.book.push(id, push("a"), 0, MOST).expect("room");
    assert_eq!(logged.next(), None);
    logged.book.remove(id);
    assert_eq!(logged.book.bytes(), 0);
    logged.book.saved(id, 0);
    assert_eq!(logged.next(), None);
}

#[test]
fn a_new_owner_gives_away_what_nobody_runs() {
    let mut logged = Logged::with_taker("a", 10);
    let ids: Vec<Id> = (0..3).map(|_| logged.push(push("a"), 0)).collect();
    for _ in 0..2 {
        logged.next();
    }
    let mut book = logged.restored(0);
    assert_eq!(number(&book, "a", "running"), 2);
    // Its process has one of them; the other one did not arrive.
    let records = book.claim(7, this(), &[ids[0]], 0);
    assert_eq!(records.len(), 1);
    assert_eq!(number(&book, "a", "running"), 1);
    assert_eq!(number(&book, "a", "waiting"), 2);
    assert!(!book.has_doubts());
}

#[test]
fn jobs_of_the_dead_run_again_as_often_as_they_may() {
    let mut logged = Logged::with_taker("a", 10);
    let id = logged.push(push("a"), 0);
    assert_eq!(logged.next(), Some(id));
    logged.book.leave(1, this());
    assert!(logged.book.bury(|_| true, 0).is_empty());
    assert_eq!(logged.book.bury(|_| false, 0).len(), 1);
    assert_eq!(number(&logged.book, "a", "waiting"), 1);
    logged.book.subscribe(1, "a", 10, Some(2));
    assert_eq!(logged.next(), Some(id));
    logged.book.leave(1, this());
    let records = logged.book.bury(|_| false, 0);
    assert!(matches!(records[..], [Record::Failed { .. }]));
    assert_eq!(logged.book.revive(Some(id), None, 0).0.len(), 1);
    logged.book.subscribe(1, "a", 10, None);
    assert_eq!(logged.next(), Some(id));
}

fn fail(logged: &mut Logged, now: u64) {
    let id = logged.next().expect("a job");
    let error = "no".to_owned();
    logged.end(id, Ending::Failed { error }, now);
}

#[test]
fn a_failed_job_is_not_retried_beside_another_one_with_its_key() {
    let mut logged = Logged::with_taker("a", 10);
    let with_key = || Push {
        unique: Some("key".to_owned()),
        ..push("a")
    };
    let first = logged.push(with_key(), 0);
    fail(&mut logged, 0);
    let second = logged.push(with_key(), 0);
    assert!(matches!(logged.book.revive(Some(first), None, 0), (records, 1) if records.is_empty()));
    assert_eq!(number(&logged.book, "a", "failed"), 1);
    fail(&mut logged, 0);
    // Both have failed: the older one runs, the other one stays.
    let (records, blocked) = logged.book.revive(None, Some("a"), 0);
    assert_eq!((records.len(), blocked), (1, 1));
    logged.log.extend(records);
    for book in [&mut logged.restored(0), &mut logged.book] {
        assert_eq!(number(book, "a", "waiting"), 1);
        let (pushed, job) = book.push(Id::new(), with_key(), 0, MOST).expect("room");
        assert!(pushed.id == first && !pushed.is_new && job.is_none());
        assert_eq!(book.revive(Some(second), None, 0).1, 1);
        book.forget(Some(second), None);
        let (pushed, _) = book.push(Id::new(), with_key(), 0, MOST).expect("room");
        assert_eq!(pushed.id, first);
    }
}

#[test]
fn delays_are_as_long_as_was_said_whatever_the_clock_is_set_to() {
    const HOUR: i64 = 3_600_000;
    let clock = |offset| Clock { boot: 1, offset };
    let begin = 10 * HOUR as u64;
    for by in [-HOUR, HOUR] {
        let mut logged = Logged::with_taker("a", 10);
        logged.log.extend(logged.book.follow_clock(clock(0)).1);
        let delay = Duration::from_secs(10);
        logged.push(Push { delay, ..push("a") }, begin);
        let set = begin.saturating_add_signed(by);
        // By this owner, or while there was none.
        let mut next = logged.restored(begin);
        next.follow_clock(clock(by));
        logged.log.extend(logged.book.follow_clock(clock(by)).1);
        assert!(
            matches!(logged.book.follow_clock(clock(by + 5)), (same, None) if same == clock(by))
        );
        let rewritten = Book::restored(logged.book.records().collect(), set);
        for mut book in [next, logged.restored(set), rewritten, logged.book] {
            assert_eq!(book.next_due(), Some(set + 10_000));
            book.wake(set + 9_999);
            assert_eq!(number(&book, "a", "delayed"), 1);
            book.wake(set + 10_000);
            assert_eq!(number(&book, "a", "waiting"), 1);
        }
    }
}

/// Whatever has happened, the log has the same jobs in the same places.
#[test]
fn a_log_restores_what_it_was_told() {
    let mut logged = Logged::with_taker("a", 20);
    let mut seed: u64 = 7;
    let mut random = move |most: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    let mut running: Vec<Id> = Vec::new();
    for now in 0..3000 {
        match random(5) {
            0 | 1 => {
                let delay = Duration::from_millis(random(3) * 10);
                logged.push(Push { delay, ..push("a") }, now);
            }
            2 => running.extend(logged.next()),
            _ if running.is_empty() => {}
            3 => {
                let id = running.swap_remove(random(running.len() as u64) as usize);
                logged.end(id, Ending::Done, now);
            }
            _ => {
                let id = running.swap_remove(random(running.len() as u64) as usize);
                let error = "wrong".to_owned();
                let ending = match random(2) {
                    0 => Ending::Failed { error },
                    _ => Ending::Again {
                        delay: Duration::from_millis(random(9)),
                        error: Some(error),
                        counts: true,
                    },
                };
                logged.end(id, ending, now);
            }
        }
        logged.book.wake(now);
        if now % 100 == 0 {
            let rewritten = Book::restored(logged.book.records().collect(), now);
            for book in [logged.restored(now), rewritten] {
                for what in ["waiting", "delayed", "running", "failed"] {
                    let numbers = (number(&book, "a", what), number(&logged.book, "a", what));
                    assert_eq!(numbers.0, numbers.1, "{what} at {now}");
                }
                assert_eq!(book.bytes(), logged.book.bytes());
            }
        }
    }
}
