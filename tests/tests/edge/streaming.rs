//! Bodies that PHP reads as they come, and what follows a body in either direction.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use surus_tests::fixture;
use surus_tests::http::{Connection, Response};
use surus_tests::http2::{self, Client};
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

fn server(config: &str) -> Surus {
    Surus::serve(&fixture("streaming/app.php"))
        .mode(Mode::Coroutine)
        .config(config)
        .start()
}

const CHUNKED: &str = "Host: a\r\nTransfer-Encoding: chunked\r\n";

fn post(path: &str, headers: &str) -> String {
    format!("POST {path} HTTP/1.1\r\n{headers}\r\n")
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// All that comes back.
fn get(server: &Surus, path: &str, headers: &str) -> io::Result<String> {
    let mut connection = Connection::open(server.address())?;
    let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}\r\n");
    connection.write(head.as_bytes())?;
    let rest = connection.rest()?;
    Ok(String::from_utf8_lossy(&rest).into_owned())
}

fn talk(server: &Surus, bytes: &str) -> io::Result<Response> {
    let mut connection = Connection::open(server.address())?;
    connection.write(bytes.as_bytes())?;
    connection.response("POST")
}

/// The response begins while the request still comes: each piece is there before the next one is sent.
#[test]
fn a_body_is_read_as_it_comes() -> io::Result<()> {
    let server = server("");
    let mut stream = TcpStream::connect(server.address())?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.write_all(post("/echo", CHUNKED).as_bytes())?;
    let mut got = Vec::new();
    for number in 0..5 {
        let piece = format!("piece {number};");
        stream.write_all(chunk(&piece).as_bytes())?;
        while !String::from_utf8_lossy(&got).contains(&piece) {
            let mut block = [0; 4096];
            let count = stream.read(&mut block)?;
            assert!(count > 0, "{}", String::from_utf8_lossy(&got));
            got.extend_from_slice(&block[..count]);
        }
    }
    stream.write_all(b"0\r\n\r\n")?;
    while !got.ends_with(b"0\r\n\r\n") {
        let mut block = [0; 4096];
        let count = stream.read(&mut block)?;
        assert!(count > 0, "{}", String::from_utf8_lossy(&got));
        got.extend_from_slice(&block[..count]);
    }
    Ok(())
}

#[test]
fn it_is_a_stream_like_any_other() -> io::Result<()> {
    let server = server("");
    let text = chunk("one\ntw") + &chunk("o\nthree") + "0\r\n\r\n";
    let answer = talk(&server, &(post("/lines", CHUNKED) + &text))?.expect(200);
    assert_eq!(
        answer.json()["lines"],
        serde_json::json!(["one", "two", "three"])
    );
    // A short one, which is there before PHP begins.
    let short = post("/lines", "Host: a\r\nContent-Length: 3\r\n") + "a\nb";
    let answer = talk(&server, &short)?.expect(200);
    assert_eq!(answer.json()["lines"], serde_json::json!(["a", "b"]));
    let none = talk(&server, &post("/lines", "Host: a\r\n"))?.expect(200);
    assert_eq!(none.json()["lines"], serde_json::json!([]));
    // Also after it was read at once.
    let answer = talk(
        &server,
        &(post("/twice", CHUNKED) + &chunk("text") + "0\r\n\r\n"),
    )?;
    let answer = answer.expect(200).json();
    for name in ["body", "stream", "again"] {
        assert_eq!(answer[name], "text", "{name}");
    }
    Ok(())
}

/// Far more than PHP may have.
#[test]
fn a_long_one_is_not_collected() -> io::Result<()> {
    const MEGABYTES: usize = 100;
    let mut server = server("[app.app]\nmax_body = \"1G\"\nmemory_limit = \"8M\"\n");
    let block = vec![b'x'; 1 << 20];
    let before = server.process().memory();
    let mut connection = Connection::open(server.address())?;
    let length = MEGABYTES << 20;
    let head = post("/copy", &format!("Host: a\r\nContent-Length: {length}\r\n"));
    connection.write(head.as_bytes())?;
    let mut peak = 0;
    for number in 0..MEGABYTES {
        connection.write(&block)?;
        if number % 20 == 0 {
            peak = peak.max(server.process().memory());
        }
    }
    let answer = connection.response("POST")?.expect(200).json();
    assert_eq!(answer["copied"], length);
    // md5 of so many x.
    assert_eq!(answer["md5"], sum(MEGABYTES));
    assert!(answer["peak"].as_u64() < Some(8 << 20), "{answer}");
    assert!(peak.saturating_sub(before) < 16 << 20, "{before} {peak}");
    Ok(())
}

fn sum(megabytes: usize) -> String {
    let script = format!(
        "head -c {} /dev/zero | tr '\\0' x | md5sum",
        megabytes << 20
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .output()
        .expect("md5sum");
    String::from_utf8_lossy(&output.stdout)[..32].to_owned()
}

/// What is not read stays with the client.
#[test]
fn who_reads_slowly_is_sent_to_slowly() -> io::Result<()> {
    const LENGTH: usize = 64 << 20;
    let server = server("[app.app]\nmax_body = \"1G\"\n");
    let mut stream = TcpStream::connect(server.address())?;
    stream.set_nonblocking(true)?;
    let head = post(
        "/slowly",
        &format!("Host: a\r\nContent-Length: {LENGTH}\r\n"),
    );
    let mut bytes = head.as_bytes().to_vec();
    bytes.resize(head.len() + LENGTH, b'x');
    let (mut sent, mut moved) = (0, Instant::now());
    while sent < bytes.len() && moved.elapsed() < Duration::from_secs(1) {
        match stream.write(&bytes[sent..]) {
            Ok(count) => (sent, moved) = (sent + count, Instant::now()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error),
        }
    }
    // The kernel's buffers on both sides, and little else.
    assert!(sent < LENGTH / 2, "{sent}");
    std::fs::write(server.folder().join("go-on"), "")?;
    stream.set_nonblocking(false)?;
    stream.write_all(&bytes[sent..])?;
    let mut answer = Vec::new();
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let expected = format!("{{\"first\":1000,\"rest\":{}}}", LENGTH - 1000);
    while !String::from_utf8_lossy(&answer).contains(&expected) {
        let mut block = [0; 4096];
        let count = stream.read(&mut block)?;
        assert!(count > 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&block[..count]);
    }
    Ok(())
}

/// PHP does not take the beginning for the whole, however it reads.
#[test]
fn a_body_that_breaks_off_is_no_body() -> io::Result<()> {
    let server = server("[app.app]\nmax_body = \"1M\"\n");
    let note = server.folder().join("note");
    for (how, expected) in [
        ("stream", "failed: fread(): The body ends before its end"),
        ("pieces", "thrown: The request's body ends before its end"),
        ("body", "thrown: The request's body ends before its end"),
    ] {
        let half = "x".repeat(700_000);
        // Malformed behind the first chunk; too long with the second one.
        for (rest, status) in [("nonsense\r\n".to_owned(), 400), (chunk(&half), 413)] {
            let _ = std::fs::remove_file(&note);
            let bytes = post(&format!("/note/{how}"), CHUNKED) + &chunk(&half) + &rest;
            talk(&server, &bytes)?.expect(status);
            assert_eq!(std::fs::read_to_string(&note)?, expected, "{how} {status}");
        }
    }
    Ok(())
}

const TRAILERS: &str = "X-Sum: abc\r\nContent-Length: 7\r\nx-sum: d\r\n\r\n";

/// The same of a stream that is reset, whatever the client calls it: its end has not come.
#[test]
fn a_body_whose_stream_is_reset_is_no_body() -> io::Result<()> {
    let note =
        |body: &str| format!("file_put_contents(__DIR__ . '/seen', {body} . ';', FILE_APPEND);");
    for mode in Mode::ISOLATES {
        let folder = TempDir::new("reset");
        let (handler, script) = (
            note("$request->body()"),
            note("file_get_contents('php://input')"),
        );
        let handler = format!("<?php return function ($request) {{ {handler} return 'seen'; }};");
        folder.file("app.php", &handler);
        folder.file("index.php", &format!("<?php {script} echo 'seen';"));
        let server = Surus::serve(&mode.script(folder.path())).mode(mode).start();
        for headers in [&[("content-length", "10")][..], &[]] {
            for (reason, stream) in [(0, 1), (8, 5)] {
                let mut client = Client::open(server.address())?;
                let head = http2::head("POST", "/", headers);
                client.send(http2::HEADERS, http2::END_HEADERS, stream, &head)?;
                client.send(http2::DATA, 0, stream, b"first")?;
                // Answered behind it: it has come.
                client.send(http2::PING, 0, 0, &[7; 8])?;
                while client.next(http2::PING)?.flags & http2::ACK == 0 {}
                client.send(http2::RST_STREAM, 0, stream, &[0, 0, 0, reason])?;
                let head = http2::head("POST", "/", &[]);
                client.send(http2::HEADERS, http2::END_HEADERS, stream + 2, &head)?;
                client.send(http2::DATA, http2::END_STREAM, stream + 2, b"whole")?;
                assert_eq!(client.next(http2::DATA)?.payload, b"seen", "{mode:?}");
            }
        }
        wait_for("PHP has not ended", || {
            server.status()["workers"][0]["in_flight"] == 0
        });
        let seen = fs::read_to_string(folder.path().join("seen"))?;
        assert_eq!(seen, "whole;".repeat(4), "{mode:?}");
    }
    Ok(())
}

#[test]
fn a_request_has_trailers() -> io::Result<()> {
    let server = server("");
    let seen = serde_json::json!({"x-sum": "abc, d", "content-length": "7"});
    for body in ["text".to_owned(), "0123456789abcdef\n".repeat(50_000)] {
        let bytes = post("/lines", CHUNKED) + &chunk(&body) + "0\r\n" + TRAILERS;
        let answer = talk(&server, &bytes)?.expect(200);
        assert_eq!(answer.json()["trailers"], seen, "{} bytes", body.len());
    }
    let app = fixture("streaming/app.php");
    let config = format!(
        "[app.app]\nmode = \"coroutine\"\nscript = \"{}\"\nprocesses = 1\n",
        app.display()
    );
    let processes = Surus::serve(&app).config(&config).start();
    for body in ["text".to_owned(), "0123456789abcdef\n".repeat(50_000)] {
        let bytes = post("/twice", CHUNKED) + &chunk(&body) + "0\r\n" + TRAILERS;
        let answer = talk(&processes, &bytes)?.expect(200);
        assert_eq!(answer.json()["trailers"], seen, "{} bytes", body.len());
    }
    let text = get(&processes, "/text", "TE: trailers\r\n")?;
    assert!(text.ends_with("\r\n0\r\nx-sum: c\r\n\r\n"), "{text}");
    Ok(())
}

#[test]
fn an_http_2_request_has_trailers() -> io::Result<()> {
    let server = server("");
    let mut client = Client::open(server.address())?;
    let head = http2::head("POST", "/lines", &[]);
    client.send(http2::HEADERS, http2::END_HEADERS, 1, &head)?;
    client.send(http2::DATA, 0, 1, b"one\ntwo")?;
    let trailers = http2::field("x-sum", "abc");
    let end = http2::END_HEADERS | http2::END_STREAM;
    client.send(http2::HEADERS, end, 1, &trailers)?;
    let data = client.next(http2::DATA)?;
    let answer: serde_json::Value = serde_json::from_slice(&data.payload)?;
    assert_eq!(answer["lines"], serde_json::json!(["one", "two"]));
    assert_eq!(answer["trailers"], serde_json::json!({"x-sum": "abc"}));
    Ok(())
}

const SUM_OF_ONE: &str = "2473c6f46c00c7e5e2fdbfe6cb924ca7";

#[test]
fn a_response_has_trailers() -> io::Result<()> {
    let server = server("");
    let get = |path: &str, headers: &str| get(&server, path, headers);
    let with = get("/sum", "TE: trailers\r\n")?;
    assert!(with.contains("trailer: X-Sum, x-fixed\r\n"), "{with}");
    assert!(with.contains("x-after: kept\r\n"), "{with}");
    let end = format!("\r\n0\r\nx-sum: {SUM_OF_ONE}\r\nx-fixed: b\r\n\r\n");
    assert!(with.ends_with(&end), "{with}");
    // Who does not ask for them gets none, and the same body.
    let without = get("/sum", "")?;
    assert!(without.ends_with("piece 2 \r\n0\r\n\r\n"), "{without}");
    let text = get("/text", "TE: trailers\r\n")?;
    assert!(
        text.ends_with("\r\n6\r\na text\r\n0\r\nx-sum: c\r\n\r\n"),
        "{text}"
    );
    // What cannot be said in the end breaks the response off.
    let refused = get("/refused", "TE: trailers\r\n")?;
    assert!(!refused.ends_with("0\r\n\r\n"), "{refused}");
    Ok(())
}

/// Nobody takes half a response for a whole one.
#[test]
fn an_error_breaks_a_stream_off() -> io::Result<()> {
    let server = server("");
    let half = get(&server, "/half", "")?;
    // How much of it has left by then is a matter of time.
    assert!(
        !half.ends_with("0\r\n\r\n") && !half.contains("500"),
        "{half}"
    );
    let output = Command::new("curl")
        .args(["-sS", "--http2-prior-knowledge", "--max-time", "30"])
        .arg(format!("http://{}/half", server.address()))
        .output()?;
    assert!(!output.status.success(), "{output:?}");
    Ok(())
}

/// A fatal error before the first item: nothing has been sent, so the status tells.
#[test]
fn a_stream_that_does_not_begin_is_an_error() -> io::Result<()> {
    let server = server("");
    let nothing = get(&server, "/nothing", "")?;
    assert!(nothing.starts_with("HTTP/1.1 500 "), "{nothing}");
    Ok(())
}

/// curl writes them behind the headers; also where the body is compressed on its way.
#[test]
fn an_http_2_response_has_trailers() {
    let server = server("");
    for (times, arguments) in [(1, &[][..]), (1000, &["--compressed"])] {
        let output = Command::new("curl")
            .args(["-sS", "--http2-prior-knowledge", "--max-time", "30"])
            .args(["-D", "/dev/stderr", "-o", "-"])
            .args(arguments)
            .arg(format!("http://{}/sum?times={times}", server.address()))
            .output()
            .expect("curl");
        let (body, head) = (output.stdout, String::from_utf8_lossy(&output.stderr));
        let expected: String = (0..3)
            .map(|i| format!("piece {i} ").repeat(times))
            .collect();
        assert_eq!(String::from_utf8_lossy(&body), expected, "{head}");
        assert_eq!(head.contains("content-encoding: "), times > 1, "{head}");
        assert!(head.trim_end().ends_with("x-fixed: b"), "{head}");
        assert!(times > 1 || head.contains(SUM_OF_ONE), "{head}");
    }
}
