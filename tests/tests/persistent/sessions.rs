//! Whatever a statement has left in its session, the next user of the connection finds nothing of it, whether or not the
//! text of the statement shows what it does.

use serde_json::{json, Value};
use surus_tests::fixture;
use surus_tests::http::{encode, Request};
use surus_tests::mariadb::MariaDb;
use surus_tests::postgres::Postgres;
use surus_tests::surus::{Mode, Surus};

struct Site {
    server: Surus,
    how: &'static str,
    port: u16,
    questions: String,
}

impl Site {
    fn new(how: &'static str, port: u16, questions: &[&str]) -> Self {
        let script = Mode::Coroutine.script(&fixture("sessions"));
        let server = Surus::serve(&script)
            .mode(Mode::Coroutine)
            .config("[app.app]\npersistent_connections = 1\n")
            .start();
        let questions = encode(&json!(questions).to_string());
        Self {
            server,
            how,
            port,
            questions,
        }
    }

    fn ask(&self, path: &str, query: &str) -> Value {
        let (how, port) = (self.how, self.port);
        let request = Request::get(&format!("/{path}?how={how}&port={port}&{query}"));
        let answer = request.send(self.server.address());
        assert_eq!(answer.status, 200, "{how}: {}", self.server.log());
        answer.json()
    }

    fn left(&self) -> Value {
        self.ask("left", &format!("questions={}", self.questions))
    }

    /// Nothing is left of any of these.
    fn hunt(&self, spoilers: &[&str], ways: &[&str]) {
        self.ask("do", "sql=SELECT%201");
        let clean = self.left();
        assert_eq!(self.left(), clean, "{}: what asks leaves nothing", self.how);
        for sql in spoilers {
            for way in ways {
                // What is kept of requests that read must not make a difference.
                self.ask("do", "sql=SELECT%20a%20FROM%20plain&prepares");
                let done = self.ask("do", &format!("sql={}{way}", encode(sql)));
                let works = done.as_array().is_some_and(|all| all[0] == true);
                assert!(works, "{}: {sql}: {done}", self.how);
                assert_eq!(self.left(), clean, "{}: {sql}{way}", self.how);
            }
        }
    }
}

/// Objects whose use changes the session, as no text shows.
const HIDDEN: &str = "
    create role hunter login;
    create table plain (a int); insert into plain values (1);
    create sequence hunt_numbers;
    create table private (tenant text, secret text);
    insert into private values ('one', 'of one'), ('two', 'of two');
    create function hunt(int) returns int volatile language plpgsql as $$ begin
        perform set_config('work_mem', '77MB', false);
        perform set_config('app.tenant', 'two', false);
        perform set_config('search_path', 'pg_catalog', false);
        perform pg_catalog.pg_advisory_lock(4711), pg_catalog.nextval('public.hunt_numbers');
        if not exists (select from pg_class where relname = 'hunt_left') then
            create temp table hunt_left (a int);
        end if;
        if not exists (select from pg_prepared_statements where name = 'hunt_left') then
            execute 'prepare hunt_left as select 1';
        end if;
        execute 'listen hunt';
        return $1;
    end $$;
    create function hunt_forget(int) returns int volatile language plpgsql as $$ begin
        execute 'deallocate all';
        perform pg_advisory_lock(4711);
        return $1;
    end $$;
    create function hunt_add(int, int) returns int volatile language sql as 'select hunt($1 + $2)';
    create view hunt_view as select hunt(a) as a from plain;
    create view hunt_forgetful as select hunt_forget(a) as a from plain;
    create operator ### (leftarg = int, rightarg = int, procedure = hunt_add);
    create function hunt_next(int, int, int) returns int volatile language sql as 'select hunt($2)';
    create aggregate max (int, int) (sfunc = hunt_next, stype = int);
    create type hunt_type as (a int);
    create function hunt_cast(int) returns hunt_type volatile language sql as 'select row(hunt($1))::hunt_type';
    create cast (int as hunt_type) with function hunt_cast(int);
    grant all on all tables in schema public to hunter;
    grant all on all sequences in schema public to hunter;
    grant pg_monitor to hunter;
";

const QUESTIONS_PGSQL: [&str; 9] = [
    "select setting from pg_settings where name in ('work_mem', 'search_path', 'TimeZone', 'default_transaction_read_only')",
    "select nullif(current_setting('app.tenant', true), ''), current_user, session_user",
    "select secret from private where tenant = current_setting('app.tenant', true)",
    "select objid from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
    "select relname from pg_class where relname = 'hunt_left' and pg_table_is_visible(oid)",
    "select name from pg_prepared_statements where name not like 'surus%' and name not like 'pdo%'",
    "select pg_listening_channels()",
    "select name from pg_cursors where is_holdable",
    "select lastval()",
];

const SPOILERS_PGSQL: [&str; 24] = [
    // Nothing to see in these.
    "select a from hunt_view",
    "select a ### 1 from plain",
    "select 1::hunt_type",
    "select cast(1 as hunt_type)",
    "select max(a, a) from plain",
    "select a from hunt_forgetful",
    "select a from plain where a between 0 and (select max(a) from hunt_view)",
    // These can be seen.
    "select set_config('app.tenant', 'two', false)",
    "select pg_advisory_lock(4711)",
    "select nextval('hunt_numbers')",
    "select setval('hunt_numbers', 7) ;; select lastval()",
    "select 1 into temp hunt_left",
    "select hunt(1)",
    "prepare hunt_left as select 1 ;; execute hunt_left",
    "begin ;; declare hunt_left cursor with hold for select 1 ;; commit",
    "listen hunt",
    "set search_path to pg_catalog",
    "set role pg_monitor",
    "set session characteristics as transaction read only",
    "set time zone 'Asia/Tokyo'",
    "create temp table hunt_left (a int)",
    "do $$ begin perform hunt(1); end $$",
    "begin ;; select hunt(1) ;; savepoint a",
    "begin ;; select 1 / 0",
];

#[test]
fn postgresql() {
    let database = Postgres::shared();
    database.execute(HIDDEN);
    for how in ["pdo_pgsql", "pgsql", "pool_pdo_pgsql", "pool_pgsql"] {
        let site = Site::new(how, database.port(), &QUESTIONS_PGSQL);
        site.hunt(&SPOILERS_PGSQL, &["", "&prepares"]);
    }
}

const QUESTIONS_MARIADB: [&str; 6] = [
    "SELECT ROW_COUNT(), LAST_INSERT_ID(), @hunt, IS_FREE_LOCK('hunt'), DATABASE(), CURRENT_ROLE()",
    "SELECT @@sql_mode, @@autocommit, @@character_set_client, @@time_zone, @@tx_isolation, @@tx_read_only, @@in_transaction, @@sql_safe_updates",
    "SELECT ABS(UNIX_TIMESTAMP() - UNIX_TIMESTAMP(SYSDATE())) > 100",
    "SELECT * FROM hunt_left",
    "EXECUTE hunt_left",
    "HANDLER plain READ FIRST",
];

const SPOILERS_MARIADB: [&str; 21] = [
    "SELECT a FROM hunt_view",
    "SELECT hunt(1)",
    "SELECT GET_LOCK('hunt', 0)",
    "SELECT LAST_INSERT_ID(77)",
    "SELECT @hunt := 'mine'",
    "SELECT SQL_CALC_FOUND_ROWS a FROM plain LIMIT 1",
    "SELECT CAST('x' AS INTEGER)",
    "INSERT INTO numbered (a) VALUES (1)",
    "PREPARE hunt_left FROM 'SELECT 1'",
    "CREATE TEMPORARY TABLE hunt_left (a INT)",
    "HANDLER plain OPEN",
    "LOCK TABLES plain WRITE",
    "SET NAMES latin1",
    "SET autocommit = 0 ;; INSERT INTO plain VALUES (2)",
    "SET SESSION TRANSACTION READ ONLY",
    "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "SET timestamp = 1",
    "SET sql_mode = 'ANSI', sql_safe_updates = 1",
    "USE mysql",
    "START TRANSACTION ;; INSERT INTO plain VALUES (3)",
    "SET ROLE hunter",
];

#[test]
fn mariadb() {
    let database = MariaDb::shared();
    for sql in [
        "CREATE DATABASE hunt",
        "CREATE TABLE hunt.plain (a INT); INSERT INTO hunt.plain VALUES (0), (1)",
        "CREATE TABLE hunt.numbered (id INT PRIMARY KEY AUTO_INCREMENT, a INT)",
        "CREATE FUNCTION hunt.hunt(n INT) RETURNS INT BEGIN SET @hunt = 'mine'; DO GET_LOCK('hunt', 0), LAST_INSERT_ID(77); SET sql_safe_updates = 1; RETURN n; END",
        "CREATE VIEW hunt.hunt_view AS SELECT hunt.hunt(a) AS a FROM hunt.plain",
        "CREATE ROLE hunter; GRANT hunter TO surus",
    ] {
        // A function has semicolons of its own.
        database.execute(&match sql.contains("BEGIN") {
            true => format!("DELIMITER //\n{sql} //"),
            false => sql.to_owned(),
        });
    }
    for how in ["pdo_mysql", "mysqli", "pool_pdo_mysql", "pool_mysqli"] {
        let site = Site::new(how, database.port(), &QUESTIONS_MARIADB);
        site.hunt(&SPOILERS_MARIADB, &["", "&prepares"]);
        // Each question that is asked leaves no warnings for the next one.
        let asks = Site::new(how, database.port(), &["SHOW WARNINGS"]);
        asks.hunt(&["SELECT CAST('x' AS INTEGER)"], &["", "&prepares"]);
    }
}
