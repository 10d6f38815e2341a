//! `surus doctor` finds what requests leave to each other.

use std::process::Command;

use surus_tests::fixture;
use surus_tests::surus::binary;

/// Exit code, output, errors.
fn doctor(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(binary())
        .arg("doctor")
        .args(arguments)
        .current_dir(fixture("doctor"))
        .output()
        .expect("the doctor");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn what_is_left_to_other_requests_is_named_with_its_place() {
    let (code, said, errors) = doctor(&["leaky.php"]);
    assert_eq!(code, Some(1), "{said}{errors}");
    let places = [
        (
            "leak: Current::$user (leaky.php:10)",
            "the query of GET /user",
        ),
        (
            "leak: Current::$seen, a key (leaky.php:13)",
            "the User-Agent header of GET /visit",
        ),
        (
            "leak: static $first of remembered() (leaky.php:40)",
            "a header of GET /remembered",
        ),
        (
            "leak: $cookie of a closure (leaky.php:58)",
            "a cookie of GET /cookie",
        ),
    ];
    for (place, what) in places {
        let expected = format!("{place}\n    holds {what} after the request has ended\n");
        assert!(said.contains(&expected), "{place}: {said}");
    }
    for expected in [
        "leaky.php: 6 requests of three clients each\n",
        "2 routes left out: with parameters, or not GET",
        "connection: Journal::$database (leaky.php:26)\n    a PDO is kept here",
        "growth: Journal::$lines (leaky.php:29)\n    grows: array of 2, array of 3\n",
        "change: Current::$count (leaky.php:15)",
        "Not ready for coroutine mode",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn requests_can_be_named() {
    let (code, said, errors) = doctor(&["leaky.php", "GET /users/7", "POST /form"]);
    assert_eq!(code, Some(1), "{said}{errors}");
    for expected in [
        "leak: global $last_user\n    holds the Authorization header of GET /users/7",
        "leak: global $last_form\n    holds the form of POST /form",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let (code, _, errors) = doctor(&["leaky.php", "/users/7"]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("write it as \"GET /path\""), "{errors}");
}

#[test]
fn what_keeps_requests_apart_is_not_blamed() {
    let (code, said, errors) = doctor(&["clean.php"]);
    assert_eq!(code, Some(0), "{said}{errors}");
    assert!(said.contains("Nothing was found"), "{said}");
    assert!(
        said.contains("change: Visits::$count (clean.php:15)"),
        "{said}"
    );
    assert!(!said.contains("leak:"), "{said}");
}

#[test]
fn what_cannot_be_examined_is_told() {
    let (code, said, _) = doctor(&["../classic"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("classic site"), "{said}");
    let (code, _, errors) = doctor(&["missing.php"]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("missing.php"), "{errors}");
}
