//! Frames of clients, valid and not: what Autobahn's sections 1 to 7, 9 and 10 have. The decoder's own tests have each case
//! split at every byte.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use surus_tests::websocket::{close, frame, Client, Frame, BINARY, CLOSE, FIN, PING, PONG, TEXT};

use super::serve;

/// What is answered to these bytes, up to the end of the connection.
fn answers(at: SocketAddr, bytes: &[u8]) -> Vec<Frame> {
    let mut client = Client::open(at, "/echo");
    client.send(bytes);
    client.rest()
}

fn binary(payload: &[u8]) -> Frame {
    Frame {
        first: FIN | BINARY,
        payload: payload.to_vec(),
    }
}

fn pong(payload: &[u8]) -> Frame {
    Frame {
        first: FIN | PONG,
        payload: payload.to_vec(),
    }
}

#[test]
fn messages_come_back_as_they_are() {
    let server = serve();
    let at = server.address();
    let mut client = Client::open(at, "/echo");
    for length in [0, 1, 125, 126, 127, 65_535, 65_536, 300_000, 1_048_576] {
        let text = "ü".repeat(length / 2);
        client.text(&text);
        assert_eq!(client.next_text(), text);
        let bytes = vec![0xfe; length];
        client.send(&frame(FIN | BINARY, &bytes));
        assert_eq!(client.frame(), Some(binary(&bytes)));
    }
    // In fragments, in pieces of any size, with pings between them.
    let mut whole = Vec::new();
    whole.extend(frame(TEXT, b"frag"));
    whole.extend(frame(0, b""));
    whole.extend(frame(FIN | PING, b"1"));
    whole.extend(frame(0, "mént".as_bytes()));
    whole.extend(frame(FIN, b"s"));
    whole.extend(frame(FIN | PONG, b"nobody has asked"));
    whole.extend(frame(FIN | BINARY, b"next"));
    for size in [1, 2, 3, 7, 1000] {
        for piece in whole.chunks(size) {
            client.send(piece);
        }
        assert_eq!(client.frame(), Some(pong(b"1")));
        assert_eq!(client.next_text(), "fragménts");
        assert_eq!(client.frame(), Some(binary(b"next")));
    }
    // Many at once are answered in order.
    let many: Vec<u8> = (0..2000)
        .flat_map(|number: u32| frame(FIN | TEXT, number.to_string().as_bytes()))
        .collect();
    client.send(&many);
    for number in 0..2000 {
        assert_eq!(client.next_text(), number.to_string());
    }
    assert_eq!(client.close(), [Frame::close(1000, "")]);
}

#[test]
fn pings_are_answered_with_what_they_have() {
    let server = serve();
    let mut client = Client::open(server.address(), "/echo");
    for payload in [
        &b""[..],
        b"Hello, world!",
        &[0, 255, 254, 253, 0],
        &[0xfe; 125],
    ] {
        client.send(&frame(FIN | PING, payload));
        assert_eq!(client.frame(), Some(pong(payload)));
        // Byte by byte.
        for byte in frame(FIN | PING, payload) {
            client.send(&[byte]);
        }
        assert_eq!(client.frame(), Some(pong(payload)));
        // Nobody has asked for it.
        client.send(&frame(FIN | PONG, payload));
    }
    let many: Vec<u8> = (0..10_u8)
        .flat_map(|number| frame(FIN | PING, &[number]))
        .collect();
    for size in [many.len(), 1] {
        for piece in many.chunks(size) {
            client.send(piece);
        }
        for number in 0..10 {
            assert_eq!(client.frame(), Some(pong(&[number])));
        }
    }
    assert_eq!(client.close(), [Frame::close(1000, "")]);
}

#[test]
fn large_messages_come_in_fragments_of_any_size() {
    let server = serve();
    let mut client = Client::open(server.address(), "/echo");
    let text = "zwölf Boxkämpfer ".repeat(50_000);
    for size in [64, 1000, 65_536, 300_000] {
        let pieces: Vec<_> = text.as_bytes().chunks(size).collect();
        let mut bytes = Vec::new();
        for (at, piece) in pieces.iter().enumerate() {
            let opcode = if at == 0 { TEXT } else { 0 };
            let is_last = at + 1 == pieces.len();
            bytes.extend(frame(if is_last { FIN | opcode } else { opcode }, piece));
        }
        client.send(&bytes);
        assert!(client.next_text() == text, "{size}");
    }
    assert_eq!(client.close(), [Frame::close(1000, "")]);
}

#[test]
fn the_end_is_answered() {
    let server = serve();
    let at = server.address();
    let none = Frame {
        first: FIN | CLOSE,
        payload: Vec::new(),
    };
    assert_eq!(answers(at, &frame(FIN | CLOSE, b"")), [none]);
    for code in [
        1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999,
    ] {
        let ends = answers(at, &close(code, "bye"));
        assert_eq!(ends, [Frame::close(code, "bye")]);
    }
    // What came before it is answered first; what comes after it is not.
    let before = [
        frame(FIN | TEXT, b"a"),
        frame(FIN | TEXT, b"b"),
        close(1000, ""),
        frame(FIN | TEXT, b"c"),
        frame(FIN | PING, b"?"),
    ];
    let ends = [Frame::text("a"), Frame::text("b"), Frame::close(1000, "")];
    assert_eq!(answers(at, &before.concat()), ends);
}

#[test]
fn violations_end_it_with_their_code() {
    let server = serve();
    let at = server.address();
    let unmasked = [FIN | TEXT, 1, b'a'].to_vec();
    let mut huge = frame(FIN | BINARY, &[]);
    huge.splice(1..2, [&[0xff][..], &u64::MAX.to_be_bytes()].concat());
    let cases: [(&str, Vec<u8>, u16); 14] = [
        ("no mask", unmasked, 1002),
        ("reserved bit", frame(FIN | 0x40 | TEXT, b"a"), 1002),
        ("reserved opcode", frame(FIN | 5, b"a"), 1002),
        ("reserved control opcode", frame(FIN | 13, b""), 1002),
        ("ping in fragments", frame(PING, b""), 1002),
        ("long ping", frame(FIN | PING, &[0; 126]), 1002),
        ("long close", frame(FIN | CLOSE, &[3; 126]), 1002),
        ("continuation of nothing", frame(FIN, b"a"), 1002),
        (
            "text in text",
            [frame(TEXT, b"a"), frame(FIN | TEXT, b"b")].concat(),
            1002,
        ),
        ("close with half a code", frame(FIN | CLOSE, &[3]), 1002),
        ("close with a code that is none", close(1005, ""), 1002),
        (
            "text that is not UTF-8",
            frame(FIN | TEXT, b"\xce\xba\xed\xa0\x80"),
            1007,
        ),
        ("its first fragment", frame(TEXT, b"\xff"), 1007),
        ("length with the highest bit", huge, 1002),
    ];
    for (name, bytes, code) in cases {
        let mut valid = frame(FIN | TEXT, b"before");
        valid.extend(&bytes);
        let ends = answers(at, &valid);
        let last = ends.last().unwrap_or_else(|| panic!("{name}: no frame"));
        assert_eq!(last.first, FIN | CLOSE, "{name}: {ends:?}");
        assert_eq!(last.payload[..2], code.to_be_bytes(), "{name}: {ends:?}");
        assert!(ends.len() <= 2, "{name}: {ends:?}");
    }
    assert_eq!(Client::open(at, "/echo").close(), [Frame::close(1000, "")]);
}

#[test]
fn a_message_has_a_limit() {
    let server = serve();
    let at = server.address();
    let open = || Client::open(at, "/small");
    let mut client = open();
    client.send(&frame(FIN | BINARY, &[1; 1000]));
    assert_eq!(client.next_text(), "1000");
    client.send(&frame(FIN | BINARY, &[1; 1001]));
    let too_large = |frames: Vec<Frame>| {
        let [last] = &frames[..] else {
            panic!("{frames:?}")
        };
        assert_eq!(last.payload[..2], 1009_u16.to_be_bytes());
    };
    too_large(client.rest());
    // Fragments together; the rest need not have come.
    let mut client = open();
    client.send(&frame(BINARY, &[1; 600]));
    client.send(&frame(FIN, &[1; 401])[..20]);
    too_large(client.rest());
    let mut client = open();
    client.send(&frame(FIN | BINARY, &[1; 5_000_000])[..14]);
    too_large(client.rest());
}

/// A client that reads nothing holds up the handler, and both are held up by nothing else.
#[test]
fn who_does_not_read_is_not_read_either() {
    let server = serve();
    let at = server.address();
    let mut client = Client::open(at, "/echo");
    let mut sender = client.stream().try_clone().expect("clone");
    let one = frame(FIN | BINARY, &[7; 50_000]);
    let sending = thread::spawn(move || {
        for _ in 0..400 {
            std::io::Write::write_all(&mut sender, &one).expect("send");
        }
    });
    thread::sleep(Duration::from_millis(500));
    assert!(
        !sending.is_finished(),
        "20 MB are kept for a client that does not read"
    );
    let mut other = Client::open(at, "/echo");
    other.text("meanwhile");
    assert_eq!(other.next_text(), "meanwhile");
    for _ in 0..400 {
        assert_eq!(client.frame(), Some(binary(&[7; 50_000])));
    }
    sending.join().expect("sent");
}
