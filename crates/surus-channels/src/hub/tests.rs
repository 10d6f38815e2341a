use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    future::{ready, Future},
    pin::pin,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;

use super::*;
use crate::{wire, Fetched, HistoryError, Keep, Member, Reply};

/// Workers of one process: letters lie in boxes until somebody lets them be read.
#[derive(Default)]
struct Server {
    letters: RefCell<Vec<(u64, Bytes)>>,
    kept: RefCell<BTreeMap<(String, u64), Vec<u8>>>,
    newest: RefCell<BTreeMap<String, Position>>,
    appended: Cell<u64>,
    epoch: Cell<u64>,
    boxes: RefCell<BTreeMap<u64, VecDeque<Bytes>>>,
}

struct Side(Rc<Server>, u64);

impl Links for Side {
    fn send(&self, letter: Bytes) {
        self.0.letters.borrow_mut().push((self.1, letter.clone()));
        for (number, letters) in self.0.boxes.borrow_mut().iter_mut() {
            if *number != self.1 {
                letters.push_back(letter.clone());
            }
        }
    }

    fn soon(&self) {}
}

impl History for Side {
    fn append(&self, channel: &str, keep: Keep, content: &[u8]) -> Result<Position, HistoryError> {
        let mut position = self.newest(channel, keep)?;
        position.offset += 1;
        let mut kept = self.0.kept.borrow_mut();
        kept.insert((channel.into(), position.offset), content.to_vec());
        if let Some(old) = position.offset.checked_sub(keep.messages) {
            kept.remove(&(channel.into(), old));
        }
        self.0.newest.borrow_mut().insert(channel.into(), position);
        self.0.appended.set(self.0.appended.get() + 1);
        Ok(position)
    }

    fn newest(&self, channel: &str, _: Keep) -> Result<Position, HistoryError> {
        let epoch = self.0.epoch.get();
        let mut newest = self.0.newest.borrow_mut();
        let begin = || Position { epoch, offset: 0 };
        Ok(*newest.entry(channel.into()).or_insert_with(begin))
    }

    fn read(&self, channel: &str, position: Position) -> Option<Bytes> {
        let newest = self.0.newest.borrow().get(channel).copied()?;
        let kept = self.0.kept.borrow();
        let content = kept.get(&(channel.into(), position.offset))?;
        let content = Bytes::copy_from_slice(content);
        (newest.epoch == position.epoch).then_some(content)
    }

    fn put(
        &self,
        channel: &str,
        _: Keep,
        position: Position,
        content: Option<&[u8]>,
    ) -> Result<(), HistoryError> {
        if let Some(content) = content {
            let key = (channel.into(), position.offset);
            self.0.kept.borrow_mut().insert(key, content.to_vec());
        }
        self.0.newest.borrow_mut().insert(channel.into(), position);
        Ok(())
    }

    fn appended(&self) -> u64 {
        self.0.appended.get()
    }
}

impl Server {
    fn worker(self: &Rc<Self>, number: u64) -> Hub {
        self.boxes.borrow_mut().insert(number, VecDeque::new());
        let mut rules = Rules::default();
        let (messages, ttl) = (5, Duration::from_secs(60));
        rules.add("kept/*", Some(Keep { messages, ttl }));
        let side = || Box::new(Side(Rc::clone(self), number));
        let hub = Hub::new(number, side(), side(), rules);
        hub.hello();
        hub
    }

    fn read(&self, hub: &Hub) {
        loop {
            let next = self
                .boxes
                .borrow_mut()
                .get_mut(&hub.me())
                .and_then(VecDeque::pop_front);
            let Some(letter) = next else { return };
            assert!(hub.receive(&letter).is_some());
        }
    }

    fn drop_letters(&self, hub: &Hub) {
        self.boxes.borrow_mut().insert(hub.me(), VecDeque::new());
    }
}

#[derive(Default)]
struct Client(RefCell<Vec<String>>);

impl Client {
    fn take(&self) -> String {
        self.0.take().join(" ")
    }
}

impl Subscriber for Client {
    fn deliver(&self, publication: &Rc<Publication>) {
        let text = String::from_utf8_lossy(&publication.message.data).into_owned();
        self.0.borrow_mut().push(text);
    }

    fn missed(&self, _: &str) {
        self.0.borrow_mut().push("missed".into());
    }
}

impl Observer for Client {
    fn occupied(&self, channel: &str) {
        self.0.borrow_mut().push(format!("+{channel}"));
    }

    fn vacated(&self, channel: &str) {
        self.0.borrow_mut().push(format!("-{channel}"));
    }

    fn joined(&self, channel: &str, member: &Member) {
        self.0.borrow_mut().push(format!("{}>{channel}", member.id));
    }

    fn left(&self, channel: &str, member: &Member) {
        self.0.borrow_mut().push(format!("{}<{channel}", member.id));
    }
}

fn message(text: &str) -> Message {
    Message {
        data: Bytes::copy_from_slice(text.as_bytes()),
        ..Message::default()
    }
}

fn say(hub: &Hub, channel: &str, text: &str) -> Option<Position> {
    let published = hub.publish(channel, message(text));
    published.expect("it is published")
}

fn join(hub: &Hub, channel: &str, since: Option<Position>) -> (u64, Rc<Client>, Recovery) {
    let (id, client) = (crate::next_id(), Rc::new(Client::default()));
    let recovery = hub
        .subscribe(channel, id, client.clone(), since)
        .expect("it subscribes");
    (id, client, recovery)
}

#[test]
fn who_has_subscribed_gets_it_in_all_workers() {
    let server = Rc::new(Server::default());
    let [one, two] = [1, 2].map(|number| server.worker(number));
    let (id, a, recovery) = join(&one, "a", None);
    assert_eq!(recovery, Recovery::default());
    let (_, b, _) = join(&two, "a", None);
    let (_, other, _) = join(&two, "b", None);
    assert_eq!(say(&one, "a", "1"), None);
    assert_eq!((a.take(), b.take()), ("1".into(), "".into()));
    server.read(&two);
    assert_eq!(b.take(), "1");
    one.unsubscribe("a", id);
    say(&two, "a", "2");
    server.read(&one);
    assert_eq!(
        (a.take(), b.take(), other.take()),
        ("".into(), "2".into(), "".into())
    );
    assert_eq!(one.figures().subscriptions, 0);
    assert_eq!(Rc::strong_count(&a), 1);
}

#[test]
fn bounds() {
    let server = Rc::new(Server::default());
    let hub = server.worker(1);
    let long = "x".repeat(LARGEST_DATA + 1);
    let publish = |channel: &str, data: &str| hub.publish(channel, message(data));
    assert_eq!(publish("", ""), Err(Refused::Name));
    assert_eq!(publish(&"x".repeat(201), ""), Err(Refused::Name));
    assert_eq!(publish("a", &long), Err(Refused::TooLarge));
    assert_eq!(publish(&"x".repeat(200), &long[1..]), Ok(None));
    let info = Bytes::from(long);
    assert_eq!(hub.join("a", 1, "m", &info), Err(Refused::TooLarge));
    assert_eq!(hub.join("a", 1, "", &Bytes::new()), Err(Refused::Name));
    assert_eq!(hub.figures().channels, 0);
}

#[test]
fn a_history_is_got_in_order_and_once_whatever_the_letters_do() {
    let server = Rc::new(Server::default());
    let [one, two, three] = [1, 2, 3].map(|number| server.worker(number));
    let (_, a, recovery) = join(&three, "kept/a", None);
    let start = recovery.position;
    assert_eq!(start.map(|start| start.offset), Some(0));
    say(&one, "kept/a", "1");
    // The second worker has not read that letter.
    say(&two, "kept/a", "2");
    // Letters of different workers come in any order.
    server
        .boxes
        .borrow_mut()
        .get_mut(&3)
        .unwrap()
        .make_contiguous()
        .reverse();
    server.read(&three);
    assert_eq!(a.take(), "1 2");
    // One that publishes itself, before the letter of another one has come.
    say(&one, "kept/a", "3");
    say(&three, "kept/a", "4");
    assert_eq!(a.take(), "3 4");
    server.read(&three);
    assert_eq!(a.take(), "");
    // A letter that never comes.
    say(&one, "kept/a", "5");
    server.drop_letters(&three);
    three.catch_up();
    assert_eq!(a.take(), "5");
    three.catch_up();
    // Somebody comes while a letter is on its way.
    say(&one, "kept/a", "6");
    let (_, b, recovery) = join(&three, "kept/a", start);
    assert!(!recovery.recovered);
    let since = Some(Position {
        offset: 3,
        ..start.unwrap()
    });
    let (_, c, recovery) = join(&three, "kept/a", since);
    assert!(recovery.recovered);
    assert_eq!(
        (a.take(), b.take(), c.take()),
        ("6".into(), "".into(), "4 5 6".into())
    );
    server.read(&three);
    assert_eq!((a.take(), b.take(), c.take()), Default::default());
}

#[test]
fn what_is_not_kept_is_for_those_who_are_there() {
    let server = Rc::new(Server::default());
    let [one, two] = [1, 2].map(|number| server.worker(number));
    let (_, a, _) = join(&two, "kept/a", None);
    say(&one, "kept/a", "1");
    one.publish_unkept("kept/a", message("x")).unwrap();
    say(&one, "kept/a", "2");
    server.read(&two);
    assert_eq!(a.take(), "1 x 2");
    let (newest, kept) = two.history("kept/a", None, 9).unwrap().unwrap();
    assert_eq!((newest.offset, kept.len()), (2, 2));
}

/// It takes one at a time.
struct Narrow(Client);

impl Subscriber for Narrow {
    fn deliver(&self, publication: &Rc<Publication>) {
        self.0.deliver(publication);
    }

    fn is_full(&self) -> bool {
        !self.0 .0.borrow().is_empty()
    }

    fn missed(&self, _: &str) {}
}

#[test]
fn who_is_full_gets_what_it_has_missed_bit_by_bit() {
    let server = Rc::new(Server::default());
    let hub = server.worker(1);
    let mut since = join(&hub, "kept/a", None).2.position;
    for number in 1..=3 {
        say(&hub, "kept/a", &number.to_string());
    }
    let client = Rc::new(Narrow(Client::default()));
    for number in 1..=3 {
        let recovery = hub.subscribe("kept/a", 99, client.clone(), since).unwrap();
        assert_eq!((recovery.recovered, recovery.behind), (true, number < 3));
        since = recovery.position;
        assert_eq!(client.0.take(), number.to_string());
    }
    say(&hub, "kept/a", "4");
    assert_eq!(client.0.take(), "4");
}

#[test]
fn who_has_subscribed_and_goes_on_from_a_position_gets_nothing_twice() {
    let server = Rc::new(Server::default());
    let [one, two] = [1, 2].map(|number| server.worker(number));
    let (id, a, recovery) = join(&two, "kept/a", None);
    // The letter has not come yet.
    say(&one, "kept/a", "1");
    let again = two.subscribe("kept/a", id, a.clone(), recovery.position);
    assert_eq!(again.map(|again| again.recovered), Ok(true));
    assert_eq!(a.take(), "1");
    server.read(&two);
    say(&two, "kept/a", "2");
    assert_eq!(a.take(), "2");
    // One that is behind has not subscribed.
    let start = recovery.position;
    let client = Rc::new(Narrow(Client::default()));
    two.subscribe("kept/a", 99, client.clone(), None).unwrap();
    let behind = two.subscribe("kept/a", 99, client.clone(), start).unwrap();
    assert!(behind.behind);
    say(&two, "kept/a", "3");
    assert_eq!((client.0.take(), a.take()), ("1".into(), "3".into()));
}

#[test]
fn a_position_that_is_not_covered_is_not_recovered() {
    let server = Rc::new(Server::default());
    let hub = server.worker(1);
    let start = join(&hub, "kept/a", None).2.position.unwrap();
    for number in 1..=7 {
        say(&hub, "kept/a", &number.to_string());
    }
    let at = |epoch, offset| {
        let (_, client, recovery) = join(&hub, "kept/a", Some(Position { epoch, offset }));
        assert_eq!(recovery.position.unwrap().offset, 7);
        recovery.recovered.then(|| client.take())
    };
    assert_eq!(at(start.epoch, 1), None);
    assert_eq!(at(start.epoch, 2), Some("3 4 5 6 7".into()));
    assert_eq!(at(start.epoch, 7), Some("".into()));
    assert_eq!(at(start.epoch, 8), None);
    assert_eq!(at(start.epoch + 1, 7), None);
    assert_eq!(at(start.epoch, u64::MAX), None);
    let all = |since, count| {
        let (newest, all) = hub.history("kept/a", since, count).unwrap()?;
        assert_eq!(newest.offset, 7);
        let texts = all
            .iter()
            .map(|one| String::from_utf8_lossy(&one.message.data).into_owned());
        Some(texts.collect::<Vec<_>>().join(" "))
    };
    assert_eq!(all(None, 2), Some("6 7".into()));
    assert_eq!(all(None, u64::MAX), Some("3 4 5 6 7".into()));
    assert_eq!(
        all(Some(Position { offset: 4, ..start }), 2),
        Some("5 6".into())
    );
    assert_eq!(all(Some(start), 9), None);
    assert!(hub.history("a", None, 1).unwrap().is_none());
}

#[test]
fn what_is_lost_is_noticed() {
    let server = Rc::new(Server::default());
    let [one, two] = [1, 2].map(|number| server.worker(number));
    let (_, a, _) = join(&two, "kept/a", None);
    for number in 1..=8 {
        say(&one, "kept/a", &number.to_string());
    }
    server.drop_letters(&two);
    say(&one, "kept/a", "9");
    server.read(&two);
    assert_eq!(a.take(), "missed 5 6 7 8 9");
    // The history is lost, and begins anew: all of the old one was there.
    two.catch_up();
    let forget = |epoch| {
        server.newest.borrow_mut().clear();
        server.kept.borrow_mut().clear();
        server.epoch.set(epoch);
    };
    forget(1);
    say(&one, "kept/a", "x");
    say(&one, "kept/a", "y");
    server.read(&two);
    assert_eq!(a.take(), "x y");
    // The same, but a letter of the old one has not come.
    say(&one, "kept/a", "z");
    server.drop_letters(&two);
    forget(2);
    say(&one, "kept/a", "u");
    server.read(&two);
    assert_eq!(a.take(), "missed u");
    // Somebody who subscribes begins a new one.
    say(&one, "kept/a", "v");
    server.drop_letters(&two);
    forget(3);
    let (_, b, _) = join(&two, "kept/a", None);
    assert_eq!(a.take(), "missed");
    say(&one, "kept/a", "w");
    server.read(&two);
    assert_eq!((a.take(), b.take()), ("w".into(), "w".into()));
}

/// Other servers, which answer this.
struct Others {
    answers: RefCell<VecDeque<Fetched>>,
    asked: RefCell<Vec<Option<Position>>>,
}

impl Nodes for Others {
    fn append(&self, _: &str, _: Keep, _: Bytes) -> Reply<Position> {
        Box::pin(ready(Err::<Position, _>(HistoryError::Unavailable)))
    }

    fn fetch(&self, _: &str, _: Keep, after: Option<Position>) -> Reply<Fetched> {
        self.asked.borrow_mut().push(after);
        let answer = self.answers.borrow_mut().pop_front();
        Box::pin(ready(answer.ok_or(HistoryError::Unavailable)))
    }

    fn send(&self, _: Bytes) {}
}

#[test]
fn what_other_servers_keep_is_fetched_bit_by_bit() {
    let server = Rc::new(Server::default());
    let hub = server.worker(1);
    let (_, a, recovery) = join(&hub, "kept/a", None);
    let start = recovery.position.unwrap();
    let at = |offset| Position { offset, ..start };
    let kept = |text| Bytes::from(wire::to_keep(&message(text)));
    let answers = [
        Fetched {
            newest: at(3),
            kept: vec![kept("1"), kept("2")],
            left: 1,
        },
        Fetched {
            newest: at(4),
            kept: vec![kept("3"), kept("4")],
            left: 0,
        },
    ];
    let others = Rc::new(Others {
        answers: RefCell::new(answers.into()),
        asked: RefCell::default(),
    });
    hub.share(others.clone());
    // Another worker of this server has heard the newest one already.
    let (messages, ttl) = (5, Duration::from_secs(60));
    let side = Side(Rc::clone(&server), 2);
    let put = side.put("kept/a", Keep { messages, ttl }, at(4), Some(&kept("4")));
    assert_eq!(put, Ok(()));
    hub.catch_up();
    assert_eq!(a.take(), "");
    let cx = &mut Context::from_waker(Waker::noop());
    let fetched = pin!(hub.fetch("kept/a")).poll(cx);
    assert_eq!(fetched, Poll::Ready(Ok(())));
    assert_eq!(a.take(), "1 2 3 4");
    assert_eq!(others.asked.take(), [Some(at(0)), Some(at(2))]);
}

#[test]
fn who_has_lost_letters_gets_to_know_who_is_there() {
    let server = Rc::new(Server::default());
    let [one, two] = [1, 2].map(|number| server.worker(number));
    let info = Bytes::from_static(b"{}");
    one.join("a", 1, "ann", &info).unwrap();
    server.read(&two);
    one.leave("a", 1);
    one.join("a", 2, "bob", &info).unwrap();
    join(&one, "b", None);
    one.flush();
    server.drop_letters(&two);
    assert_eq!(two.members("a")[0].id, "ann".into());
    one.introduce_anew(2);
    server.read(&two);
    let members = two.members("a");
    let names: Vec<_> = members.iter().map(|member| &*member.id).collect();
    assert_eq!((names, two.subscribers("b")), (vec!["bob"], 1));
}

#[test]
fn observers_of_all_workers_see_each_change_once() {
    let server = Rc::new(Server::default());
    let [one, two] = [1, 2].map(|number| server.worker(number));
    let [seen, also] = [&one, &two].map(|hub| {
        let client = Rc::new(Client::default());
        hub.observe(client.clone());
        client
    });
    let info = Bytes::from_static(b"{}");
    let (id, ..) = join(&one, "a", None);
    let (other, ..) = join(&one, "a", None);
    one.join("a", id, "ann", &info).unwrap();
    one.join("a", other, "ann", &info).unwrap();
    two.join("a", 1, "ann", &info).unwrap();
    one.flush();
    server.read(&one);
    server.read(&two);
    assert_eq!(seen.take(), "+a ann>a");
    assert_eq!(also.take(), "ann>a +a");
    assert_eq!((two.subscribers("a"), one.subscribers("a")), (2, 2));
    assert_eq!(two.occupied(""), [("a".into(), 2)]);
    // A new worker gets to know what was before it.
    let three = server.worker(3);
    server.read(&one);
    server.read(&two);
    server.read(&three);
    assert_eq!(three.members("a"), two.members("a"));
    assert_eq!(three.subscribers("a"), 2);
    assert_eq!(three.others(), [1, 2].into());
    // The others have seen none of that.
    server.read(&one);
    server.read(&two);
    assert_eq!((seen.take(), also.take()), Default::default());
    // One that is killed.
    two.gone(1);
    assert_eq!(also.take(), "-a");
    two.leave("a", 1);
    assert_eq!(also.take(), "ann<a");
    assert_eq!(two.figures().channels, 0);
    one.leave("a", id);
    one.leave("a", id);
    one.leave("a", other);
    one.unsubscribe("a", id);
    one.unsubscribe("a", other);
    server.read(&one);
    assert_eq!(seen.take(), "-a ann<a");
    assert_eq!(one.figures().channels, 0);
}
