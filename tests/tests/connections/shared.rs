//! Requests of one application share a connection. One of them gets its own answer, the other one is told.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use surus_tests::http::{Connection, Request};
use surus_tests::surus::{Mode, Surus};
use surus_tests::waiting::wait_for;

use super::{begin, notes, port, server};

/// Begins a request and waits until it is at work.
pub(super) fn start(server: &Surus, target: &str, id: &str) -> Connection {
    let connection = begin(server, &format!("{target}&id={id}")).expect("a connection");
    wait_for("it has not begun", || {
        notes(server, id).starts_with("begun;")
    });
    connection
}

pub(super) fn answer(mut connection: Connection) -> String {
    let response = connection.response("GET").expect("an answer");
    response.expect(200).text()
}

pub(super) fn get(server: &Surus, target: &str) -> String {
    Request::get(target)
        .send(server.address())
        .expect(200)
        .text()
}

/// It names both requests, without what their query strings say, the places of both, and the mend.
pub(super) fn expect_in_use(text: &str, class: &str) {
    assert!(
        text.starts_with(&format!("in use: {class} is in use")),
        "{text}"
    );
    for part in ["GET /orders", "GET /users", ".php:", "scoped", "pool"] {
        assert!(text.contains(part), "no {part:?}: {text}");
    }
    assert!(!text.contains('?') && !text.contains("word="), "{text}");
}

fn check(client: &str, class: &str) {
    let server = server(Mode::Coroutine, "").start();
    let query = format!("case=share&client={client}&port={}", port(client));
    assert_eq!(
        get(&server, &format!("/?{query}&word=first&seconds=0")),
        "first"
    );
    for round in 0..3 {
        let target = format!("/orders?{query}&word=alice{round}&seconds=1");
        let alice = start(&server, &target, &format!("alice{round}"));
        let mut told = 0;
        for number in 0..3 {
            let target = format!("/users?{query}&word=bob{round}{number}&seconds=0");
            let text = get(&server, &target);
            if text != format!("bob{round}{number}") {
                expect_in_use(&text, class);
                told += 1;
            }
        }
        // Where the machine stood still, the first one may have been done.
        assert!(told > 0 || round > 0, "{client}: nobody was told");
        assert_eq!(answer(alice), format!("alice{round}"), "{client}");
        assert_eq!(
            get(&server, &format!("/?{query}&word=carol&seconds=0")),
            "carol"
        );
    }
}

macro_rules! clients {
    ($($name:ident: $class:expr;)*) => {
        $(#[test] fn $name() { check(stringify!($name), $class); })*
    };
}

clients! {
    plain_pdo_pgsql: "PDO";
    plain_pdo_mysql: "PDO";
    mysqli: "mysqli";
    pgsql: "PgSql\\Connection";
    redis: "Redis";
    memcached: "Memcached";
    curl: "CurlHandle";
    plain_stream: "A stream";
}

/// Nobody gets into the transaction of a request that waits for something else.
#[test]
fn a_transaction_is_one_requests() {
    let server = server(Mode::Coroutine, "").start();
    let query = format!("case=keep_transaction&port={}", port("pgsql"));
    let alice = start(&server, &format!("/orders?{query}&word=alice"), "alice");
    let text = get(&server, &format!("/users?{query}&word=bob"));
    expect_in_use(&text, "PDO");
    assert!(text.contains("has begun a transaction"), "{text}");
    fs::write(server.folder().join("alice.go"), "").expect("a sign");
    assert_eq!(answer(alice), "alice");
    assert_eq!(get(&server, &format!("/users?{query}&word=bob")), "bob");
}

/// A transaction that its request has left open is rolled back when that ends.
#[test]
fn a_transaction_ends_with_its_request() {
    let server = server(Mode::Coroutine, "").start();
    let query = format!("case=keep_transaction&port={}", port("pgsql"));
    assert_eq!(
        get(
            &server,
            &format!("/orders?{query}&word=alice&seconds=forget")
        ),
        "alice"
    );
    assert_eq!(get(&server, &format!("/users?{query}&word=bob")), "bob");
    wait_for("the log says nothing", || {
        server.log().contains("left a transaction open on a PDO")
    });
}

const LINES: [(&str, &str); 2] = [("stream", "A stream"), ("socket", "Socket")];

/// Who has written to a line waits for an answer, wherever it is meanwhile. Who has heard it does not.
#[test]
fn a_question_is_one_requests() {
    for (client, class) in LINES {
        let server = server(Mode::Coroutine, "").start();
        let query = format!("case=keep_question&client={client}&port={}", port("line"));
        let ask = |word: &str, how: &str| {
            get(
                &server,
                &format!("/users?{query}&word={word}&seconds={how}"),
            )
        };
        assert_eq!(ask("first", "asked"), "first");
        let alice = format!("/orders?{query}&word=alice&seconds=asked");
        let alice = start(&server, &alice, "alice");
        for how in ["asked", "told"] {
            let text = ask("bob", how);
            expect_in_use(&text, class);
            assert!(text.contains("has begun an exchange"), "{text}");
        }
        fs::write(server.folder().join("alice.go"), "").expect("a sign");
        assert_eq!(answer(alice), "alice", "{client}");
        let carol = format!("/orders?{query}&word=carol&seconds=heard");
        let carol = start(&server, &carol, "carol");
        assert_eq!(ask("bob", "asked"), "bob", "{client}");
        fs::write(server.folder().join("carol.go"), "").expect("a sign");
        assert_eq!(answer(carol), "carol", "{client}");
        assert_eq!(ask("bob", "asked"), "bob", "{client}");
    }
}

/// A request that does not come to its answer leaves it to nobody.
#[test]
fn a_question_of_one_that_has_left_is_nobodys() {
    for (client, _) in LINES {
        let server = server(Mode::Coroutine, "").start();
        let query = format!("case=keep_question&client={client}&port={}", port("line"));
        assert_eq!(
            get(&server, &format!("/?{query}&word=first&seconds=asked")),
            "first"
        );
        drop(start(
            &server,
            &format!("/orders?{query}&word=alice&seconds=asked"),
            "alice",
        ));
        wait_for("it is still there", || {
            let text = get(&server, &format!("/users?{query}&word=bob&seconds=asked"));
            assert!(!text.contains("alice"), "{client}: {text}");
            text.is_empty()
        });
    }
}

/// The same of the first question of all: its answer is nobody's, whether it comes or not.
#[test]
fn a_first_question_of_one_that_has_left_is_nobodys() {
    for (client, class) in LINES {
        let server = server(Mode::Coroutine, "").start();
        let query = format!("case=keep_question&client={client}&port={}", port("line"));
        let alice = format!("/orders?{query}&word=alice&delay=500&seconds=asked");
        drop(start(&server, &alice, "alice"));
        server.wait_for_in_flight(0);
        let text = get(&server, &format!("/users?{query}&word=bob&seconds=asked"));
        let told = format!("in use: {class} is in use by several requests");
        assert!(text.starts_with(&told), "{client}: {text}");
    }
}

/// To a line on which nobody ever answers all may write.
#[test]
fn a_log_is_everybodys() {
    for (client, _) in LINES {
        let log = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = log.local_addr().expect("its address").port();
        let server = server(Mode::Coroutine, "").start();
        let query = format!("case=keep_question&client={client}&port={port}&seconds=told");
        let alice = start(&server, &format!("/orders?{query}&word=alice"), "alice");
        assert_eq!(get(&server, &format!("/users?{query}&word=bob")), "");
        fs::write(server.folder().join("alice.go"), "").expect("a sign");
        assert_eq!(answer(alice), "");
        let (log, _) = log.accept().expect("the application");
        let mut lines = BufReader::new(log)
            .lines()
            .map(|line| line.expect("a line"));
        let both = [lines.next(), lines.next()];
        assert_eq!(both, [Some("0 alice".to_owned()), Some("0 bob".to_owned())]);
    }
}

/// Who writes before the other side has ever said anything is let through. Whose its first answer is nobody knows then: nobody
/// gets it, and no later one is taken for another.
#[test]
fn an_answer_to_several_questions_is_nobodys() {
    for (client, class) in LINES {
        for alice_reads in [true, false] {
            let server = server(Mode::Coroutine, "").start();
            let query = format!("case=keep_question&client={client}&port={}", port("line"));
            let how = if alice_reads { "asked" } else { "told" };
            let alice = format!("/orders?{query}&word=alice&delay=500&seconds={how}");
            let alice = start(&server, &alice, "alice");
            let bob = |how: &str| get(&server, &format!("/users?{query}&word=bob&seconds={how}"));
            assert_eq!(bob("told"), "");
            fs::write(server.folder().join("alice.go"), "").expect("a sign");
            let told = format!("in use: {class} is in use by several requests");
            let text = answer(alice);
            if alice_reads {
                assert!(text.starts_with(&told), "{client}: {text}");
            } else {
                assert_eq!(text, "", "{client}");
                let text = bob("asked");
                assert!(text.starts_with(&told), "{client}: {text}");
            }
            // It is as one that the other side has closed.
            for _ in 0..3 {
                let text = bob("asked");
                let nobodys = text.is_empty() || text.starts_with(&told);
                assert!(nobodys, "{client}: {text}");
            }
            // The peer is known to answer: on another connection nobody gets in between.
            let other = query.replace(client, &format!("{client}_again"));
            let carol = format!("/orders?{other}&word=carol&delay=500&seconds=asked");
            let carol = start(&server, &carol, "carol");
            let text = get(&server, &format!("/users?{other}&word=bob&seconds=told"));
            expect_in_use(&text, class);
            fs::write(server.folder().join("carol.go"), "").expect("a sign");
            assert_eq!(answer(carol), "carol", "{client}");
        }
    }
}

/// A statement that is freed tells its server: not while another request waits there for an answer.
#[test]
fn a_statement_that_is_freed_does_not_disturb() {
    let server = server(Mode::Coroutine, "").start();
    let query = format!("case=keep_statement&port={}", port("pgsql"));
    for round in 0..3 {
        let bob = start(
            &server,
            &format!("/users?{query}&word=bob"),
            &format!("bob{round}"),
        );
        let target = format!("/orders?{query}&word=alice{round}&seconds=1");
        let alice = start(&server, &target, &format!("alice{round}"));
        fs::write(server.folder().join(format!("bob{round}.go")), "").expect("a sign");
        let _ = {
            let mut bob = bob;
            bob.response("GET").expect("an answer")
        };
        assert_eq!(answer(alice), format!("alice{round}"));
        assert_eq!(
            get(&server, &format!("/?{query}&word=carol&id=carol&seconds=0")),
            "carol"
        );
    }
}

/// What lets all through to PostgreSQL, but, where it is armed, no answer to the end of a statement, until it is disarmed.
struct Held {
    port: u16,
    is_armed: Arc<AtomicBool>,
    holds: Arc<AtomicBool>,
}

impl Held {
    fn start(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let [is_armed, holds] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (armed, held) = (is_armed.clone(), holds.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(("127.0.0.1", target)).expect("the server");
                for answers in [false, true] {
                    let streams = (client.try_clone(), server.try_clone());
                    let (client, server) = (streams.0.expect("it"), streams.1.expect("it"));
                    let (mut from, mut to) = if answers {
                        (server, client)
                    } else {
                        (client, server)
                    };
                    let (armed, held) = (armed.clone(), held.clone());
                    thread::spawn(move || {
                        let mut bytes = [0; 4096];
                        while let Ok(length @ 1..) = from.read(&mut bytes) {
                            let text = &bytes[..length];
                            let frees = text.windows(10).any(|part| part == b"DEALLOCATE");
                            if !answers && frees && armed.load(SeqCst) {
                                held.store(true, SeqCst);
                            }
                            while answers && held.load(SeqCst) {
                                thread::sleep(Duration::from_millis(5));
                            }
                            if to.write_all(text).is_err() {
                                break;
                            }
                        }
                    });
                }
            }
        });
        Self {
            port,
            is_armed,
            holds,
        }
    }

    fn disarm(&self) {
        self.is_armed.store(false, SeqCst);
        self.holds.store(false, SeqCst);
    }
}

/// A statement that had to wait for its end is freed when the connection is nobody's. No function is called then, and the
/// connection is in use all the same.
#[test]
fn a_statement_that_is_being_freed_is_not_disturbed() {
    let server = server(Mode::Coroutine, "").start();
    let held = Held::start(port("pgsql"));
    let query = format!("case=keep_statement&port={}", held.port);
    let carol = || {
        let target = format!("/orders?{query}&word=carol&id=carol&seconds=0");
        Request::get(&target).send(server.address())
    };
    for round in 0..3 {
        let id = format!("bob{round}");
        let mut bob = start(&server, &format!("/users?{query}&word=bob"), &id);
        held.is_armed.store(true, SeqCst);
        let target = format!("/orders?{query}&word=alice{round}&seconds=0.5");
        let alice = start(&server, &target, &format!("alice{round}"));
        fs::write(server.folder().join(format!("{id}.go")), "").expect("a sign");
        bob.response("GET").expect("an answer").expect(500);
        wait_for("it is not freed", || held.holds.load(SeqCst));
        carol().expect(500);
        let log = server.log();
        let told = "is in use by another request: GET /orders has begun the end of a statement";
        assert!(log.contains(told), "{log}");
        held.disarm();
        assert_eq!(answer(alice), format!("alice{round}"));
        wait_for("it stays in use", || carol().status == 200);
        assert_eq!(carol().expect(200).text(), "carol");
    }
}
