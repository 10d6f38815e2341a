//! What a request leaves half done on a connection to PostgreSQL holds up nobody, and nobody finds it.

use std::time::{Duration, Instant};

use serde_json::json;
use surus_tests::surus::Mode;

use super::Site;

/// What is left may be waited for, but not long.
const PATIENCE: Duration = Duration::from_secs(20);

fn check(mode: Mode, kind: &str, way: &str) {
    let site = Site::new(mode, "unread");
    for (round, cycle) in ["", "&cycle"].into_iter().enumerate() {
        let begun = Instant::now();
        site.ask(&format!("step=leave&kind={kind}&way={way}{cycle}"));
        for number in 0..2 {
            let token = format!("mine{round}{number}");
            let found = site.ask(&format!("step=use&kind={kind}&token={token}"));
            assert_eq!(found["token"], token, "{mode:?} {kind} {way}");
            assert_eq!(found["notify"], json!(false), "{mode:?} {kind} {way}");
            assert!(
                found["error"].is_null() || found["error"] == "",
                "{mode:?} {kind} {way}: {found}"
            );
        }
        let taken = begun.elapsed();
        assert!(taken < PATIENCE, "{mode:?} {kind} {way}: {taken:?}");
    }
    let log = site.server.log();
    assert!(
        !log.contains("signal") && !log.contains("replaced"),
        "{mode:?} {kind} {way}: {log}"
    );
}

const WAYS: &[&str] = &[
    "copy_in",
    "copy_in_again",
    "copy_out",
    "sent",
    "slow",
    "rows",
    "many",
    "large_object",
    "listening",
];
const WAYS_OF_PDO: &[&str] = &["copy_in", "copy_in_again", "large_object", "listening"];

fn check_all(mode: Mode, kind: &str, ways: &[&str]) {
    std::thread::scope(|scope| {
        for way in ways {
            scope.spawn(move || check(mode, kind, way));
        }
    });
}

macro_rules! modes {
    ($($name:ident: $mode:expr;)*) => {
        $(mod $name {
            use super::*;
            #[test] fn pgsql_kept() { check_all($mode, "kept", WAYS); }
            #[test] fn pgsql_own() { check_all($mode, "own", WAYS); }
            #[test] fn pdo_kept() { check_all($mode, "pdo", WAYS_OF_PDO); }
        })*
    };
}

modes! {
    classic: Mode::Classic;
    coroutine: Mode::Coroutine;
    process: Mode::Process;
}
