//! The requests of a coroutine application use persistent connections in turn.

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use surus_tests::fixture;
use surus_tests::http::{Connection, Request};
use surus_tests::mariadb::MariaDb;
use surus_tests::postgres::Postgres;
use surus_tests::redis::Redis;
use surus_tests::surus::{Mode, Surus};
use surus_tests::waiting::wait_for;

const DRIVERS: [&str; 5] = ["pdo_pgsql", "pgsql", "pdo_mysql", "mysqli", "redis"];

struct Site {
    server: Surus,
    driver: &'static str,
}

impl Site {
    fn new(driver: &'static str, settings: &str) -> Self {
        let script = Mode::Coroutine.script(&fixture("persistent_pool"));
        let server = Surus::serve(&script)
            .mode(Mode::Coroutine)
            .config(&format!("[app.app]\n{settings}\n"))
            .start();
        Self { server, driver }
    }

    fn request(&self, token: &str, query: &str) -> Request {
        let port = match self.driver {
            "pdo_mysql" | "mysqli" => MariaDb::shared().port(),
            "redis" => Redis::shared().port(),
            _ => Postgres::shared().port(),
        };
        let (driver, user, password) = (self.driver, MariaDb::USER, MariaDb::PASSWORD);
        Request::get(&format!(
            "/?driver={driver}&port={port}&user={user}&password={password}&token={token}&{query}"
        ))
    }

    fn ask(&self, token: &str, query: &str) -> Value {
        self.request(token, query)
            .send(self.server.address())
            .expect(200)
            .json()
    }

    /// The connections that they had.
    fn ask_at_a_time(&self, count: usize, query: &str) -> HashSet<i64> {
        thread::scope(|scope| {
            let asked: Vec<_> = (0..count)
                .map(|i| scope.spawn(move || self.answered(&format!("token{i}"), query)))
                .collect();
            asked.into_iter().map(|one| one.join().unwrap()).collect()
        })
    }

    fn answered(&self, token: &str, query: &str) -> i64 {
        let answer = self.ask(token, query);
        assert_eq!(answer["token"], token, "{}: {answer}", self.driver);
        assert_eq!(answer["pid"], answer["again"], "{}: {answer}", self.driver);
        answer["pid"].as_i64().expect("a number")
    }
}

#[test]
fn there_are_never_more_than_the_setting_says() {
    for driver in DRIVERS {
        let site = Site::new(driver, "");
        let first = site.ask_at_a_time(64, "ms=5");
        assert_eq!(first.len(), 16, "{driver}");
        let later = site.ask_at_a_time(8, "ms=50");
        assert!(
            later.is_subset(&first),
            "{driver}: new ones were opened: {later:?}, {first:?}"
        );
    }
}

#[test]
fn zero_is_no_limit() {
    let site = Site::new("pdo_pgsql", "persistent_connections = 0");
    assert_eq!(site.ask_at_a_time(40, "ms=500").len(), 40);
    // Those of the first forty serve everybody that follows.
    assert_eq!(site.ask_at_a_time(40, "ms=500").len(), 40);
}

#[test]
fn who_comes_first_is_served_first() {
    for driver in DRIVERS {
        let site = Site::new(driver, "persistent_connections = 1");
        let start = Instant::now();
        let times: Vec<Duration> = thread::scope(|scope| {
            let asked: Vec<_> = (0..5)
                .map(|i| {
                    let site = &site;
                    let one = scope.spawn(move || {
                        site.answered(&format!("token{i}"), "ms=150");
                        start.elapsed()
                    });
                    thread::sleep(Duration::from_millis(50));
                    one
                })
                .collect();
            asked.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(times.is_sorted(), "{driver}: {times:?}");
    }
}

#[test]
fn who_waits_too_long_is_told_why() {
    for driver in DRIVERS {
        let settings = "persistent_connections = 1\nqueue_timeout = \"200ms\"";
        let site = Site::new(driver, settings);
        thread::scope(|scope| {
            let first = scope.spawn(|| site.answered("first", "ms=1500"));
            thread::sleep(Duration::from_millis(300));
            let late = site.ask("late", "");
            let message = late["error"].as_str().unwrap_or_default();
            assert!(
                message.contains("became free within 0.2 s: 1 are in use")
                    && message.contains("persistent_connections"),
                "{driver}: {late}"
            );
            first.join().unwrap();
        });
        site.answered("after", "");
    }
}

/// However a request ends, the next ones have its place.
#[test]
fn no_place_is_lost() {
    for driver in DRIVERS {
        let settings = "persistent_connections = 2\nrequest_timeout = \"1500ms\"";
        let site = Site::new(driver, settings);
        let address = site.server.address();
        for round in 0..3 {
            for end in [
                "end=exit",
                "end=throw",
                "end=fatal",
                "ms=5000",
                "begin=1",
                "hold=5000",
            ] {
                let request = site.request("mine", end);
                let _ = request.send(address);
            }
            // Some leave while they wait in line, some while they are served.
            let left: Vec<_> = (0..8)
                .map(|_| {
                    let mut connection = Connection::open(address).unwrap();
                    let request = site.request("left", "ms=150");
                    connection.write(&request.bytes(address)).unwrap();
                    connection
                })
                .collect();
            thread::sleep(Duration::from_millis(100));
            drop(left);
            let start = Instant::now();
            let used = site.ask_at_a_time(4, "ms=100");
            assert!(used.len() <= 2, "{driver} {round}: {used:?}");
            assert!(start.elapsed() < Duration::from_secs(5), "{driver} {round}");
        }
    }
}

#[test]
fn old_and_unused_ones_are_closed() {
    for (setting, wait) in [("max_age", 0), ("max_idle", 1000)] {
        let site = Site::new("pdo_pgsql", &format!("persistent_{setting} = \"1s\""));
        let first = site.answered("first", "");
        let start = Instant::now();
        // One that is used all the time gets old, too.
        while site.answered("again", "") == first {
            assert!(start.elapsed() < Duration::from_secs(20), "{setting}");
            thread::sleep(Duration::from_millis(wait.max(50)));
        }
    }
    let settings = "persistent_max_idle = \"1s\"\npersistent_min_idle = 1";
    let site = Site::new("pdo_pgsql", settings);
    let first = site.answered("first", "");
    thread::sleep(Duration::from_millis(1000));
    assert_eq!(site.answered("again", ""), first);
}

#[test]
fn the_status_has_them_without_passwords() {
    for driver in ["pgsql", "pdo_mysql", "mysqli"] {
        let site = Site::new(driver, "persistent_connections = 3");
        site.ask_at_a_time(5, "ms=20");
        // The last one may have its answer before its connection is given back.
        wait_for("all are given back", || {
            site.server.status()["workers"][0]["pools"][0]["resets"] == 5
        });
        let status = site.server.status();
        let pools = &status["workers"][0]["pools"];
        assert_eq!(pools[0]["max"], 3, "{driver}: {pools}");
        assert_eq!(pools[0]["in_use"], 0, "{driver}: {pools}");
        assert_eq!(pools[0]["idle"], pools[0]["open"], "{driver}: {pools}");
        let address = pools[0]["address"].as_str().unwrap_or_default();
        assert!(address.contains("127.0.0.1"), "{driver}: {pools}");
        assert!(!status.to_string().contains(MariaDb::PASSWORD), "{driver}");
    }
}
