//! WebSockets over HTTP/2 (RFC 8441): each is a stream, beside others and beside requests.

use std::net::SocketAddr;

use nix::sys::signal::Signal;
use surus_tests::http2::{
    head, Client, ACK, DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE,
};
use surus_tests::surus::Surus;
use surus_tests::waiting::wait_for;
use surus_tests::websocket::{close, frame, BINARY, FIN, TEXT};

use super::{serve, set};

const ENABLE_CONNECT_PROTOCOL: [u8; 6] = [0, 8, 0, 0, 0, 1];

fn connect(at: SocketAddr) -> Client {
    let mut client = Client::open(at).expect("connect");
    let settings = client.next(SETTINGS).expect("settings");
    let mut each = settings.payload.chunks(6);
    assert!(each.any(|setting| setting == ENABLE_CONNECT_PROTOCOL));
    // Only then the server's window counts.
    client.send(SETTINGS, ACK, 0, b"").expect("send");
    client
}

fn ask(client: &mut Client, stream: u32, path: &str, more: &[(&str, &str)]) {
    let own = [(":protocol", "websocket"), ("sec-websocket-version", "13")];
    let lines = [&own, more].concat();
    let head = head("CONNECT", path, &lines);
    client
        .send(HEADERS, END_HEADERS, stream, &head)
        .expect("send");
}

/// The status; only of a connection's first response it can be read.
fn open(client: &mut Client, stream: u32, path: &str) -> Option<u16> {
    ask(client, stream, path, &[]);
    client.next(HEADERS).expect("a head").status()
}

fn send(client: &mut Client, stream: u32, bytes: &[u8]) {
    for piece in bytes.chunks(16_384) {
        client.send(DATA, 0, stream, piece).expect("send");
    }
}

/// The next bytes of a stream, and whether they are its last.
fn data(client: &mut Client, stream: u32) -> (Vec<u8>, bool) {
    loop {
        let frame = client.frame().expect("a frame");
        if frame.stream == stream && frame.kind == DATA {
            return (frame.payload, frame.flags & END_STREAM != 0);
        }
        assert!(
            frame.stream != stream || frame.kind != RST_STREAM,
            "{frame:?}"
        );
    }
}

/// All bytes up to the end of the stream.
fn rest(client: &mut Client, stream: u32) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let (bytes, is_last) = data(client, stream);
        all.extend(bytes);
        if is_last {
            return all;
        }
    }
}

/// A short frame of the server.
fn answer(first: u8, payload: &[u8]) -> Vec<u8> {
    [&[first, payload.len() as u8], payload].concat()
}

fn text(text: &str) -> Vec<u8> {
    answer(FIN | TEXT, text.as_bytes())
}

fn closing(code: u16) -> Vec<u8> {
    answer(FIN | 8, &code.to_be_bytes())
}

#[test]
fn streams_are_websockets() {
    let server = serve();
    let mut client = connect(server.address());
    assert_eq!(open(&mut client, 1, "/echo"), Some(200));
    send(&mut client, 1, &frame(FIN | TEXT, b"one"));
    assert_eq!(data(&mut client, 1), (text("one"), false));
    // Another one beside it, a class, and a request.
    ask(&mut client, 3, "/room/red?name=ann", &[]);
    assert_eq!(data(&mut client, 3), (text("red, ann"), false));
    client.get(5, "/version").expect("send");
    assert_eq!(data(&mut client, 5).0, b"none");
    for (stream, expected) in [(1, "two"), (3, "1: two"), (1, "two"), (3, "2: two")] {
        send(&mut client, stream, &frame(FIN | TEXT, b"two"));
        assert_eq!(data(&mut client, stream), (text(expected), false));
    }
    // Cut anywhere.
    for byte in frame(FIN | TEXT, b"three") {
        send(&mut client, 1, &[byte]);
    }
    assert_eq!(data(&mut client, 1), (text("three"), false));
    send(&mut client, 1, &close(4000, ""));
    assert_eq!(rest(&mut client, 1), closing(4000));
    send(&mut client, 3, &frame(FIN | TEXT, b"throw"));
    assert_eq!(data(&mut client, 3).0, closing(1011));
    wait_for("it is still open", || {
        server.status()["workers"][0]["websockets"] == 0
    });
}

#[test]
fn what_is_refused_is_answered_as_a_request() {
    let server = serve();
    let at = server.address();
    let status = |path: &str, more: &[(&str, &str)]| {
        let mut client = connect(at);
        ask(&mut client, 1, path, more);
        client.next(HEADERS).expect("a head").status()
    };
    assert_eq!(status("/private", &[]), Some(401));
    assert_eq!(status("/private?token=right", &[]), Some(200));
    assert_eq!(
        status("/echo", &[("origin", "https://evil.example")]),
        Some(403)
    );
    assert_eq!(status("/echo", &[("origin", "http://a")]), Some(200));
    assert_eq!(status("/nothing", &[]), Some(404));
    // A page is no WebSocket, and a WebSocket no page.
    assert_eq!(status("/version", &[]), Some(200));
    let mut client = connect(at);
    client.get(1, "/echo").expect("send");
    assert_eq!(client.next(HEADERS).expect("a head").status(), Some(426));
}

/// A connection may have many: they are counted like connections.
#[test]
fn they_are_bounded() {
    let server = set(&["max_connections=8"]);
    let mut client = connect(server.address());
    for number in 0..8 {
        open(&mut client, 2 * number + 1, "/echo");
    }
    ask(&mut client, 17, "/echo", &[]);
    let refused = client.next(RST_STREAM).expect("a reset");
    assert_eq!(
        (refused.stream, &refused.payload[..]),
        (17, &[0, 0, 0, 7][..])
    );
    client.get(19, "/version").expect("send");
    assert_eq!(data(&mut client, 19).0, b"none");
    send(&mut client, 1, &close(1000, ""));
    assert_eq!(rest(&mut client, 1), closing(1000));
    wait_for("nothing becomes free", || {
        server.status()["workers"][0]["websockets"] == 7
    });
    open(&mut client, 21, "/echo");
    send(&mut client, 21, &frame(FIN | TEXT, b"in"));
    assert_eq!(data(&mut client, 21).0, text("in"));
}

#[test]
fn windows_bound_both_ways() {
    let server = serve();
    let mut client = connect(server.address());
    assert_eq!(open(&mut client, 1, "/echo"), Some(200));
    // More than the client's window takes: the server waits for it.
    let one = frame(FIN | BINARY, &[7; 10_000]);
    for _ in 0..10 {
        send(&mut client, 1, &one);
    }
    let mut got = 0;
    while got < 65_535 {
        got += data(&mut client, 1).0.len();
    }
    // Other streams have their turn.
    for stream in [0, 1] {
        let more = 200_000_u32.to_be_bytes();
        client.send(WINDOW_UPDATE, 0, stream, &more).expect("send");
    }
    while got < 10 * 10_004 {
        got += data(&mut client, 1).0.len();
    }
    assert_eq!(got, 10 * 10_004);
    send(&mut client, 1, &close(1000, ""));
    assert_eq!(rest(&mut client, 1), closing(1000));
}

#[test]
fn who_takes_nothing_is_gone() {
    let server = set(&["write_timeout=2s"]);
    let mut client = connect(server.address());
    assert_eq!(open(&mut client, 1, "/end?how=flood"), Some(200));
    send(&mut client, 1, &frame(FIN | TEXT, b"now"));
    wait_for("it is still open", || {
        server.log().contains(r#"finally flood [1006,"",false]"#)
    });
}

#[test]
fn its_end_is_told() {
    let mut server: Surus = serve();
    let at = server.address();
    let ended = |server: &Surus, count: usize, code: u16| {
        let line = format!("finally echo [{code},\"\",false]");
        let all = || server.log().matches(&line).count() == count;
        wait_for("its handler goes on", all);
    };
    // The client resets the stream, ends it, or is gone.
    let mut client = connect(at);
    assert_eq!(open(&mut client, 1, "/end?how=echo"), Some(200));
    let cancel = 8_u32.to_be_bytes();
    client.send(RST_STREAM, 0, 1, &cancel).expect("send");
    ended(&server, 1, 1006);
    ask(&mut client, 3, "/end?how=echo", &[]);
    client.send(DATA, END_STREAM, 3, b"").expect("send");
    ended(&server, 2, 1006);
    ask(&mut client, 5, "/end?how=echo", &[]);
    send(&mut client, 5, &frame(FIN | TEXT, b"here"));
    assert_eq!(data(&mut client, 5).0, text("here"));
    drop(client);
    ended(&server, 3, 1006);
    // New code, and the end of the server.
    let mut client = connect(at);
    assert_eq!(open(&mut client, 1, "/end?how=echo"), Some(200));
    let (code, said) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(data(&mut client, 1).0, closing(1012));
    send(&mut client, 1, &close(1012, ""));
    assert_eq!(rest(&mut client, 1), b"");
    ask(&mut client, 3, "/end?how=echo", &[]);
    send(&mut client, 3, &frame(FIN | TEXT, b"here"));
    assert_eq!(data(&mut client, 3).0, text("here"));
    server.process().signal(Signal::SIGTERM);
    assert_eq!(data(&mut client, 3).0, closing(1001));
    send(&mut client, 3, &close(1001, ""));
    assert_eq!(rest(&mut client, 3), b"");
    wait_for("the server does not end", || {
        server.process().ended().is_some()
    });
}
