//! `Surus\Pool`: connections that overlapping requests use in turn, each alone, each clean.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{json, Value};
use surus_tests::fixture;
use surus_tests::http::{Connection, Request};
use surus_tests::mariadb::MariaDb;
use surus_tests::parallel::together;
use surus_tests::postgres::Postgres;
use surus_tests::redis::Redis;
use surus_tests::surus::{Mode, Surus};
use surus_tests::waiting::wait_for;

fn server(mode: Mode) -> Surus {
    MariaDb::shared().create_once("test");
    Surus::serve(&mode.script(&fixture("pool")))
        .mode(mode)
        .env("POSTGRES", &Postgres::shared().port().to_string())
        .env("MARIADB", &MariaDb::shared().port().to_string())
        .env("REDIS", &Redis::shared().port().to_string())
        .env("USER_NAME", MariaDb::USER)
        .env("PASSWORD", MariaDb::PASSWORD)
        .start()
}

fn ask(server: &Surus, query: &str) -> Value {
    let answer = Request::get(&format!("/?{query}")).send(server.address());
    let text = answer.text();
    assert_eq!(answer.status, 200, "{query}: {text}\n{}", server.log());
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{query}: {text}"))
}

fn status(server: &Surus, pool: &str) -> Value {
    ask(server, &format!("step=status&pool={pool}"))
}

/// The size of the pool `eight`.
const SIZE: usize = 8;

#[test]
fn many_requests_use_few_connections() {
    let server = server(Mode::Coroutine);
    let (rows, _) = together(200, |number| {
        ask(&server, &format!("step=use&token=t{number}&seconds=0.01"))
    });
    let mut back_ends = HashSet::new();
    for (number, row) in rows.iter().enumerate() {
        assert_eq!(row["token"], format!("t{number}"));
        back_ends.insert(row["pid"].to_string());
    }
    assert_eq!(back_ends.len(), SIZE, "{back_ends:?}");
    let all = json!({"open": SIZE, "free": SIZE, "waiting": 0});
    assert_eq!(status(&server, "eight"), all);
}

/// One third leaves in the middle: in line, or in its query. Nobody gets their rows, and nothing is lost.
#[test]
fn clients_may_leave() {
    let server = server(Mode::Coroutine);
    for round in 0..5 {
        together(90, |number| {
            let token = format!("{round}-{number}");
            let query = format!("step=use&token={token}&seconds=0.03");
            if number % 3 == 0 {
                let mut client = Connection::open(server.address()).expect("a connection");
                let request = Request::get(&format!("/?{query}"));
                client
                    .write(&request.bytes(server.address()))
                    .expect("send it");
                thread::sleep(Duration::from_millis(number as u64 * 2));
            } else {
                assert_eq!(ask(&server, &query)["token"], token);
            }
        });
    }
    wait_for("all are back", || {
        let status = status(&server, "eight");
        status["open"] == status["free"] && status["waiting"] == 0
    });
    assert!(status(&server, "eight")["open"].as_u64() <= Some(SIZE as u64));
    let (rows, _) = together(50, |number| {
        ask(&server, &format!("step=use&token={number}"))
    });
    for (number, row) in rows.iter().enumerate() {
        assert_eq!(row["token"], number.to_string());
    }
}

/// Who comes first is served first; who waits too long gets a 503 that says why.
#[test]
fn the_line_is_fair_and_has_an_end() {
    let server = server(Mode::Coroutine);
    thread::scope(|scope| {
        let holder = scope.spawn(|| ask(&server, "step=use&pool=one&seconds=2&token=first"));
        wait_for("it is in use", || {
            status(&server, "one") == json!({"open": 1, "free": 0, "waiting": 0})
        });
        let begun = Instant::now();
        let late = Request::get("/?step=use&pool=one").send(server.address());
        assert_eq!(late.status, 503, "{}", late.text());
        assert!(begun.elapsed() >= Duration::from_millis(300));
        assert_eq!(holder.join().expect("an answer")["token"], "first");
    });
    let said = "No connection of the pool became free within 0.3 s: 1 are in use";
    assert!(server.log().contains(said), "{}", server.log());
    // In the order of their arrival.
    thread::scope(|scope| {
        let server = &server;
        let holder = scope.spawn(|| ask(server, "step=use&pool=line&seconds=2&token=x"));
        wait_for("it is in use", || status(server, "line")["open"] == 1);
        let waiting: Vec<_> = (1..=6)
            .map(|number| {
                let request = scope.spawn(|| ask(server, "step=number&pool=line"));
                wait_for("it stands in line", || {
                    status(server, "line")["waiting"] == number
                });
                request
            })
            .collect();
        holder.join().expect("an answer");
        for (number, request) in waiting.into_iter().enumerate() {
            let answer = request.join().expect("an answer");
            assert_eq!(answer["served"], number + 1);
        }
    });
}

/// Nobody has a second turn before everybody has had a first.
#[test]
fn sixteen_share_five() {
    let server = server(Mode::Coroutine);
    for _ in 0..5 {
        let turns = ask(&server, "step=fair&pool=five");
        let turns = turns.as_array().expect("a list");
        assert_eq!(turns.len(), 16 * 3);
        let firsts = turns.iter().take_while(|turn| turn[1] == 1);
        assert_eq!(firsts.count(), 16, "{turns:?}");
        println!("the last one's first turn after {} ms", turns[15][2]);
    }
}

#[test]
fn killed_connections_are_not_handed_out() {
    let server = server(Mode::Coroutine);
    for round in 0..5 {
        together(30, |number| {
            let token = format!("{round}-{number}");
            let row = ask(&server, &format!("step=use&token={token}&seconds=0.01"));
            assert_eq!(row["token"], token);
        });
        ask(&server, "step=kill");
    }
}

#[test]
fn each_user_finds_it_clean() {
    let server = server(Mode::Coroutine);
    let clean = [
        (
            "set",
            json!({"user": "", "gone": true, "name": "set", "transaction": false, "mode": 3}),
        ),
        (
            "pgsql",
            json!({"user": "", "gone": "t", "name": "", "transaction": 0, "notices": 0, "notified": false}),
        ),
        (
            "mysql",
            json!({"user": "", "zone": "+01:00", "db": "test", "charset": "utf8mb4", "transaction": 0, "free": 1, "buffered": true}),
        ),
        (
            "mysqli",
            json!({"user": "", "zone": "SYSTEM", "db": "test", "charset": "utf8mb4", "transaction": "0", "free": "1"}),
        ),
        (
            "sqlite",
            json!({"rows": 0, "transaction": false, "temporary": 0, "files": 2, "keys": 0, "errors": 2, "mode": 4}),
        ),
        (
            "redis",
            json!({"database": 3, "prefix": "", "serializer": 0, "timeout": 60}),
        ),
    ];
    for (pool, clean) in clean {
        let left = ask(&server, &format!("step=leave&pool={pool}"));
        let mut found = ask(&server, &format!("step=find&pool={pool}"));
        let found = found.as_object_mut().expect("an object");
        // The same connection, not another one.
        let id = found.remove("id");
        // SQLite has no way back.
        assert!(id == Some(left["id"].clone()) || pool == "sqlite", "{pool}");
        assert_eq!(Value::Object(found.clone()), clean, "{pool}");
    }
}

/// What the last user has told the server or the library behind the driver's back. True: the connection is kept.
#[test]
fn no_user_is_taken_for_the_last_one() {
    let server = server(Mode::Coroutine);
    let clean = [
        ("redis_commands", true, json!(["", "0", "-1", "default"])),
        // Their passwords are not known: phpredis and mysqli would go on with the last ones.
        ("redis_user", false, json!(["", "0", "-1", "default"])),
        ("mysqli_user", false, json!([false])),
        ("memcached", true, json!([""])),
        ("curl", true, json!(["", []])),
        ("soap", false, json!([[]])),
    ];
    for (pool, is_kept, clean) in clean {
        for round in 0..2 {
            let left = ask(&server, &format!("step=leave-other&pool={pool}"));
            let found = ask(&server, &format!("step=find-other&pool={pool}"));
            assert_eq!(found["found"], clean, "{pool} {round}");
            assert!(!is_kept || left["id"] == found["id"], "{pool} {round}");
        }
    }
}

#[test]
fn uses_may_end_in_any_way() {
    let server = server(Mode::Coroutine);
    for _ in 0..3 {
        let left = Request::get("/?step=exit&pool=two").send(server.address());
        assert_eq!(left.text(), "left");
        // It is closed: where it was is not known.
        wait_for("there is room again", || {
            status(&server, "two")["open"] == 0
        });
    }
    let thrown = ask(&server, "step=throw&pool=two");
    assert_eq!(
        thrown,
        json!({"open": 1, "free": 1, "waiting": 0, "transaction": false})
    );
    assert_eq!(
        ask(&server, "step=nested&pool=two"),
        json!({"differ": true})
    );
    let deep = ask(&server, "step=too-deep&pool=two");
    assert_eq!(
        deep["message"],
        "This request has all 2 connections of the pool itself: use() within use() takes another one"
    );
    let fiber = ask(&server, "step=fiber&pool=two");
    assert_eq!(
        fiber,
        json!({"rows": 1, "open": 2, "free": 2, "waiting": 0})
    );
}

#[test]
fn unused_and_old_connections_are_closed() {
    let server = server(Mode::Coroutine);
    for pool in ["short", "old"] {
        let first = ask(&server, &format!("step=use&pool={pool}"));
        let again = ask(&server, &format!("step=use&pool={pool}"));
        thread::sleep(Duration::from_millis(300));
        let later = ask(&server, &format!("step=use&pool={pool}"));
        assert!(first["pid"] == again["pid"] || pool == "old", "{pool}");
        assert_ne!(again["pid"], later["pid"], "{pool}");
    }
}

#[test]
fn some_are_opened_before_they_are_needed_and_stay() {
    let server = server(Mode::Coroutine);
    assert_eq!(
        status(&server, "warm"),
        json!({"open": 2, "free": 2, "waiting": 0})
    );
    together(4, |number| {
        ask(
            &server,
            &format!("step=use&pool=warm&token={number}&seconds=0.1"),
        );
    });
    thread::sleep(Duration::from_millis(200));
    let used = ask(&server, "step=use&pool=warm");
    let again = ask(&server, "step=use&pool=warm");
    assert_eq!(used["pid"], again["pid"]);
    assert_eq!(status(&server, "warm")["open"], 2);
}

#[test]
fn the_status_has_the_pools() {
    let server = server(Mode::Coroutine);
    for _ in 0..3 {
        ask(&server, "step=use&pool=warm");
    }
    ask(&server, "step=kill");
    ask(&server, "step=use&pool=warm");
    let status = server.status();
    let pools = status["workers"][0]["pools"].as_array().expect("a list");
    let find = |name: &str| pools.iter().find(|pool| pool["address"] == name);
    let warm = find("the warm one").expect("the pool with a name");
    assert_eq!(warm["kind"], "Surus\\Pool");
    assert_eq!((&warm["max"], &warm["waiting"]), (&json!(4), &json!(0)));
    assert!(warm["resets"].as_u64() >= Some(4), "{warm}");
    assert!(warm["dropped"].as_u64() >= Some(1), "{warm}");
    let text = server.command(&["status"]).1;
    assert!(text.contains("Surus\\Pool the warm one: "), "{text}");
}

#[test]
fn a_classic_request_has_a_pool_of_its_own() {
    for mode in [Mode::Classic, Mode::Process] {
        let server = server(mode);
        assert_eq!(ask(&server, "step=use&token=x")["token"], "x");
        assert_eq!(
            ask(&server, "step=nested&pool=two"),
            json!({"differ": true})
        );
        let deep = ask(&server, "step=too-deep&pool=two");
        assert!(deep["message"].is_string(), "{deep}");
    }
}
