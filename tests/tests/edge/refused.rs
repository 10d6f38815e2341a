//! What is refused before there is a request is in the access log and in the metrics, so that programs that lock clients out
//! see who it was.

use serde_json::Value;

use surus_tests::http::Connection;
use surus_tests::ports;
use surus_tests::surus::{Mode, Surus};
use surus_tests::waiting::wait_for;

use super::{get, server};

const LIMITS: &str = "[server]\nmax_header = '100K'\nheader_timeout = '1s'\naccess_log = ";

/// Sends these bytes and waits for the end.
fn send(server: &Surus, bytes: &[u8]) -> String {
    let mut connection = Connection::open(server.address()).expect("a connection");
    // What is refused early is not read to its end.
    let _ = connection.write(bytes);
    String::from_utf8_lossy(&connection.rest().unwrap_or_default()).into_owned()
}

/// The line of the access log that has this in it.
fn line(server: &mut Surus, part: &str) -> String {
    let mut found = None;
    wait_for(&format!("no line has {part}"), || {
        let output = server.process().stdout();
        let whole = output.rsplit_once('\n').map_or("", |(whole, _)| whole);
        found = whole
            .lines()
            .find(|line| line.contains(part))
            .map(str::to_owned);
        found.is_some()
    });
    found.unwrap_or_default()
}

fn refused(server: &Surus) -> Value {
    server.status()["workers"][0]["refused"].clone()
}

/// What is sent, the status it gets, and the reason.
fn cases() -> Vec<(Vec<u8>, u16, &'static str)> {
    let long = "x".repeat(70_000);
    let large = "x".repeat(120_000);
    let mut http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS, then DATA on stream 0.
    http2.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    http2.extend([0, 0, 1, 0, 0, 0, 0, 0, 0, 7]);
    vec![
        (b"NO SUCH\x01THING\r\n\r\n".to_vec(), 400, "malformed"),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_vec(),
            400,
            "malformed",
        ),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"
                .to_vec(),
            501,
            "not_implemented",
        ),
        (
            b"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n".to_vec(),
            501,
            "not_implemented",
        ),
        (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a client hello\r\n\r\n".to_vec(),
            400,
            "tls",
        ),
        (b"GET /slow HTTP/1.1\r\nHost:".to_vec(), 408, "timeout"),
        (
            format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes(),
            414,
            "target_too_long",
        ),
        (
            format!("GET / HTTP/1.1\r\nHost: a\r\nX: {large}\r\n\r\n").into_bytes(),
            431,
            "head_too_large",
        ),
        (
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n".to_vec(),
            413,
            "body_too_large",
        ),
        (http2, 400, "http2"),
    ]
}

#[test]
fn what_is_refused_is_in_the_log_and_counted() {
    for mode in Mode::ALL {
        let mut server = server(mode, &format!("{LIMITS}'json'\n")).start();
        for (bytes, status, why) in cases() {
            let before = refused(&server)[why].as_u64().unwrap_or(0);
            let answer = send(&server, &bytes);
            if why != "http2" {
                let expected = format!("HTTP/1.1 {status}");
                assert!(answer.starts_with(&expected), "{mode:?} {why}: {answer}");
            }
            let line = line(&mut server, &format!("\"refused\":\"{why}\""));
            let line: Value = serde_json::from_str(&line).expect(&line);
            assert_eq!(line["client"], "127.0.0.1");
            assert_eq!(line["status"], status, "{why}");
            wait_for(&format!("{why} is not counted"), || {
                refused(&server)[why].as_u64() > Some(before)
            });
        }
        // Requests go on, and are not among them.
        get(&server, "/").expect(200);
        let count = refused(&server)
            .as_object()
            .unwrap()
            .values()
            .map(|it| it.as_u64().unwrap())
            .sum::<u64>();
        assert_eq!(count, cases().len() as u64, "{}", refused(&server));
    }
}

/// As a program reads it that has the patterns for nginx.
#[test]
fn what_is_refused_is_a_line_of_the_combined_format() {
    let mut server = server(Mode::Coroutine, &format!("{LIMITS}'combined'\n")).start();
    // A pipelined request, whose log lines a client would like to write itself.
    send(
        &server,
        b"GET /one HTTP/1.1\r\nHost: a\r\n\r\nB\x1b[2JAD \"x\" 200\x00\n127.0.0.1 - - [fake] \"GET /fake HTTP/1.1\" 200 1\r\n\r\n",
    );
    send(
        &server,
        b"\x16\x03\x01\x02\x00\x01\n127.0.0.1 - - fake\r\n\r\n",
    );
    let tls = line(&mut server, "\\x16\\x03\\x01");
    assert!(tls.starts_with("127.0.0.1 - - ["), "{tls}");
    assert!(
        tls.ends_with("] \"\\x16\\x03\\x01\\x02\\x00\\x01\" 400 0 \"-\" \"-\""),
        "{tls}"
    );
    line(&mut server, "\"GET /one HTTP/1.1\" 200 ");
    let output = server.process().stdout();
    let lines = output
        .lines()
        .filter(|line| line.contains("\" 400 0 \"-\" \"-\""));
    assert_eq!(lines.count(), 2, "{output}");
    assert!(
        !output
            .lines()
            .any(|line| line.contains("fake") && line.starts_with("127.0.0.1 - - [fake")),
        "{output}"
    );
    assert!(!output.contains('\x1b') && !output.contains('\0'));
}

#[test]
fn connections_that_there_is_no_room_for_are_in_the_log() {
    let config = "[server]\naccess_log = 'text'\nmax_connections_per_address = 2\n";
    let mut server = server(Mode::Classic, config).start();
    let held: Vec<_> = (0..2)
        .map(|_| {
            let mut connection = Connection::open(server.address()).expect("a connection");
            connection
                .write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                .expect("a request");
            connection.response("GET").expect("an answer").expect(200);
            connection
        })
        .collect();
    assert!(send(&server, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 503"));
    let line = line(&mut server, "refused");
    assert!(
        line.starts_with("127.0.0.1 [")
            && line.ends_with("] \"-\" 503 refused: too_many_of_one_address"),
        "{line}"
    );
    drop(held);
}

#[test]
fn metrics_have_the_reasons() {
    let admin = ports::free();
    let config = format!("[server]\nadmin = '127.0.0.1:{admin}'\n");
    let server = server(Mode::Coroutine, &config).start();
    send(&server, b"NO SUCH THING\r\n\r\n");
    wait_for("it is not counted", || refused(&server)["malformed"] == 1);
    let address = format!("127.0.0.1:{admin}").parse().unwrap();
    let metrics =
        surus_tests::http::Request::get("/metrics").header("Host", &format!("127.0.0.1:{admin}"));
    let text = metrics.send(address).expect(200).text();
    assert!(
        text.contains("surus_refused_total{worker=\"1\",reason=\"malformed\"} 1\n"),
        "{text}"
    );
    assert!(
        text.contains("surus_log_lines_dropped{log=\"access\"} 0\n"),
        "{text}"
    );
}
