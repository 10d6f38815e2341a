//! The response's status, headers and buffered body.

use std::time::Duration;

use surus_tests::http::Request;

use crate::{both, same};

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

#[test]
fn flush_streams() {
    let (expected, got) = both(Request::get("/stream.php"));
    for response in [expected, got] {
        assert_eq!(response.text(), "first\nlast\n");
        let first = response.body_after.expect("a body");
        assert!(
            first < Duration::from_millis(500),
            "the first byte came after {first:?}"
        );
    }
}
