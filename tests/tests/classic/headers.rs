//! The response's status, headers and buffered body.

use surus_tests::http::{Connection, Request};
use surus_tests::temp::TempDir;

use crate::{reference, same, surus};

/// All of `headers.php`'s cases.
const HEADERS: [&str; 16] = [
    "plain",
    "cookies",
    "code",
    "reason",
    "third",
    "status-line",
    "redirect",
    "redirect-code",
    "remove",
    "remove-all",
    "callback",
    "split",
    "no-content",
    "not-modified",
    "length",
    "late",
];

#[test]
fn set_by_the_script() {
    for case in HEADERS {
        same(Request::get(&format!("/headers.php?case={case}")));
    }
}

#[test]
fn of_a_head_request() {
    for target in [
        "/headers.php?case=plain",
        "/headers.php?case=length",
        "/info.php",
        "/stream.php",
    ] {
        let response = same(Request::new("HEAD", target));
        assert!(response.body.is_empty());
    }
}

#[test]
fn default_content_type() {
    let response = same(Request::get("/ends.php?case=exit"));
    assert_eq!(
        response.header("content-type"),
        Some("text/html; charset=UTF-8")
    );
}

#[test]
fn split_is_refused() {
    let response = same(Request::get("/headers.php?case=split"));
    assert_eq!(response.header("x-injected"), None);
}

#[test]
fn buffers() {
    for case in [
        "callback", "nested", "phases", "discard", "chunk", "level", "rewrite", "throws",
    ] {
        let response = same(Request::get(&format!("/buffers.php?case={case}")));
        assert!(!response.body.is_empty(), "{case}");
    }
}

#[test]
fn large_output() {
    let response = same(Request::get("/buffers.php?case=big"));
    assert_eq!(response.body.len(), 2_000_000);
}

/// The script waits for the client to have the first words.
#[test]
fn flush_streams() {
    for address in [reference(), surus().address()] {
        let folder = TempDir::new("signs");
        let sign = folder.path().join("go");
        let request = Request::get(&format!("/stream.php?until={}", sign.display()));
        let mut connection = Connection::open(address).expect("connect");
        let bytes = request.header("Connection", "close").bytes(address);
        connection.write(&bytes).expect("write");
        let mut seen = String::new();
        let mut read = |text: &str, seen: &mut String| {
            while !seen.contains(text) {
                let more = connection.some().expect("more");
                assert!(!more.is_empty(), "{seen}");
                seen.push_str(&String::from_utf8_lossy(&more));
            }
        };
        read("first\n", &mut seen);
        assert!(!seen.contains("last\n"), "{seen}");
        folder.file("go", "");
        read("last\n", &mut seen);
    }
}
