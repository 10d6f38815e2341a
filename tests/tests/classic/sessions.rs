//! PHP's own sessions, in files.

use std::time::Duration;

use surus_tests::browser::Browser;
use surus_tests::http::{encode, Connection, Request};
use surus_tests::parallel::together;
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

use crate::{reference, surus};

/// A folder for sessions, and the target that uses it.
fn store() -> (TempDir, String) {
    let folder = TempDir::new("sessions");
    let target = format!(
        "/session.php?store={}",
        encode(&folder.path().display().to_string())
    );
    (folder, target)
}

#[test]
fn two_users() {
    for address in [reference(), surus().address()] {
        let (_folder, target) = store();
        let (mut anna, mut bert) = (Browser::new(address), Browser::new(address));
        for item in ["1", "2"] {
            anna.get(&format!("{target}&add=anna{item}")).expect(200);
            bert.get(&format!("{target}&add=bert{item}")).expect(200);
        }
        let first = anna.get(&target).expect(200);
        assert_eq!(first.json()["list"], serde_json::json!(["anna1", "anna2"]));
        assert_eq!(
            first.header("cache-control"),
            Some("no-store, no-cache, must-revalidate")
        );
        assert_eq!(
            bert.get(&target).json()["list"],
            serde_json::json!(["bert1", "bert2"])
        );
        assert_ne!(anna.cookie("PHPSESSID"), bert.cookie("PHPSESSID"));
    }
}

#[test]
fn renewed_and_destroyed() {
    for address in [reference(), surus().address()] {
        let (_folder, target) = store();
        let mut user = Browser::new(address);
        user.get(&format!("{target}&add=x")).expect(200);
        let before = user.cookie("PHPSESSID").map(str::to_owned);
        user.get(&format!("{target}&renew=1")).expect(200);
        assert_ne!(before.as_deref(), user.cookie("PHPSESSID"));
        assert_eq!(user.get(&target).json()["list"], serde_json::json!(["x"]));
        user.get(&format!("{target}&end=1")).expect(200);
        assert_eq!(user.get(&target).json()["list"], serde_json::json!([]));
    }
}

/// Requests with one session follow one another (`flock`), also when one thread serves them all.
#[test]
fn one_session_at_once() {
    const REQUESTS: usize = 6;
    for address in [reference(), surus().address()] {
        let (_folder, target) = store();
        let mut user = Browser::new(address);
        user.get(&target).expect(200);
        let (_, took) = together(REQUESTS, |_| {
            user.clone()
                .get(&format!("{target}&count=100000"))
                .expect(200)
        });
        assert_eq!(user.get(&target).json()["count"], REQUESTS);
        assert!(
            took > Duration::from_millis(600),
            "not one after the other: {took:?}"
        );
    }
}

/// Requests that wait for a session's lock keep nobody else waiting.
#[test]
fn locked_session_holds_nobody_up() {
    let address = surus().address();
    let (folder, target) = store();
    let mut user = Browser::new(address);
    user.get(&target).expect(200);
    let cookie = user.cookie("PHPSESSID").expect("a session");
    let sign = folder.path().join("go");
    let target = format!("{target}&until={}", sign.display());
    let request = Request::get(&target).header("Cookie", &format!("PHPSESSID={cookie}"));
    // The first has the lock until there is the sign, the others wait for it.
    let mut all = Vec::new();
    for _ in 0..4 {
        let mut connection = Connection::open(address).expect("connect");
        connection.write(&request.bytes(address)).expect("write");
        all.push(connection);
        wait_for("nobody has the lock", || {
            sign.with_extension("begun").exists()
        });
    }
    for _ in 0..10 {
        Request::get("/pid.php").send(address).expect(200);
    }
    assert!(!all.iter().any(Connection::has_input), "nobody has waited");
    folder.file("go", "");
    for connection in &mut all {
        connection.response("GET").expect("an answer").expect(200);
    }
}
