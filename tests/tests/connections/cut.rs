//! A request ends while it waits for an answer. The answer comes all the same, and must be nobody's.

use std::thread;
use std::time::{Duration, Instant};

use surus_tests::http::Request;
use surus_tests::surus::{Mode, Surus};
use surus_tests::waiting::wait_for;

use super::{begin, notes, port, server};

/// What ends the request.
#[derive(Clone, Copy, Debug)]
enum End {
    Deadline,
    Client,
}

/// How long an answer takes; of Redis, in whole seconds.
const SECONDS: &str = "1.2";
const ANSWERED: Duration = Duration::from_millis(2200);
/// How many requests may learn that their connection has ended, one after another, before all is well again.
const BROKEN: usize = 3;

fn check(mode: Mode, client: &str) {
    for end in [End::Client, End::Deadline] {
        check_end(mode, client, end);
    }
}

fn check_end(mode: Mode, client: &str, end: End) {
    let timeout = match end {
        End::Deadline => "700ms",
        End::Client => "0",
    };
    // One process: the same one takes all.
    let processes = match mode {
        Mode::Process => "processes = 1",
        Mode::Classic | Mode::Coroutine | Mode::Snapshot => "",
    };
    let app = format!("request_timeout = \"{timeout}\"\n{processes}");
    let server = server(mode, &app).start();
    let target = format!("/?case=ask&client={client}&port={}", port(client));
    expect_own(&server, &target, "first");
    for round in 0..2 {
        let id = format!("cut{round}");
        let begun = Instant::now();
        let cut = format!("{target}&word=alice{round}&seconds={SECONDS}&id={id}");
        let mut asking = begin(&server, &cut).expect("a connection");
        match end {
            End::Client => {
                wait_for("it has not begun", || {
                    notes(&server, &id).starts_with("begun;")
                });
                thread::sleep(Duration::from_millis(200));
                drop(asking);
            }
            End::Deadline => {
                let response = asking.response("GET").expect("an answer");
                assert!(matches!(response.status, 503 | 504), "{response:?}");
            }
        }
        let cut_off = || notes(&server, &id) == "begun;finally;";
        wait_for(&format!("{client}: it does not end"), cut_off);
        expect_own(&server, &target, &format!("bob{round}"));
        thread::sleep(ANSWERED.saturating_sub(begun.elapsed()));
        expect_own(&server, &target, &format!("carol{round}"));
    }
}

/// Asks until there are answers again, each of them to what was asked.
fn expect_own(server: &Surus, target: &str, word: &str) {
    let mut broken = 0;
    for number in 0..BROKEN + 3 {
        let word = format!("{word}-{number}");
        let response =
            Request::get(&format!("{target}&word={word}&seconds=0")).send(server.address());
        if response.status == 200 {
            assert_eq!(response.text(), word, "{target}: another one's answer");
        } else {
            assert!(matches!(response.status, 500 | 503 | 504), "{response:?}");
            broken += 1;
        }
    }
    assert!(
        broken <= BROKEN,
        "{target}: {broken} failed\n{}",
        server.log()
    );
}

/// A test for each client, in each mode; what requests share by themselves, in the mode where they do.
macro_rules! clients {
    ($($name:ident)*; $($shared:ident)*) => {
        mod classic {
            use super::*;
            $(#[test] fn $name() { check(Mode::Classic, stringify!($name)); })*
        }
        mod coroutine {
            use super::*;
            $(#[test] fn $name() { check(Mode::Coroutine, stringify!($name)); })*
            $(#[test] fn $shared() { check(Mode::Coroutine, stringify!($shared)); })*
        }
        mod process {
            use super::*;
            $(#[test] fn $name() { check(Mode::Process, stringify!($name)); })*
        }
    };
}

clients! {
    pdo_pgsql_emulated pdo_pgsql_prepared pdo_pgsql_transaction pgsql pdo_mysql_emulated pdo_mysql_prepared mysqli redis
    stream;
    pooled_pdo_pgsql_emulated pooled_pdo_pgsql_prepared pooled_pdo_mysql pooled_curl
}
