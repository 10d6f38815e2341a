//! How scripts end, and what is left of them.

use surus_tests::http::Request;
use surus_tests::parallel::together;

use crate::{same, surus};

#[test]
fn exit_and_shutdown_functions() {
    for case in [
        "shutdown",
        "shutdown-headers",
        "exit",
        "exit-in-shutdown",
        "exit-status",
        "exit-finally",
        "return",
        "exit-buffer",
        "handled",
        "abort-state",
    ] {
        let response = same(Request::get(&format!("/ends.php?case={case}")));
        assert!(!response.body.is_empty(), "{case}");
    }
}

#[test]
fn nothing_is_left_behind() {
    let first = same(Request::get("/state.php"));
    let address = surus().address();
    let (answers, _) = together(20, |_| {
        Request::get("/state.php").send(address).expect(200).text()
    });
    for answer in answers {
        assert_eq!(answer, first.text());
    }
}
