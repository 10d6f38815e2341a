//! Responses of PHP that are compressed on their way.

use std::io::Read;

use surus_tests::http::{Request, Response};
use surus_tests::surus::{Mode, Surus};

use super::server;

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

#[test]
fn a_stream_stays_a_stream() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        for accepted in ["gzip", "br", "zstd"] {
            let response = ask(&server, "/steps", accepted).expect(200);
            assert_eq!(response.header("content-encoding"), Some(accepted));
            let first = response.body_after.expect("a body");
            assert!(
                first < std::time::Duration::from_millis(300),
                "{accepted}: {first:?}"
            );
            assert_eq!(decoded(&response), b"one;two;three;", "{accepted}");
        }
    }
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
