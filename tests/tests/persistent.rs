//! A persistent connection is clean for its next user, and one that is dead is not handed out.
#![forbid(unsafe_code)]

#[path = "persistent/many.rs"]
mod many;
#[path = "persistent/options.rs"]
mod options;
#[path = "persistent/pool.rs"]
mod pool;
#[path = "persistent/reads.rs"]
mod reads;
#[path = "persistent/sessions.rs"]
mod sessions;
#[path = "persistent/twice.rs"]
mod twice;
#[path = "persistent/unread.rs"]
mod unread;

use std::thread;
use std::time::Duration;

use serde_json::{json, Value};
use surus_tests::fixture;
use surus_tests::http::{Connection, Request};
use surus_tests::mariadb::MariaDb;
use surus_tests::memcached::Memcached;
use surus_tests::postgres::Postgres;
use surus_tests::redis::Redis;
use surus_tests::repeater::Repeater;
use surus_tests::surus::{Mode, Surus};
use surus_tests::waiting::wait_for;

struct Site {
    server: Surus,
    mode: Mode,
    /// Goes with each request: the server's port and who connects.
    common: String,
}

impl Site {
    fn new(mode: Mode, driver: &str) -> Self {
        let port = match driver {
            "pdo_pgsql" | "pgsql" | "unread" | "many" | "options_pdo_pgsql" | "options_pgsql" => {
                Postgres::shared().port()
            }
            "redis" | "redis_many" | "stream" | "options_redis" => Redis::shared().port(),
            "memcached" => Memcached::shared().port(),
            _ => MariaDb::shared().port(),
        };
        let (user, password) = (MariaDb::USER, MariaDb::PASSWORD);
        let mut options = Surus::serve(&mode.script(&fixture("persistent")))
            .mode(mode)
            .cancel_on_disconnect();
        options = match mode {
            Mode::Classic => options.argument("--set").argument("isolates.max=1"),
            Mode::Process => options.argument("--set").argument("processes=1"),
            Mode::Coroutine | Mode::Snapshot => options,
        };
        let server = options.start();
        let site = server.address().port();
        Self {
            server,
            mode,
            common: format!(
                "driver={driver}&port={port}&user={user}&password={password}&site={site}"
            ),
        }
    }

    fn request(&self, query: &str) -> Request {
        Request::get(&format!("/?{}&{query}", self.common))
    }

    fn ask(&self, query: &str) -> Value {
        let answer = self.request(query).send(self.server.address());
        let text = answer.text();
        assert_eq!(
            answer.status,
            200,
            "{:?} {query}: {text}\n{}",
            self.mode,
            self.server.log()
        );
        serde_json::from_str(&text)
            .unwrap_or_else(|_| panic!("{:?} {query}: {text}\n{}", self.mode, self.server.log()))
    }

    /// Makes a mess, and tells what the next request finds: on the same connection, or on the one that has taken its place.
    fn leave_and_find(&self, leave: &str, same: bool) -> Value {
        for _ in 0..50 {
            let left = self.ask(&format!("step=leave&{leave}"));
            // Whoever comes while it is cleaned gets another one.
            thread::sleep(Duration::from_millis(100));
            let found = self.ask("step=find");
            if (text(&left["pid"]) == text(&found["pid"])) == same {
                return found;
            }
            assert!(same, "{:?}: it was handed out again: {found}", self.mode);
        }
        panic!("{:?}: no connection was handed out again", self.mode);
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Makes a mess, and compares what is left with `clean`; without `same`, on another connection.
fn check(mode: Mode, driver: &str, leave: &str, same: bool, clean: &Value) {
    let site = Site::new(mode, driver);
    if driver.contains("mysql") {
        MariaDb::shared().create_once("test");
    }
    for round in 0..3 {
        let mut found = site.leave_and_find(leave, same);
        let found = found.as_object_mut().expect("an object");
        found.remove("pid");
        let found: serde_json::Map<_, _> = found
            .iter()
            .map(|(name, value)| (name.clone(), json!(text(value))))
            .collect();
        assert_eq!(
            Value::Object(found),
            *clean,
            "{mode:?} {driver} {leave} {round}"
        );
    }
}

fn clean_pdo_pgsql() -> Value {
    json!({
        "emulates": "false", "mode": "4", "user": "", "path": "\"$user\", public", "temporary": "false",
        "prepared": "0", "channels": "0", "locks": "0", "transaction": "false",
    })
}

fn clean_pgsql() -> Value {
    json!({
        "verbose": "false", "user": "", "path": "\"$user\", public", "temporary": "f",
        "prepared": "0", "channels": "0", "locks": "0", "transaction": "f",
    })
}

fn clean_pdo_mysql() -> Value {
    json!({
        "buffered": "true", "temporary": "false", "prepared": "false", "user": "", "length": "1048576", "zone": "+01:00",
        "db": "test", "charset": "utf8mb4", "transaction": "0", "free": "1",
    })
}

fn clean_mysqli() -> Value {
    json!({
        "client": "utf8mb4", "temporary": "false", "prepared": "false", "user": "", "length": "1048576", "zone": "SYSTEM",
        "db": "test", "charset": "utf8mb4", "transaction": "0", "free": "1",
    })
}

fn clean_redis() -> Value {
    json!({"name": "", "secret": "false", "queued": "of alice", "watched": "false"})
}

/// A lock of the last request is gone as soon as that has ended, not when the connection is used again.
fn locks_end(mode: Mode, driver: &str) {
    let site = Site::new(mode, driver);
    if driver.contains("mysql") {
        MariaDb::shared().create_once("test");
    }
    site.ask("step=leave&begin");
    wait_for("the lock is held", || {
        site.ask("step=outside")["free"] == true
    });
}

/// Twelve connections that their server has ended: nobody is given one.
fn killed_are_replaced(mode: Mode, driver: &str) {
    let site = Site::new(mode, driver);
    if driver.contains("mysql") {
        MariaDb::shared().create_once("test");
    }
    // Another server ends them: it has no such connections that this one could be given.
    let killer = Site::new(
        mode,
        if driver == "pgsql" {
            "pdo_pgsql"
        } else {
            driver
        },
    );
    let step = match driver {
        "mysqli" => None,
        _ => Some("step=kill"),
    };
    for round in 0..12 {
        let used = site.ask(&format!("step=use&token=before{round}"));
        assert_eq!(used["token"], format!("before{round}"));
        if let Some(step) = step {
            killer.ask(&format!("{step}&pid={}", text(&used["pid"])));
        }
        let next = site.ask(&format!("step=use&token=after{round}"));
        assert_eq!(next["token"], format!("after{round}"));
    }
}

macro_rules! modes {
    ($($name:ident: |$mode:ident| $check:expr;)*) => {
        mod classic {
            use super::*;
            $(#[test] fn $name() { let $mode = Mode::Classic; $check; })*
        }
        mod coroutine {
            use super::*;
            $(#[test] fn $name() { let $mode = Mode::Coroutine; $check; })*
        }
        mod process {
            use super::*;
            $(#[test] fn $name() { let $mode = Mode::Process; $check; })*
        }
    };
}

modes! {
    pdo_pgsql_is_clean: |mode| check(mode, "pdo_pgsql", "", true, &clean_pdo_pgsql());
    pdo_pgsql_has_no_transaction: |mode| {
        check(mode, "pdo_pgsql", "begin", true, &clean_pdo_pgsql());
        check(mode, "pdo_pgsql", "broken", true, &clean_pdo_pgsql());
    };
    pdo_pgsql_that_cannot_be_cleaned_is_closed: |mode| check(mode, "pdo_pgsql", "slow", false, &clean_pdo_pgsql());
    pdo_pgsql_keeps_no_lock: |mode| locks_end(mode, "pdo_pgsql");
    pdo_pgsql_killed_is_replaced: |mode| killed_are_replaced(mode, "pdo_pgsql");
    pdo_pgsql_has_its_options: |mode| options::check(mode, "options_pdo_pgsql", "");
    pgsql_has_its_options: |mode| options::check(mode, "options_pgsql", "");
    pdo_mysql_has_its_options: |mode| options::check(mode, "options_pdo_mysql", "");
    mysqli_has_its_options: |mode| {
        options::check(mode, "options_mysqli", "");
        options::check(mode, "options_mysqli", "&own=1");
    };
    redis_has_its_options: |mode| options::check(mode, "options_redis", "");
    pgsql_is_clean: |mode| check(mode, "pgsql", "", true, &clean_pgsql());
    pgsql_has_no_transaction: |mode| check(mode, "pgsql", "begin", true, &clean_pgsql());
    pgsql_killed_is_replaced: |mode| killed_are_replaced(mode, "pgsql");
    pgsql_notices_are_of_who_lives: |mode| notices(mode);
    pgsql_cut_off_is_no_crash: |mode| cut_off(mode, "pgsql");
    pgsql_traces_into_no_file_of_the_last_request: |mode| traced(mode);
    pdo_mysql_is_clean: |mode| check(mode, "pdo_mysql", "", true, &clean_pdo_mysql());
    pdo_mysql_has_no_transaction: |mode| check(mode, "pdo_mysql", "begin", true, &clean_pdo_mysql());
    pdo_mysql_keeps_no_lock: |mode| locks_end(mode, "pdo_mysql");
    pdo_mysql_killed_is_replaced: |mode| killed_are_replaced(mode, "pdo_mysql");
    mysqli_is_clean: |mode| check(mode, "mysqli", "", true, &clean_mysqli());
    mysqli_has_no_transaction: |mode| check(mode, "mysqli", "begin", true, &clean_mysqli());
    redis_is_clean: |mode| check(mode, "redis", "", true, &clean_redis());
    redis_has_no_transaction: |mode| check(mode, "redis", "begin", true, &clean_redis());
    redis_killed_is_replaced: |mode| killed_are_replaced(mode, "redis");
    many_of_a_process_are_clean: |mode| many::of_one_process(mode);
    many_of_a_request_are_clean: |mode| many::of_one_request(mode);
    memcached_gives_nobody_the_answer_of_another: |mode| {
        let site = Site::new(mode, "memcached");
        for round in 0..5 {
            site.ask("step=leave");
            assert_eq!(site.ask("step=find"), json!({"fetched": false, "other": false}));
            let token = format!("mine{round}");
            assert_eq!(site.ask(&format!("step=use&token={token}"))["token"], token);
        }
    };
    memcached_cut_off_works_for_the_next: |mode| memcached_cut_off(mode);
    memcached_closed_is_replaced: |mode| memcached_closed(mode);
    a_stream_gives_nobody_a_late_answer: |mode| {
        let site = Site::new(mode, "stream");
        for round in 0..3 {
            assert_eq!(site.ask(&format!("step=use&token=first{round}"))["line"], format!("$6\r\nfirst{round}\r\n"));
            assert_eq!(site.ask("step=question")["written"], 15);
            let line = site.ask(&format!("step=use&token=mine{round}"));
            assert_eq!(line["line"], format!("$5\r\nmine{round}\r\n"));
        }
    };
    a_stream_gives_nobody_the_answer_of_another: |mode| {
        let site = Site::new(mode, "stream");
        for round in 0..5 {
            assert_eq!(site.ask("step=leave")["line"], "+OK\r\n");
            let line = site.ask(&format!("step=use&token=mine{round}"));
            assert_eq!(line["line"], format!("$5\r\nmine{round}\r\n"));
        }
    };
}

/// The request ends in the middle of its query. What the server still says about it finds nobody.
fn cut_off(mode: Mode, driver: &str) {
    let site = Site::new(mode, driver);
    for round in 0..10 {
        let mut client = Connection::open(site.server.address()).expect("a connection");
        let wait = site.request("step=wait&seconds=0.6");
        client
            .write(&wait.bytes(site.server.address()))
            .expect("send it");
        thread::sleep(Duration::from_millis(250));
        drop(client);
        for number in 0..3 {
            let token = format!("{round}-{number}");
            let used = site.ask(&format!("step=use&token={token}"));
            assert_eq!(used["token"], token, "{mode:?}");
            thread::sleep(Duration::from_millis(150));
        }
    }
    assert!(
        !site.server.log().contains("signal"),
        "{}",
        site.server.log()
    );
}

/// Connections are refused to a request that is cut off: that is no fault of the server, which is not left alone.
fn memcached_cut_off(mode: Mode) {
    let site = Site::new(mode, "memcached");
    let slow = format!("driver=memcached&port={}", Repeater::shared().port());
    let address = site.server.address();
    for round in 0..5 {
        let mut client = Connection::open(address).expect("a connection");
        let cut = Request::get(&format!("/?{slow}&step=cut"));
        client.write(&cut.bytes(address)).expect("send it");
        thread::sleep(Duration::from_millis(100));
        drop(client);
        site.server.wait_for_in_flight(0);
        for number in 0..3 {
            let token = format!("mine{round}{number}");
            let used = Request::get(&format!("/?{slow}&step=slow&token={token}")).send(address);
            assert_eq!(used.text(), json!({"token": token}).to_string(), "{mode:?}");
        }
    }
}

/// The server ends the connection while nobody uses it.
fn memcached_closed(mode: Mode) {
    let site = Site::new(mode, "memcached");
    let slow = format!("driver=memcached&port={}", Repeater::shared().port());
    for round in 0..5 {
        for token in ["last", &format!("mine{round}")] {
            let used = Request::get(&format!("/?{slow}&step=slow&token={token}"));
            let used = used.send(site.server.address());
            assert_eq!(used.text(), json!({"token": token}).to_string(), "{mode:?}");
            thread::sleep(Duration::from_millis(100));
        }
    }
}

fn notices(mode: Mode) {
    let site = Site::new(mode, "pgsql");
    let killer = Site::new(mode, "pdo_pgsql");
    for _ in 0..10 {
        let said = site.ask("step=notice");
        assert_eq!(said["notice"], "NOTICE:  of this request ", "{mode:?}");
        // Its farewell is a notice, too.
        killer.ask(&format!("step=kill&pid={}", text(&said["pid"])));
    }
    assert!(
        !site.server.log().contains("signal"),
        "{}",
        site.server.log()
    );
}

fn traced(mode: Mode) {
    let site = Site::new(mode, "pgsql");
    for round in 0..10 {
        site.ask("step=trace");
        let used = site.ask(&format!("step=use&token={round}"));
        assert_eq!(used["token"], round.to_string());
    }
    assert!(
        !site.server.log().contains("signal"),
        "{}",
        site.server.log()
    );
}

/// In a coroutine application objects may outlive the request that has made them. Their connections are theirs: they are
/// neither cleaned under their feet nor given to anybody else.
#[test]
fn what_objects_keep_is_given_to_nobody() {
    let site = Site::new(Mode::Coroutine, "pdo_pgsql");
    let kept = site.ask("step=kept");
    let (others, _) = surus_tests::parallel::together(30, |number| {
        let used = site.ask(&format!("step=use&token=t{number}"));
        assert_eq!(used["token"], format!("t{number}"));
        text(&used["pid"])
    });
    assert!(!others.contains(&text(&kept["pdo"])), "{others:?} {kept}");
    assert!(!others.contains(&text(&kept["pgsql"])), "{others:?} {kept}");
    assert_eq!(site.ask("step=kept"), kept);
}

/// Objects that need each other do not keep a connection from the requests that follow.
#[test]
fn cycles_keep_no_connection() {
    let site = Site::new(Mode::Coroutine, "pdo_pgsql");
    let mut back_ends = std::collections::HashSet::new();
    for _ in 0..30 {
        back_ends.insert(text(&site.ask("step=cycle")["pid"]));
        thread::sleep(Duration::from_millis(5));
    }
    assert!(back_ends.len() < 6, "{back_ends:?}");
}
