use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;

use super::{Book, Peer};
use crate::clock::Clock;
use crate::holder::Holder;
use crate::job::{Ending, Id, NewBatch, Push};
use crate::message::{Rate, Subscription};
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

fn wanted(queue: &str, places: u32, tries: Option<u32>) -> Subscription {
    Subscription {
        queue: queue.to_owned(),
        places,
        tries,
        rate: None,
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
        logged.book.subscribe(1, &wanted(queue, places, Some(2)));
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
        let (_, job, record) = self.book.next(&self.holders, 0)?;
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
    logged.book.subscribe(1, &wanted("a", 10, Some(2)));
    assert_eq!(logged.next(), Some(id));
    logged.book.leave(1, this());
    let records = logged.book.bury(|_| false, 0);
    assert!(matches!(records[..], [Record::Failed { .. }]));
    assert_eq!(logged.book.revive(Some(id), None, 0).0.len(), 1);
    logged.book.subscribe(1, &wanted("a", 10, None));
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
        book.forget(Some(second), None, 0);
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
            assert_eq!(book.next_due(0), Some(set + 10_000));
            book.wake(set + 9_999);
            assert_eq!(number(&book, "a", "delayed"), 1);
            book.wake(set + 10_000);
            assert_eq!(number(&book, "a", "waiting"), 1);
        }
    }
}

#[test]
fn jobs_begin_evenly_if_their_queue_has_a_rate() {
    let mut logged = Logged::default();
    logged.holders.insert(1, this());
    let rate = Some(Rate {
        count: 10,
        period: 1000,
    });
    let mut begun = Vec::new();
    logged.book.subscribe(
        1,
        &Subscription {
            rate,
            ..wanted("a", 1000, None)
        },
    );
    for _ in 0..100 {
        logged.push(push("a"), 0);
    }
    let mut now = 1_000_000;
    while begun.len() < 30 {
        while logged.book.next(&logged.holders, now).is_some() {
            begun.push(now);
        }
        now = logged.book.next_due(now).expect("another one");
    }
    assert_eq!(begun[29] - begun[0], 2900);
    // An idle time is not made up for.
    now += 60_000;
    let mut count = 0;
    while logged.book.next(&logged.holders, now).is_some() {
        count += 1;
    }
    assert_eq!(count, 1);
}

#[test]
fn a_rate_is_what_was_said_whatever_the_clock_is_set_to() {
    const HOUR: i64 = 3_600_000;
    let begin = 10 * HOUR as u64;
    let rate = Some(Rate {
        count: 1,
        period: 1000,
    });
    for by in [-HOUR, HOUR] {
        let mut logged = Logged::with_taker("a", 10);
        let wanted = Subscription {
            rate,
            ..wanted("a", 10, None)
        };
        logged.book.subscribe(1, &wanted);
        logged.book.follow_clock(Clock { boot: 1, offset: 0 });
        for _ in 0..2 {
            logged.push(push("a"), begin);
        }
        assert!(logged.book.next(&logged.holders, begin).is_some());
        let offset = by;
        logged.book.follow_clock(Clock { boot: 1, offset });
        let set = begin.saturating_add_signed(by);
        assert_eq!(logged.book.next_due(set), Some(set + 1000));
        assert!(logged.book.next(&logged.holders, set + 999).is_none());
        assert!(logged.book.next(&logged.holders, set + 1000).is_some());
    }
}

fn batch(count: usize) -> NewBatch {
    let after = |queue: &str| Some((Id::new(), push(queue)));
    NewBatch {
        jobs: (0..count).map(|_| (Id::new(), push("a"))).collect(),
        then: after("then"),
        catch: after("catch"),
        finally: after("finally"),
    }
}

impl Logged {
    fn push_batch(&mut self, batch: NewBatch, now: u64) -> Id {
        let id = Id::new();
        let jobs: Vec<Id> = batch.jobs.iter().map(|(id, _)| *id).collect();
        let (_, record) = self.book.push_batch(id, batch, now, MOST).expect("room");
        self.log.push(record.expect("a new batch"));
        jobs.into_iter().for_each(|id| self.book.saved(id, now));
        id
    }

    /// What has followed, here and as a new owner reads it.
    fn followed(&mut self) -> [u64; 3] {
        self.book.wake(u64::MAX);
        let of = |book: &Book| {
            ["then", "catch", "finally"]
                .map(|name| number(book, name, "waiting") + number(book, name, "failed"))
        };
        let here = of(&self.book);
        let rewritten = Book::restored(self.book.records().collect(), u64::MAX);
        for other in [self.restored(u64::MAX), rewritten] {
            assert_eq!(of(&other), here);
            assert_eq!(other.bytes(), self.book.bytes());
            assert_eq!(other.list_batches(None), self.book.list_batches(None));
        }
        here
    }
}

#[test]
fn jobs_follow_those_of_a_batch() {
    let mut logged = Logged::with_taker("a", 10);
    let error = || Ending::Failed {
        error: "no".to_owned(),
    };
    let id = logged.push_batch(batch(3), 0);
    let jobs: Vec<Id> = (0..3).filter_map(|_| logged.next()).collect();
    logged.end(jobs[0], Ending::Done, 0);
    assert_eq!(logged.followed(), [0, 0, 0]);
    logged.end(jobs[1], error(), 0);
    assert_eq!(logged.followed(), [0, 1, 0]);
    logged.end(jobs[2], error(), 0);
    assert_eq!(logged.followed(), [0, 1, 1]);
    let shown = &logged.book.list_batches(Some(id))[0];
    assert_eq!((&shown["done"], &shown["failed"]), (&1.into(), &2.into()));
    // Both run again: then all are done.
    let (records, _) = logged.book.revive(None, Some("a"), 0);
    logged.log.extend(records);
    for _ in 0..2 {
        assert_eq!(logged.followed(), [0, 1, 1]);
        let id = logged.next().expect("a job");
        logged.end(id, Ending::Done, 0);
    }
    assert_eq!(logged.followed(), [1, 1, 1]);
    assert_eq!(
        logged.book.list_batches(None).as_array().map(Vec::len),
        Some(0)
    );
    // One whose job is forgotten is over, and nothing follows its end.
    logged.push_batch(batch(1), 0);
    let id = logged.next().expect("a job");
    logged.end(id, error(), 0);
    assert_eq!(logged.followed(), [1, 2, 2]);
    let records = logged.book.forget(Some(id), None, 0);
    logged.log.extend(records);
    assert_eq!(logged.followed(), [1, 2, 2]);
    assert_eq!(
        logged.book.list_batches(None).as_array().map(Vec::len),
        Some(0)
    );
}

#[test]
fn a_batch_does_not_wait_for_a_job_that_the_disk_has_damaged() {
    let mut logged = Logged::with_taker("a", 10);
    logged.push_batch(batch(2), 0);
    let mut records: Vec<Record> = logged.book.records().collect();
    let is_job = |record: &Record| matches!(record, Record::Job(_));
    records.remove(records.iter().position(is_job).expect("a job"));
    let mut book = Book::restored(records, 0);
    assert_eq!(book.give_up_lost(0).len(), 1);
    assert_eq!(book.give_up_lost(0).len(), 0);
    assert_eq!(book.list_batches(None)[0]["forgotten"], 1);
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
        match random(6) {
            0 if now % 7 == 0 => _ = logged.push_batch(batch(random(4) as usize + 1), now),
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
