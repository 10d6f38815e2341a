//! Too many requests, too large ones, for other names, at the wrong time.

use std::fs;

use surus_tests::http::Connection;

use super::*;

#[test]
fn a_rate_limit_holds_for_all_workers_together() {
    let server = Surus::serve(&fixture("middleware/app.php"))
        .workers(3)
        .start();
    let mut allowed = 0;
    for _ in 0..12 {
        let answer = ask(&server, "GET /limited", &[]);
        if answer.status == 200 {
            allowed += 1;
            let left = (3 - allowed).to_string();
            assert_eq!(answer.header("ratelimit-remaining"), Some(left.as_str()));
        } else {
            assert_eq!(answer.status, 429);
            let wait: u32 = answer.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=20).contains(&wait), "{wait}");
        }
    }
    assert_eq!(allowed, 3);
    // What the client says about itself makes no other client of it.
    let forged = ask(&server, "GET /limited", &["X-Forwarded-For: 9.9.9.9"]);
    assert_eq!(forged.status, 429);
    let by_key =
        |key: &str| ask(&server, "GET /limited-by-key", &[&format!("X-Key: {key}")]).status;
    assert_eq!((by_key("a"), by_key("a"), by_key("b")), (200, 429, 200));
    assert_eq!(ask(&server, "GET /limited-by-key", &[]).status, 200);
}

#[test]
fn bodies_and_names() {
    let server = server();
    let post = |size: usize| {
        send(&server, "POST /small", &[], |r| {
            r.body("text/plain", vec![b'x'; size])
        })
        .status
    };
    assert_eq!((post(10), post(11)), (200, 413));
    let mut connection = Connection::open(server.address()).unwrap();
    connection
        .write(b"POST /small HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\naaaaa\r\n0\r\n\r\n")
        .unwrap();
    assert_eq!(connection.response("POST").unwrap().status, 411);
    for (host, status) in [
        ("shop.example", 200),
        ("SHOP.example:8080", 200),
        ("a.shop.example", 200),
        ("evilshop.example", 421),
        ("shop.example.evil.org", 421),
        (".shop.example", 421),
        ("shop.example@evil.org", 400),
        ("evil.org", 421),
    ] {
        assert_eq!(
            ask(&server, "GET /hosts", &[&format!("Host: {host}")]).status,
            status,
            "{host}"
        );
    }
}

#[test]
fn maintenance() {
    let server = server();
    assert_eq!(ask(&server, "GET /closed", &[]).status, 200);
    fs::write(server.folder().join("closed"), "").unwrap();
    let closed = ask(&server, "GET /closed", &[]).expect(503);
    assert_eq!(closed.header("retry-after"), Some("300"));
    assert_eq!(
        ask(&server, "GET /closed?maintenance=guess", &[]).status,
        503
    );
    assert_eq!(
        ask(&server, "GET /closed?maintenance[]=let%20me%20in", &[]).status,
        503
    );
    let opened = ask(&server, "GET /closed?maintenance=let+me+in", &[]).expect(200);
    let pass = cookie(&opened, "maintenance").unwrap();
    assert!(!pass.contains("let"));
    assert_eq!(ask(&server, "GET /closed", &[&pass]).status, 200);
    assert_eq!(
        ask(&server, "GET /closed", &["Cookie: maintenance="]).status,
        503
    );
    fs::remove_file(server.folder().join("closed")).unwrap();
    assert_eq!(ask(&server, "GET /closed", &[]).status, 200);
}
