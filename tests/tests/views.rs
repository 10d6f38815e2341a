//! Pages made by plain PHP and by Twig, whole and piece by piece.
#![forbid(unsafe_code)]

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;
use surus_tests::fixture;
use surus_tests::http::{Connection, Request};
use surus_tests::http2;
use surus_tests::surus::Surus;

fn server() -> Surus {
    Surus::serve(&fixture("views/app.php")).start()
}

const START: &str = "<title>Tea &amp; Co</title><main>Hello, &lt;Ann&gt;! ";

#[test]
fn pages() {
    let server = server();
    let get = |target: &str| Request::get(target).send(server.address());
    for kind in ["php", "twig"] {
        let whole = get(&format!("/{kind}/whole")).expect(200);
        assert_eq!(
            whole.text(),
            format!("{START}at once(included)</main>"),
            "{kind}"
        );
        let pieces = get(&format!("/{kind}/pieces")).expect(200).json();
        assert_eq!(
            pieces,
            json!([
                "<title>Tea &amp; Co</title><main>Hello, x! ",
                "y(included",
                ")</main>"
            ]),
            "{kind}"
        );
        for wrong in ["missing", "broken"] {
            let answer = get(&format!("/{kind}/{wrong}")).expect(500);
            assert_eq!(answer.header("x-around"), Some("yes"));
            assert_eq!(
                answer.header("content-type"),
                Some("application/problem+json")
            );
        }
    }
    assert!(server.log().contains("There is no template \"nothing\""));
    get("/php/two-layouts").expect(500);
    assert_eq!(
        get("/php/own-title").text(),
        "<title>own &amp; title</title><main>text</main>",
        "variables of a layout"
    );
    assert_eq!(
        get("/php/captured").json(),
        json!(["aB", "c"]),
        "a buffer of its own is not flushed"
    );
    assert_eq!(get("/php/without-content").text(), "empty");
}

#[test]
fn pages_are_sent_while_they_are_made() {
    for kind in ["php", "twig"] {
        let server = server();
        let mut connection = Connection::open(server.address()).expect("a connection");
        let request = format!("GET /{kind}/streamed HTTP/1.1\r\nHost: a\r\n\r\n");
        connection.write(request.as_bytes()).expect("a request");
        let mut seen = String::new();
        let until = Instant::now() + Duration::from_secs(30);
        while !seen.contains(START) {
            assert!(Instant::now() < until, "{kind}: {seen:?}");
            seen.push_str(&String::from_utf8_lossy(&connection.some().expect("more")));
        }
        assert!(
            seen.starts_with("HTTP/1.1 203") && seen.contains("x-around: yes"),
            "{seen}"
        );
        assert!(!seen.contains("late"), "{kind}: {seen}");
        fs::write(server.folder().join("go-on"), "").expect("a file");
        while !seen.contains(")</main>") {
            assert!(Instant::now() < until, "{kind}: {seen:?}");
            seen.push_str(&String::from_utf8_lossy(
                &connection.some().expect("the rest"),
            ));
        }
        assert!(seen.contains("late &lt;b&gt;"), "{kind}: {seen}");
    }
}

/// What comes of a response, and with which reset it ends.
fn over_http2(server: &Surus, path: &str) -> (String, http2::Frame) {
    let mut client = http2::Client::open(server.address()).expect("a connection");
    client.get(1, path).expect("a request");
    let mut text = String::new();
    loop {
        let frame = client.frame().expect("a frame");
        match frame.kind {
            http2::DATA => text.push_str(&String::from_utf8_lossy(&frame.payload)),
            http2::RST_STREAM => return (text, frame),
            _ => {}
        }
    }
}

#[test]
fn what_breaks_late_is_cut_off() {
    let server = server();
    for kind in ["php", "twig"] {
        let mut connection = Connection::open(server.address()).expect("a connection");
        let request =
            format!("GET /{kind}/broken-late HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        connection.write(request.as_bytes()).expect("a request");
        let all = connection.rest().expect("all that there is");
        let all = String::from_utf8_lossy(&all);
        assert!(all.contains("early"), "{kind}: {all}");
        assert!(
            !all.contains("0\r\n\r\n") && !all.contains("Internal"),
            "{kind}: it is not all: {all}"
        );
        let (text, end) = over_http2(&server, &format!("/{kind}/broken-late"));
        assert!(text.contains("early"), "{kind}: {text}");
        assert_eq!(end.payload, [0, 0, 0, 2], "INTERNAL_ERROR");
    }
    assert_eq!(
        Request::get("/php/whole").send(server.address()).status,
        200
    );
}
