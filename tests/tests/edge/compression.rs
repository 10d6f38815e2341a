//! Responses of PHP that are compressed on their way.

use std::io::{self, Read};

use surus_tests::http::{Request, Response};
use surus_tests::surus::{Mode, Surus};

use super::{go_on, sent, server};

fn ask(server: &Surus, target: &str, accepted: &str) -> Response {
    Request::get(target)
        .header("Accept-Encoding", accepted)
        .send(server.address())
}

fn decoded(response: &Response) -> Vec<u8> {
    let mut text = Vec::new();
    let body = response.body.as_slice();
    match response.header("content-encoding") {
        Some("gzip") => flate2::read::GzDecoder::new(body)
            .read_to_end(&mut text)
            .map(drop),
        Some("br") => brotli::BrotliDecompress(&mut &body[..], &mut text),
        Some("zstd") => zstd::stream::copy_decode(body, &mut text),
        other => panic!("{other:?}"),
    }
    .expect("a whole stream");
    text
}

#[test]
fn text_is_compressed_as_the_client_likes_it() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        for (accepted, encoding) in [
            ("gzip, deflate, br, zstd", "zstd"),
            ("gzip, deflate, br", "br"),
            ("gzip", "gzip"),
            ("zstd;q=0.5, gzip", "gzip"),
        ] {
            // At once, and as a stream of many pieces.
            for (target, length) in [
                ("/type?type=text/html&times=2000", 44_000),
                ("/print?kilobytes=1024", 1 << 20),
            ] {
                let response = ask(&server, target, accepted).expect(200);
                assert_eq!(response.header("content-encoding"), Some(encoding));
                assert_eq!(response.header("vary"), Some("accept-encoding"));
                assert!(response.body.len() < length / 10);
                let text = decoded(&response);
                assert_eq!(text.len(), length, "{accepted} {target}");
                let plain = Request::get(target).send(server.address());
                assert_eq!(text, plain.body, "{accepted} {target}");
            }
        }
    }
}

/// What can be read of a stream that has not ended.
fn decoded_so_far(encoding: &str, body: &[u8]) -> String {
    let mut stream: Box<dyn Read + '_> = match encoding {
        "gzip" => Box::new(flate2::read::GzDecoder::new(body)),
        "br" => Box::new(brotli::Decompressor::new(body, 4096)),
        _ => Box::new(zstd::stream::read::Decoder::new(body).expect("a decoder")),
    };
    let mut text = Vec::new();
    let mut byte = [0];
    while let Ok(1) = stream.read(&mut byte) {
        text.push(byte[0]);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// PHP waits for the client to have the first piece.
#[test]
fn a_stream_stays_a_stream() -> io::Result<()> {
    for mode in Mode::ISOLATES {
        for accepted in ["gzip", "br", "zstd"] {
            let server = server(mode, "").start();
            // Not in chunks, but as it is.
            let request =
                format!("GET /steps?held=1 HTTP/1.0\r\nAccept-Encoding: {accepted}\r\n\r\n");
            let mut connection = sent(&server, &request)?;
            let mut seen = Vec::new();
            let head = loop {
                let end = seen.windows(4).position(|four| four == b"\r\n\r\n");
                let head = end.map_or(seen.len(), |end| end + 4);
                if decoded_so_far(accepted, &seen[head..]) == "one;" {
                    break head;
                }
                let more = connection.some()?;
                assert!(!more.is_empty(), "{accepted}: {}", seen.escape_ascii());
                seen.extend(more);
            };
            let said = String::from_utf8_lossy(&seen[..head]).into_owned();
            assert!(
                said.contains(&format!("content-encoding: {accepted}\r\n")),
                "{said}"
            );
            go_on(&server);
            seen.extend(connection.rest()?);
            let whole = decoded_so_far(accepted, &seen[head..]);
            assert_eq!(whole, "one;two;three;", "{accepted}");
        }
    }
    Ok(())
}

#[test]
fn what_is_left_alone() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        for target in [
            "/type?type=image/png&times=2000",
            "/type?type=text/event-stream&times=2000",
            "/type?type=text/html&times=2",
            "/type?type=text/html&times=2000&header=Content-Encoding:+gzip",
            "/type?type=text/html&times=2000&header=Cache-Control:+no-transform",
        ] {
            let response = ask(&server, target, "gzip, br, zstd").expect(200);
            assert!(response.text().starts_with("All work"), "{target}");
        }
        let etag = "/type?type=text/html&times=2000&header=ETag:+%22a%22";
        assert_eq!(ask(&server, etag, "br").header("etag"), Some("W/\"a\""));
        assert_eq!(ask(&server, etag, "identity").header("etag"), Some("\"a\""));
        assert_eq!(
            ask(&server, etag, "br;q=0").header("content-encoding"),
            None
        );
    }
    let server = server(Mode::Coroutine, "[server]\ncompression = false\n").start();
    let response = ask(&server, "/type?type=text/html&times=2000", "gzip");
    assert_eq!(response.header("content-encoding"), None);
}
