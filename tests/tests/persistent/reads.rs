//! What PDO lets PostgreSQL prepare is kept between requests that only read, and nothing else is. Where texts are trusted, such a
//! request needs no reset; any other one does.

use serde_json::{json, Value};
use surus_tests::fixture;
use surus_tests::http::{encode, Request};
use surus_tests::postgres::Postgres;
use surus_tests::surus::{Mode, Surus};

const WAYS: [&str; 2] = ["persistent", "pool"];

struct Site {
    server: Surus,
    how: &'static str,
}

impl Site {
    fn new(how: &'static str) -> Self {
        Self::with(how, "always")
    }

    fn with(how: &'static str, reset: &str) -> Self {
        let script = Mode::Coroutine.script(&fixture("reads"));
        let server = Surus::serve(&script)
            .mode(Mode::Coroutine)
            .config(&format!(
                "[app.app]\npersistent_connections = 1\npersistent_reset = \"{reset}\"\n"
            ))
            .start();
        Self { server, how }
    }

    fn ask(&self, path: &str, query: &str) -> Value {
        let (port, how) = (Postgres::shared().port(), self.how);
        Request::get(&format!("/{path}?how={how}&port={port}&{query}"))
            .send(self.server.address())
            .expect(200)
            .json()
    }

    fn statements(&self) -> Value {
        self.ask("left", "")["statements"].clone()
    }
}

fn table(name: &str) -> String {
    Postgres::shared().execute(&format!(
        "create table {name} (id int primary key, name text); insert into {name} values (1, 'one'), (2, 'two')"
    ));
    format!("select * from {name} where id = $1")
}

#[test]
fn a_statement_is_prepared_once() {
    for how in WAYS {
        let site = Site::new(how);
        let name = format!("kept_{how}");
        let text = table(&name);
        // The first use of a connection ends with a reset: who has opened it is not known.
        let first = site.ask("left", "")["backend"].clone();
        for id in [1, 2, 1] {
            let said = site.ask("row", &format!("table={name}&id={id}"));
            let word = ["one", "two"][id - 1];
            assert_eq!(said["rows"], json!([{ "id": id, "name": word }]));
            assert_eq!(said["backend"], first, "{how}: the same connection");
            assert_eq!(site.statements(), json!([text]), "{how}");
        }
        assert_eq!(site.ask("two", ""), json!([3, 2]), "{how}");
        assert_eq!(site.ask("two", ""), json!([3, 2]), "{how}");
        let many = site.ask("many", "count=100");
        assert_eq!(many[99], json!({ "n": 100, "t": "100" }));
        assert_eq!(site.ask("many", "count=100"), many);
        let kept = site.statements().as_array().expect("a list").len();
        assert!((1..=64).contains(&kept), "{how}: {kept} statements");
        assert_eq!(site.ask("left", "")["backend"], first, "{how}");
    }
}

#[test]
fn what_changes_the_session_is_undone() {
    for (how, reset) in [
        ("persistent", "always"),
        ("persistent", "changed"),
        ("pool", "changed"),
    ] {
        let site = Site::with(how, reset);
        let name = format!("undone_{how}_{reset}");
        table(&name);
        let before = site.ask("left", "");
        for sql in [
            "set work_mem to '77MB'",
            "select set_config('work_mem', '77MB', false)",
            "select 1; set work_mem to '77MB'",
            "select /* */ set_config/**/('work_mem', '77MB', false)",
            "begin; set work_mem to '77MB'; commit",
            "do $$ begin perform set_config('work_mem', '77MB', false); end $$",
            "select pg_advisory_lock(4711)",
            "select \"pg_advisory_lock\"(4711)",
            "select pg_catalog.pg_advisory_lock(4711)",
            "create temp table left_over (a int)",
            "select 1 into temp left_over",
            "prepare other as select 1",
        ] {
            site.ask("row", &format!("table={name}&id=1"));
            let did = site.ask("do", &format!("sql={}", encode(sql)));
            let left = site.ask("left", "");
            assert_eq!(did["backend"], before["backend"], "{how}: {sql}");
            assert_eq!(left, before, "{how}: {sql}");
        }
    }
}

#[test]
fn a_table_may_change() {
    for how in WAYS {
        let site = Site::new(how);
        let name = format!("changed_{how}");
        table(&name);
        let query = format!("table={name}&id=1");
        site.ask("row", &query);
        site.ask("row", &query);
        Postgres::shared().execute(&format!("alter table {name} add more int default 7"));
        let changed = json!([{ "id": 1, "name": "one", "more": 7 }]);
        for _ in 0..3 {
            assert_eq!(site.ask("row", &query)["rows"], changed, "{how}");
        }
        // In a transaction the statement cannot be repeated: one request fails, as with any client that keeps them.
        site.ask("row", &format!("{query}&transaction"));
        Postgres::shared().execute(&format!("alter table {name} drop more"));
        let (port, address) = (Postgres::shared().port(), site.server.address());
        Request::get(&format!("/row?how={how}&port={port}&{query}&transaction")).send(address);
        let said = site.ask("row", &format!("{query}&transaction"));
        assert_eq!(said["rows"], json!([{ "id": 1, "name": "one" }]), "{how}");
    }
}
