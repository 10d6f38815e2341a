//! Sessions in each store.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

use surus_tests::redis::Redis;

use super::*;

fn walk(server: &Surus, store: &str) {
    let get = |path: &str, headers: &[&str]| {
        ask(server, &format!("GET /session/{store}/{path}"), headers)
    };
    let nobody = get("get", &[]);
    assert_eq!(
        (nobody.text().as_str(), nobody.header("set-cookie")),
        ("[]", None),
        "nothing is kept of a visitor"
    );
    let set = get("set/a/1", &[]).expect(200);
    let raw = set.header("set-cookie").unwrap();
    assert!(raw.ends_with("; Path=/; HttpOnly; SameSite=Lax"), "{raw}");
    let session = cookie(&set, "session").unwrap();
    assert_eq!(get("get", &[&session]).text(), r#"{"a":"1"}"#);

    // An id that the server has not made is no session, and does not become one.
    for planted in [
        "planted",
        "../../etc/passwd",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "%00",
        "",
    ] {
        let planted = format!("Cookie: session={planted}");
        assert_eq!(get("get", &[&planted]).text(), "[]", "{planted}");
        let taken = cookie(&get("set/b/2", &[&planted]), "session").unwrap();
        assert_ne!(taken, planted);
    }

    let flashed = get("flash", &[&session]);
    let session = cookie(&flashed, "session").unwrap_or(session);
    let once = get("get", &[&session]);
    assert_eq!(once.text(), r#"{"a":"1","note":"once"}"#);
    let session = cookie(&once, "session").unwrap_or(session);
    assert_eq!(
        get("get", &[&session]).text(),
        r#"{"a":"1"}"#,
        "{store}: a flash is seen once"
    );

    let new = cookie(&get("regenerate", &[&session]), "session").unwrap();
    assert_ne!(new, session);
    assert_eq!(get("get", &[&new]).text(), r#"{"a":"1"}"#);
    if store != "cookie" {
        assert_eq!(
            get("get", &[&session]).text(),
            "[]",
            "the old id is worth nothing"
        );
    }
    let gone = get("destroy", &[&new]);
    assert!(gone.header("set-cookie").unwrap().contains("Max-Age=0"));
    if store != "cookie" {
        assert_eq!(get("get", &[&new]).text(), "[]");
        let brief = |path: &str, headers: &[&str]| {
            ask(
                server,
                &format!("GET /session/{store}-brief/{path}"),
                headers,
            )
        };
        let idle = cookie(&brief("set/a/1", &[]), "session").unwrap();
        thread::sleep(Duration::from_millis(3200));
        assert_eq!(
            brief("get", &[&idle]).text(),
            "[]",
            "{store}: it was not used for two seconds"
        );
    }
}

#[test]
fn in_files() {
    let server = server();
    walk(&server, "files");
    let folder = server.folder().join("sessions");
    assert_eq!(
        fs::metadata(&folder).unwrap().permissions().mode() & 0o777,
        0o700
    );
    let session = cookie(&ask(&server, "GET /session/files/set/a/1", &[]), "session").unwrap();
    let id = session.trim_start_matches("Cookie: session=");
    for file in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap()) {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(
            !file.file_name().to_string_lossy().contains(id),
            "who sees the folder is nobody yet"
        );
    }
}

#[test]
fn in_cookies() {
    let server = server();
    walk(&server, "cookie");
    let session = cookie(
        &ask(&server, "GET /session/cookie/set/secret/word", &[]),
        "session",
    )
    .unwrap();
    assert!(!session.contains("word"));
    let mut changed = session.clone();
    let last = if changed.pop() == Some('A') { 'B' } else { 'A' };
    changed.insert(30, last);
    assert_eq!(
        ask(&server, "GET /session/cookie/get", &[&changed]).text(),
        "[]"
    );
    assert_eq!(
        ask(&server, "GET /session/cookie/large", &[]).status,
        500,
        "no browser would keep it"
    );
}

#[test]
fn in_redis() {
    let redis = Redis::shared();
    let server = Surus::serve(&fixture("middleware/app.php"))
        .env("REDIS_PORT", &redis.port().to_string())
        .start();
    walk(&server, "redis");
}

/// A request that was slow does not bring back what another one has ended meanwhile.
#[test]
fn what_was_ended_stays_ended() {
    let redis = Redis::shared();
    let server = Surus::serve(&fixture("middleware/app.php"))
        .env("REDIS_PORT", &redis.port().to_string())
        .start();
    for store in ["files", "redis", "cache"] {
        for slow in ["set", "regenerate"] {
            for end in ["destroy", "regenerate"] {
                let get = |path: &str, session: &str| {
                    ask(&server, &format!("GET /session/{store}/{path}"), &[session])
                };
                let set = get("set/user/ann", "Cookie: a=b").expect(200);
                let session = cookie(&set, "session").unwrap();
                let mut late = None;
                thread::scope(|scope| {
                    let waits = scope.spawn(|| get(&format!("slow/{slow}"), &session));
                    thread::sleep(Duration::from_millis(150));
                    get(end, &session).expect(200);
                    assert_eq!(get("get", &session).text(), "[]", "{store}: {end}");
                    late = Some(waits.join().unwrap().expect(200));
                });
                let case = format!("{store}: {slow} after {end}");
                assert_eq!(get("get", &session).text(), "[]", "{case}");
                // Nor by another id.
                assert_eq!(cookie(&late.unwrap(), "session"), None, "{case}");
            }
        }
    }
}
