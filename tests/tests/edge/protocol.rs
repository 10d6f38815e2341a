//! HTTP as it is spoken by clients that mean well, and by those that do not.

use std::io;
use std::thread;
use std::time::Duration;

use surus_tests::http::{Connection, Request};
use surus_tests::surus::{Mode, Surus};

use super::{get, go_on, sent, server};

/// What comes back for these bytes until the server closes the connection.
fn raw(server: &Surus, bytes: &str) -> String {
    let mut connection = sent(server, bytes).expect("a connection");
    let rest = connection.rest().expect("an answer and an end");
    String::from_utf8_lossy(&rest).into_owned()
}

#[test]
fn early_hints() -> io::Result<()> {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        let mut connection = sent(&server, "GET /hints?held=1 HTTP/1.1\r\nHost: a\r\n\r\n")?;
        let (status, headers) = connection.interim_head()?;
        assert_eq!(status, 103);
        let link = (
            "link".to_owned(),
            "</style.css>; rel=preload; as=style".to_owned(),
        );
        assert!(headers.contains(&link), "{headers:?}");
        // Before PHP has ended.
        go_on(&server);
        let page = connection.response("GET")?.expect(200);
        assert_eq!(page.text(), "page");
        assert_eq!(page.header("x-sent"), Some("1"));
        assert_eq!(
            page.header("link"),
            Some("</style.css>; rel=preload; as=style")
        );
        // HTTP/1.0 knows no interim responses.
        let old = raw(&server, "GET /hints HTTP/1.0\r\n\r\n");
        assert!(old.starts_with("HTTP/1.0 200 OK\r\n"), "{old}");
        assert!(old.contains("x-sent: 3\r\n"), "{old}");
    }
    Ok(())
}

#[test]
fn responses_without_a_body_have_none() -> io::Result<()> {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        let mut connection = Connection::open(server.address())?;
        for (method, target, status) in [
            ("GET", "/status?code=204", 204),
            ("GET", "/status?code=204&text=not+this", 204),
            ("GET", "/status?code=304&text=not+this", 304),
            ("GET", "/status?code=205", 205),
            ("GET", "/status?code=205&text=not+this", 205),
            ("GET", "/status?code=205&text=not+this&flush=1", 205),
            ("HEAD", "/print?kilobytes=1024", 200),
            ("HEAD", "/", 200),
            ("GET", "/", 200),
        ] {
            // One connection: a byte too many would be taken for the next response.
            let request = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            connection.write(request.as_bytes())?;
            let response = connection.response(method)?.expect(status);
            if status == 204 {
                assert_eq!(response.header("content-length"), None, "{target}");
                assert_eq!(response.header("transfer-encoding"), None, "{target}");
            }
            if status == 205 {
                assert_eq!(response.text(), "", "{target}");
                assert_eq!(response.header("content-length"), Some("0"), "{target}");
            }
        }
    }
    Ok(())
}

#[test]
fn framing_that_could_be_read_in_two_ways_is_refused() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        let post = |headers: &str, body: &str| {
            raw(
                &server,
                &format!(
                    "POST /body HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}\r\n{body}"
                ),
            )
        };
        for headers in [
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: 5, 6\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: -1\r\n",
            "Content-Length: 5x\r\n",
            "Content-Length : 5\r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Transfer-Encoding: chunked, identity\r\n",
            "Transfer-Encoding: xchunked\r\n",
            "Transfer-Encoding: gzip\r\n",
            "Transfer-Encoding : chunked\r\n",
            "X: a\r\n Content-Length: 5\r\n",
        ] {
            let answer = post(headers, "hello");
            assert!(answer.starts_with("HTTP/1.1 400"), "{headers:?}: {answer}");
        }
        // The two together: Transfer-Encoding counts, and the connection ends, whatever follows.
        let smuggled = raw(
            &server,
            "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET /status?code=204 HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        assert!(!smuggled.contains(" 204 "), "{smuggled}");
        for chunks in [
            "5\r\nhello\r\nx\r\n",
            "-5\r\nhello\r\n0\r\n\r\n",
            "fffffffffffffffff\r\n",
        ] {
            let answer = post("Transfer-Encoding: chunked\r\n", chunks);
            assert!(answer.starts_with("HTTP/1.1 400"), "{chunks:?}: {answer}");
        }
        let trailers = post(
            "Transfer-Encoding: chunked\r\nTrailer: X\r\n",
            "5\r\nhello\r\n0\r\nX: y\r\nContent-Length: 99\r\n\r\n",
        );
        assert!(trailers.starts_with("HTTP/1.1 200"), "{trailers}");
        assert!(trailers.contains("\"length\":5"), "{trailers}");
        get(&server, "/").expect(200);
    }
}

#[test]
fn no_header_comes_of_a_value() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        let response = get(&server, "/inject").expect(200);
        assert_eq!(
            response.header("x-injected"),
            None,
            "{:?}",
            response.headers
        );
        assert_eq!(response.header("x-good"), Some("c"));
        let thrown = get(&server, "/throw").expect(500);
        assert_eq!(thrown.header("x-injected"), None);
        assert!(!thrown.text().contains("<script>"));
    }
}

#[test]
fn http_1_0() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        let answer = raw(&server, "GET / HTTP/1.0\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
        // No chunks: the end of the connection is the end of the body.
        let stream = raw(&server, "GET /steps HTTP/1.0\r\n\r\n");
        assert!(stream.ends_with("\r\n\r\none;two;three;"), "{stream}");
        let mut kept = sent(&server, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            .expect("a connection");
        for _ in 0..2 {
            let response = kept.response("GET").expect("an answer").expect(200);
            assert_eq!(response.header("connection"), Some("keep-alive"));
            kept.write(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                .expect("write");
        }
    }
}

#[test]
fn nonsense_is_refused() {
    let server = server(Mode::Coroutine, "").start();
    for request in [
        "\0\0\0\0\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nbad name: b\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
    ] {
        let answer = raw(&server, request);
        assert!(answer.starts_with("HTTP/1.1 4"), "{request:?}: {answer}");
    }
    get(&server, "/").expect(200);
}

#[test]
fn who_the_client_is_behind_a_trusted_proxy() {
    let vars = |server: &Surus, headers: &[(&str, &str)]| {
        headers
            .iter()
            .fold(Request::get("/vars"), |request, (name, value)| {
                request.header(name, value)
            })
            .send(server.address())
            .expect(200)
            .json()
    };
    let claims = [
        ("X-Forwarded-For", "1.1.1.1, 192.0.2.7"),
        ("X-Forwarded-Proto", "https"),
    ];
    for mode in Mode::ISOLATES {
        let trusting = server(mode, "[server]\ntrusted_proxies = [\"127.0.0.0/8\"]\n").start();
        let seen = vars(&trusting, &claims);
        assert_eq!(seen["REMOTE_ADDR"], "192.0.2.7");
        assert_eq!(
            (&seen["HTTPS"], &seen["REQUEST_SCHEME"]),
            (&"on".into(), &"https".into())
        );
        let config = "[server]\ntrusted_proxies = [\"127.0.0.0/8\"]\nforwarded = \"forwarded\"\n";
        let trusting = server(mode, config).start();
        let seen = vars(
            &trusting,
            &[("Forwarded", "for=\"[2001:db8::7]:99\";proto=http")],
        );
        assert_eq!(seen["REMOTE_ADDR"], "2001:db8::7");
        assert_eq!(seen["REMOTE_PORT"], "99");
        let other = server(mode, "[server]\ntrusted_proxies = [\"10.0.0.0/8\"]\n").start();
        // Another header, which would be the same variable.
        let seen = vars(&other, &[("X_Forwarded_For", "1.1.1.1")]);
        assert_eq!(seen.get("HTTP_X_FORWARDED_FOR"), None);
        let seen = vars(&other, &claims);
        assert_eq!(seen["REMOTE_ADDR"], "127.0.0.1");
        assert_eq!(seen.get("HTTP_X_FORWARDED_FOR"), None);
        assert_eq!(seen.get("HTTPS"), None);
    }
}

#[test]
fn the_proxy_protocol() {
    let server = server(Mode::Coroutine, "[server]\nproxy_protocol = true\n").start();
    let request = b"GET /vars HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".as_slice();
    let mut second = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    second.extend([192, 0, 2, 9, 127, 0, 0, 1, 0x12, 0x67, 0x01, 0xBB]);
    for (head, peer, port) in [
        (
            b"PROXY TCP4 192.0.2.8 127.0.0.1 4711 443\r\n".to_vec(),
            "192.0.2.8",
            "443",
        ),
        (second, "192.0.2.9", "443"),
    ] {
        let mut connection = Connection::open(server.address()).expect("a connection");
        // In pieces, as a network may deliver it.
        for piece in head.chunks(5) {
            connection.write(piece).expect("write");
            thread::sleep(Duration::from_millis(5));
        }
        connection.write(request).expect("write");
        let seen = connection
            .response("GET")
            .expect("an answer")
            .expect(200)
            .json();
        assert_eq!(
            (&seen["REMOTE_ADDR"], &seen["SERVER_PORT"]),
            (&peer.into(), &port.into())
        );
    }
    assert_eq!(raw(&server, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "");
}
