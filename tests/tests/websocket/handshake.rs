//! From a request to a WebSocket, or to another answer.

use surus_tests::http::Request;
use surus_tests::waiting::wait_for;
use surus_tests::websocket::{frame, handshake, Client, Frame, ACCEPT, FIN, KEY, TEXT};

use super::serve;

#[test]
fn a_request_becomes_a_websocket() {
    let server = serve();
    let at = server.address();
    let client = Client::open(at, "/echo");
    let head = client.head.to_ascii_lowercase();
    for line in [
        "upgrade: websocket",
        "connection: upgrade",
        &format!("sec-websocket-accept: {}", ACCEPT.to_ascii_lowercase()),
    ] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{head}");
    }
    for name in ["content-length", "content-type", "transfer-encoding"] {
        assert!(!head.contains(name), "{head}");
    }
    // Names and lists in any case and order; what follows the head at once.
    let mut request = format!(
        "GET /echo HTTP/1.1\r\nhost: {at}\r\nCONNECTION: keep-alive, UPGRADE\r\nUpgrade: WebSocket\r\n\
         sec-websocket-key: {KEY}\r\nsec-websocket-version: 13\r\n\r\n"
    )
    .into_bytes();
    request.extend_from_slice(&frame(FIN | TEXT, b"at once"));
    let mut early = Client::ask(at, request);
    assert_eq!(early.next_text(), "at once");
}

#[test]
fn a_route_has_its_arguments_and_its_middleware() {
    let server = serve();
    let at = server.address();
    let mut client = Client::open(at, "/room/red?name=ann");
    assert_eq!(client.next_text(), "red, ann");
    client.text("a");
    client.text("b");
    assert_eq!(client.next_text(), "1: a");
    assert_eq!(client.next_text(), "2: b");
    let mut other = Client::open(at, "/room/blue");
    assert_eq!(other.next_text(), "blue, nobody");
    other.text("c");
    assert_eq!(other.next_text(), "1: c", "an object of its own");
    client.close();
    wait_for("it is not told", || {
        server.log().contains("closed after 2 with 1000")
    });

    let mut number = Client::open(at, "/number/41");
    let ends = [Frame::text("42"), Frame::close(1000, "")];
    assert_eq!(number.rest(), ends);
    let refused = Client::ask(at, handshake(at, "/number/x", &[]));
    assert!(
        refused.head.starts_with("HTTP/1.1 404 "),
        "{}",
        refused.head
    );

    // What middleware answers is sent; what it adds to the answer, too.
    let refused = Client::ask(at, handshake(at, "/private", &[]));
    assert!(
        refused.head.starts_with("HTTP/1.1 401 "),
        "{}",
        refused.head
    );
    let mut allowed = Client::open(at, "/private?token=right");
    assert!(
        allowed.head.contains("x-token: seen\r\n"),
        "{}",
        allowed.head
    );
    assert_eq!(
        allowed.rest(),
        [Frame::text("secret"), Frame::close(1000, "")]
    );
}

#[test]
fn what_is_no_handshake_is_refused() {
    let server = serve();
    let at = server.address();
    let answer = Request::get("/echo").send(at);
    assert_eq!(answer.status, 426);
    assert_eq!(answer.header("upgrade"), Some("websocket"));
    let whole = handshake(at, "/echo", &[]);
    let cases = [
        ("Upgrade: websocket\r\n", "", 426),
        ("Upgrade: websocket\r\n", "Upgrade: h2c\r\n", 426),
        ("Connection: Upgrade\r\n", "", 426),
        ("Version: 13\r\n", "Version: 8\r\n", 426),
        ("Sec-WebSocket-Version: 13\r\n", "", 426),
        (KEY, "dGhlIHNhbXBsZSBub25j", 400),
        (KEY, "", 400),
        (KEY, "dGhlIHNhbXBsZSBub25jZ!==", 400),
        ("GET ", "HEAD ", 426),
        ("GET ", "POST ", 405),
        ("HTTP/1.1\r\n", "HTTP/1.0\r\n", 426),
    ];
    for (from, to, status) in cases {
        let request = whole.replacen(from, to, 1);
        assert_ne!(request, whole, "{from}");
        let answer = Client::ask(at, &request);
        let expected = format!(" {status} ");
        assert!(
            answer.head.contains(&expected),
            "{from} → {to}: {}",
            answer.head
        );
        if status == 426 && !request.contains("Version: 13") {
            assert!(
                answer.head.contains("sec-websocket-version: 13"),
                "{}",
                answer.head
            );
        }
    }
    assert_eq!(Request::get("/").send(at).text(), "Hello");
}

#[test]
fn pages_of_other_sites_are_refused() {
    let server = serve();
    let at = server.address();
    let port = at.port();
    let own = format!("http://127.0.0.1:{port}");
    let cases = [
        ("/echo", own.as_str(), true),
        ("/echo", "http://127.0.0.1", false),
        ("/echo", "https://friend.example", false),
        ("/echo", "null", false),
        ("/echo", "", false),
        ("/other", own.as_str(), true),
        ("/other", "https://friend.example", true),
        ("/other", "https://FRIEND.example", true),
        ("/other", "http://friend.example", false),
        ("/other", "https://friend.example.evil.example", false),
        ("/any", "https://evil.example", true),
        ("/any", "null", true),
    ];
    for (path, origin, allowed) in cases {
        let answer = Client::ask(at, handshake(at, path, &[&format!("Origin: {origin}")]));
        assert_eq!(
            answer.is_open(),
            allowed,
            "{path} {origin}: {}",
            answer.head
        );
        assert!(
            allowed || answer.head.starts_with("HTTP/1.1 403 "),
            "{}",
            answer.head
        );
    }
    let named = handshake(at, "/echo", &["Origin: https://shop.example"]);
    let named = named.replacen(&format!("Host: {at}"), "Host: shop.example:443", 1);
    assert!(Client::ask(at, named).is_open(), "the port of the scheme");
}

#[test]
fn a_protocol_is_agreed_upon() {
    let server = serve();
    let at = server.address();
    for (offered, agreed) in [
        (&["Sec-WebSocket-Protocol: v1, v2"][..], "v2"),
        (
            &["Sec-WebSocket-Protocol: v0", "Sec-WebSocket-Protocol: v1"],
            "v1",
        ),
        (&["Sec-WebSocket-Protocol: V1"], ""),
        (&[], ""),
    ] {
        let mut client = Client::ask(at, handshake(at, "/other", offered));
        let line = format!("sec-websocket-protocol: {agreed}\r\n");
        assert_eq!(
            client.head.contains(&line),
            !agreed.is_empty(),
            "{}",
            client.head
        );
        assert_eq!(client.next_text(), agreed);
    }
}
