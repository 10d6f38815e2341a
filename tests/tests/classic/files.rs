//! What is a script, what is a file, and what is neither.

use surus_tests::fixture;
use surus_tests::http::Request;
use surus_tests::reference::Reference;
use surus_tests::surus::Surus;

use crate::{both, MODE};

#[test]
fn static_files() {
    for (target, kind) in [
        ("/asset/style.css", "text/css"),
        ("/asset/notes.txt", "text/plain"),
        ("/asset/mark.svg", "image/svg+xml"),
        ("/asset/with%20space.json", "application/json"),
    ] {
        let (expected, got) = both(Request::get(target));
        let got = got.expect(200);
        assert_eq!(expected.text(), got.text(), "{target}");
        let given = got.header("content-type").unwrap_or_default();
        assert_eq!(given.split(';').next(), Some(kind), "{target}");
        assert_eq!(
            expected.header("last-modified"),
            got.header("last-modified"),
            "{target}"
        );
        let length = got.body.len().to_string();
        assert_eq!(
            got.header("content-length"),
            Some(length.as_str()),
            "{target}"
        );
    }
}

#[test]
fn head_of_a_file() {
    let (expected, got) = both(Request::new("HEAD", "/asset/notes.txt"));
    assert_eq!(
        expected.header("content-length"),
        got.header("content-length")
    );
    assert!(got.expect(200).body.is_empty());
}

#[test]
fn unchanged_file() {
    let (expected, got) = both(Request::get("/asset/notes.txt"));
    let modified = expected.header("last-modified").expect("a date");
    assert_eq!(got.header("last-modified"), Some(modified));
    let (expected, got) =
        both(Request::get("/asset/notes.txt").header("If-Modified-Since", modified));
    assert_eq!((expected.status, got.status), (304, 304));
}

#[test]
fn missing_scripts() {
    // The page itself is the server's own.
    for target in ["/missing.php", "/missing.php/info"] {
        let (expected, got) = both(Request::get(target));
        assert_eq!((expected.status, got.status), (404, 404), "{target}");
    }
}

#[test]
fn folder_without_its_slash() {
    let (expected, got) = both(Request::get("/folder?x=1"));
    assert_eq!((expected.status, got.status), (301, 301));
    let location = got.header("location").expect("a location");
    assert!(location.ends_with("/folder/?x=1"), "{location}");
}

/// Nothing outside of the root is served, and no source text is.
#[test]
fn outside_of_the_root() {
    for target in [
        "/../hooks/operations.php",
        "/asset/../../hooks/operations.php",
        "/%2e%2e/hooks/operations.php",
        "/asset/..%2f..%2fhooks/operations.php",
        "/asset/style.css%00.php",
        "/asset/%00",
    ] {
        let response = Request::get(target).send(crate::surus().address());
        assert!(
            !response.text().contains("declare("),
            "{target}: {}",
            response.text()
        );
        let is_front = response.text().contains("\"server\":");
        assert!(
            is_front || (400..500).contains(&response.status),
            "{target}: {}",
            response.status
        );
    }
}

/// A folder without an `index.php` has no front controller: what is not there is 404.
#[test]
fn without_a_front_controller() {
    let root = fixture("plain");
    let reference = Reference::serve(&root);
    let surus = Surus::serve(&root)
        .argument("--mode")
        .argument(MODE)
        .start();
    for (target, status) in [
        ("/page.php", 200),
        ("/page.php/with/info", 200),
        ("/missing", 404),
        ("/missing/", 404),
        ("/missing.php", 404),
        ("/folder/", 200),
        ("/folder/missing.css", 404),
    ] {
        let expected = Request::get(target).send(reference.address());
        let got = Request::get(target).send(surus.address());
        assert_eq!((expected.status, got.status), (status, status), "{target}");
        if status == 200 {
            assert_eq!(expected.text(), got.text(), "{target}");
        }
    }
}
