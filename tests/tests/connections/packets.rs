//! An exchange with MySQL ends after each of its packets, since the client leaves or the server is gone. No process dies of
//! it, and no connection stays open.

use std::fs;
use std::thread;
use std::time::Duration;

use surus_tests::dam::{Dam, Then};
use surus_tests::http::Request;
use surus_tests::mariadb::MariaDb;
use surus_tests::surus::{Mode, Surus};
use surus_tests::waiting::{wait_for, wait_up_to};

use super::{begin, server};

/// More than any of these exchanges has.
const PACKETS: usize = 60;
const CLOSED: Duration = Duration::from_secs(10);
const CLEANED: Duration = Duration::from_millis(150);

fn check(mode: Mode, client: &str) {
    for then in [Then::Wait, Then::Close] {
        check_end(mode, client, then);
    }
}

fn check_end(mode: Mode, client: &str, then: Then) {
    // One process: the same one takes all.
    let app = match mode {
        Mode::Process => "processes = 1",
        Mode::Classic | Mode::Coroutine | Mode::Snapshot => "",
    };
    let server = server(mode, app).start();
    let pid = pid(&server);
    let dam = Dam::start(MariaDb::shared().port(), then);
    let target = format!("/?case=ask&client={client}&port={}&seconds=0", dam.port());
    for packets in 0..PACKETS {
        dam.let_through(packets);
        let held = dam.held();
        let mut asking = begin(&server, &format!("{target}&word=word")).expect("a connection");
        wait_for("it neither waits nor ends", || {
            dam.held() > held || asking.has_input()
        });
        if dam.held() == held || then == Then::Close {
            let response = asking.response("GET").expect("an answer");
            if dam.held() == held {
                assert_eq!(response.expect(200).text(), "word");
                assert!(packets > 5, "{packets} packets are no such exchange");
                return;
            }
            // What makes a persistent one clean comes when the answer is on its way.
            let is_cleaned = client == "pdo_mysql_prepared" && response.status == 200;
            assert!(
                response.status == 500 || (is_cleaned && response.text() == "word"),
                "after {packets} packets: {response:?}"
            );
        }
        drop(asking);
        let problem = || {
            let open = dam.open();
            format!("{client}: {open} connections are open after {packets} packets")
        };
        wait_up_to(CLOSED, || dam.open() == 0, problem);
        assert_eq!(self::pid(&server), pid, "{client}: after {packets} packets");
    }
    panic!("an exchange of {PACKETS} packets and more");
}

/// PDO finds that its persistent connection is dead when it is about to hand it out: so it does again and again.
fn check_replaced(mode: Mode) {
    let app = match mode {
        Mode::Process => "processes = 1",
        Mode::Classic | Mode::Coroutine | Mode::Snapshot => "",
    };
    let server = server(mode, app).start();
    let pid = pid(&server);
    let descriptors = || {
        let folder = fs::read_dir(format!("/proc/{pid}/fd"));
        folder.expect("the process is there").count()
    };
    let dam = Dam::start(MariaDb::shared().port(), Then::Close);
    let target = format!(
        "/?case=ask&client=pdo_mysql_prepared&port={}&seconds=0",
        dam.port()
    );
    let mut before = 0;
    for round in 0..20 {
        let request = Request::get(&format!("{target}&word=word{round}"));
        let response = request.send(server.address()).expect(200);
        assert_eq!(response.text(), format!("word{round}"));
        // It is clean when the server has nothing to say any more.
        thread::sleep(CLEANED);
        dam.break_all();
        if round == 3 {
            before = descriptors();
        }
    }
    let after = descriptors();
    assert!(after <= before + 4, "{before} descriptors, then {after}");
}

#[test]
fn classic_replaces() {
    check_replaced(Mode::Classic);
}

#[test]
fn coroutine_replaces() {
    check_replaced(Mode::Coroutine);
}

#[test]
fn process_replaces() {
    check_replaced(Mode::Process);
}

fn pid(server: &Surus) -> String {
    let response = Request::get("/?case=pid").send(server.address());
    response.expect(200).text()
}

macro_rules! clients {
    ($($name:ident)*) => {
        mod classic {
            use super::*;
            $(#[test] fn $name() { check(Mode::Classic, stringify!($name)); })*
        }
        mod coroutine {
            use super::*;
            $(#[test] fn $name() { check(Mode::Coroutine, stringify!($name)); })*
        }
        mod process {
            use super::*;
            $(#[test] fn $name() { check(Mode::Process, stringify!($name)); })*
        }
    };
}

// The last packets of a persistent connection are the answer to what makes it clean: the server has 2 s for it.
clients! { plain_pdo_mysql plain_pdo_mysql_prepared pdo_mysql_prepared mysqli_statement }
