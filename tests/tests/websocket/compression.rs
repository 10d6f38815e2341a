//! permessage-deflate (RFC 7692): what Autobahn's sections 12 and 13 have, and what must not be.

use std::net::SocketAddr;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use surus_tests::http::Request;
use surus_tests::surus::Surus;
use surus_tests::websocket::{frame, handshake, Client, Frame, BINARY, FIN, PING, PONG, TEXT};

use super::{serve, set};

/// The first reserved bit: of a message that is compressed.
const RSV1: u8 = 0x40;

const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

const AGREED: &str = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";

fn open(at: SocketAddr, path: &str, offer: &str) -> Client {
    let line = format!("Sec-WebSocket-Extensions: {offer}");
    let client = Client::ask(at, handshake(at, path, &[&line]));
    assert!(client.is_open(), "{offer}: {}", client.head);
    client
}

fn answer(client: &Client) -> Option<&str> {
    let lines = client.head.lines();
    let mut found = lines.filter_map(|line| line.strip_prefix("sec-websocket-extensions: "));
    found.next()
}

fn deflate(data: &[u8], window: u8) -> Vec<u8> {
    let mut compress = Compress::new_with_window_bits(Compression::default(), false, window);
    let mut packed = Vec::with_capacity(data.len() + data.len() / 100 + 1000);
    let status = compress.compress_vec(data, &mut packed, FlushCompress::Sync);
    status.expect("it is compressed");
    assert!(packed.ends_with(&TAIL));
    packed.truncate(packed.len() - TAIL.len());
    packed
}

fn inflate(packed: &[u8], length: usize, window: u8) -> Vec<u8> {
    let packed = [packed, &TAIL].concat();
    let mut data = Vec::with_capacity(length + 1);
    let mut decompress = Decompress::new_with_window_bits(false, window);
    let status = decompress.decompress_vec(&packed, &mut data, FlushDecompress::Sync);
    status.expect("it is decompressed");
    data
}

/// A compressed message in fragments of this size.
fn fragments(first: u8, packed: &[u8], size: usize) -> Vec<u8> {
    let count = packed.chunks(size).count();
    let pieces = packed.chunks(size).enumerate();
    pieces
        .flat_map(|(at, piece)| {
            let opcode = if at == 0 { first | RSV1 } else { 0 };
            frame(
                if at + 1 == count {
                    opcode | FIN
                } else {
                    opcode
                },
                piece,
            )
        })
        .collect()
}

/// Checks a message of the server; returns whether it was compressed.
fn expect(client: &mut Client, opcode: u8, data: &[u8], window: u8) -> bool {
    let Frame { first, payload } = client.frame().expect("a frame");
    assert_eq!(first & !RSV1, FIN | opcode);
    let is_packed = first & RSV1 != 0;
    let got = match is_packed {
        true => inflate(&payload, data.len(), window),
        false => payload,
    };
    assert!(got == data, "{} bytes are not {}", got.len(), data.len());
    is_packed
}

/// Like the texts of Autobahn: JSON that compresses well, with letters of more than one byte.
fn text(length: usize) -> String {
    let mut text = String::new();
    for number in 0.. {
        let line = format!("{{\"number\": {number}, \"naïve\": \"zwölf Boxkämpfer\"}}\n");
        if text.len() + line.len() > length {
            break;
        }
        text.push_str(&line);
    }
    let rest = length - text.len();
    text + &"x".repeat(rest)
}

#[test]
fn an_offer_is_answered() {
    let server = serve();
    let at = server.address();
    let bounded = format!("{AGREED}; server_max_window_bits=9");
    for (offer, expected) in [
        ("permessage-deflate", Some(AGREED)),
        ("permessage-deflate; client_max_window_bits", Some(AGREED)),
        (
            "permessage-deflate; server_no_context_takeover; client_max_window_bits=10",
            Some(AGREED),
        ),
        (
            "permessage-deflate; server_max_window_bits=9",
            Some(&*bounded),
        ),
        // Nothing that zlib can make; then the next offer counts.
        (
            "permessage-deflate; server_max_window_bits=8, permessage-deflate",
            Some(AGREED),
        ),
        ("permessage-deflate; server_max_window_bits=8", None),
        ("permessage-deflate; nonsense", None),
        ("permessage-bzip2", None),
    ] {
        let mut client = open(at, "/echo", offer);
        assert_eq!(answer(&client), expected, "{offer}");
        client.text("hello");
        assert_eq!(client.next_text(), "hello");
    }
    assert_eq!(answer(&Client::open(at, "/echo")), None);
}

#[test]
fn messages_of_all_sizes_come_back() {
    let server = serve();
    let at = server.address();
    for (offer, window) in [
        ("permessage-deflate", 15),
        ("permessage-deflate; server_max_window_bits=9", 9),
        ("permessage-deflate; server_max_window_bits=12", 12),
    ] {
        let mut client = open(at, "/echo", offer);
        for length in [
            0, 1, 16, 64, 256, 1023, 1024, 4096, 8192, 32_768, 131_072, 1_048_576,
        ] {
            let text = text(length);
            for own in [15, 9] {
                let packed = deflate(text.as_bytes(), own);
                for (opcode, size) in [(TEXT, packed.len().max(1)), (BINARY, 256), (TEXT, 1024)] {
                    let packed = if packed.is_empty() { &[0][..] } else { &packed };
                    client.send(&fragments(opcode, packed, size));
                    let is_packed = expect(&mut client, opcode, text.as_bytes(), window);
                    assert_eq!(is_packed, length >= 1024, "{length}");
                }
            }
            // A client need not compress.
            client.text(&text);
            expect(&mut client, TEXT, text.as_bytes(), window);
        }
        // Many at once.
        let messages: Vec<_> = (0..200)
            .map(|number| format!("{number} {}", text(2000)))
            .collect();
        for message in &messages {
            let packed = deflate(message.as_bytes(), 15);
            client.send(&frame(FIN | RSV1 | TEXT, &packed));
        }
        for message in &messages {
            assert!(expect(&mut client, TEXT, message.as_bytes(), window));
        }
        assert_eq!(client.close(), [Frame::close(1000, "")]);
    }
}

#[test]
fn control_frames_come_between_fragments() {
    let server = serve();
    let mut client = open(server.address(), "/echo", "permessage-deflate");
    let packed = deflate("fragménts".as_bytes(), 15);
    let (one, two) = packed.split_at(3);
    client.send(&frame(RSV1 | TEXT, one));
    client.send(&frame(FIN | PING, b"?"));
    client.send(&frame(0, b""));
    client.send(&frame(FIN, two));
    let pong = Frame {
        first: FIN | PONG,
        payload: b"?".to_vec(),
    };
    assert_eq!(client.frame(), Some(pong));
    assert_eq!(client.next_text(), "fragménts");
    // The examples of RFC 7692, 7.2.3: one block, none compressed, a last block, two blocks.
    for packed in [
        &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00][..],
        b"\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00",
        &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00],
        b"\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00",
    ] {
        client.send(&frame(FIN | RSV1 | TEXT, packed));
        assert_eq!(client.next_text(), "Hello");
    }
}

#[test]
fn violations_end_it_with_their_code() {
    let server = serve();
    let at = server.address();
    let packed = deflate(b"hello", 15);
    let latin = deflate(b"caf\xe9", 15);
    let zeros = deflate(&[0; 3000], 15);
    let cases: [(&str, &str, Vec<u8>, u16); 10] = [
        (
            "a second bit",
            "/echo",
            frame(FIN | 0x20 | TEXT, b"a"),
            1002,
        ),
        (
            "a third bit",
            "/echo",
            frame(FIN | RSV1 | 0x10 | TEXT, &packed),
            1002,
        ),
        (
            "a continuation that says so",
            "/echo",
            [
                frame(RSV1 | TEXT, &packed[..2]),
                frame(FIN | RSV1, &packed[2..]),
            ]
            .concat(),
            1002,
        ),
        (
            "a ping that says so",
            "/echo",
            frame(FIN | RSV1 | PING, b""),
            1002,
        ),
        (
            "a reserved type of block",
            "/echo",
            frame(FIN | RSV1 | TEXT, &[6, 0]),
            1007,
        ),
        (
            "no data at all",
            "/echo",
            frame(FIN | RSV1 | BINARY, &[0xff; 30]),
            1007,
        ),
        (
            "text that is not UTF-8",
            "/echo",
            frame(FIN | RSV1 | TEXT, &latin),
            1007,
        ),
        ("a bomb", "/small", frame(FIN | RSV1 | BINARY, &zeros), 1009),
        (
            "a bomb of 1 GB",
            "/small",
            frame(FIN | RSV1 | BINARY, &bomb()),
            1009,
        ),
        (
            "a long payload",
            "/small",
            frame(FIN | RSV1 | BINARY, &[0; 1100]),
            1009,
        ),
    ];
    for (name, path, bytes, code) in cases {
        let mut client = open(at, path, "permessage-deflate");
        client.send(&bytes);
        let ends = client.rest();
        let [last] = &ends[..] else {
            panic!("{name}: {ends:?}")
        };
        assert_eq!(last.payload[..2], code.to_be_bytes(), "{name}: {ends:?}");
    }
    // Who has agreed upon nothing may not compress.
    let mut client = Client::open(at, "/echo");
    client.send(&frame(FIN | RSV1 | TEXT, &packed));
    let ends = client.rest();
    assert_eq!(ends[0].payload[..2], 1002_u16.to_be_bytes());
}

/// Less than a kilobyte that becomes many times what is allowed.
fn bomb() -> Vec<u8> {
    let packed = deflate(&vec![0; 900_000], 15);
    assert!(packed.len() < 1000);
    packed
}

#[test]
fn what_is_published_is_compressed_for_those_who_take_it() {
    let server = serve();
    let at = server.address();
    let offers = [
        ("permessage-deflate", 15),
        ("permessage-deflate; server_max_window_bits=10", 10),
        ("other", 0),
    ];
    let mut clients: Vec<_> = (0..30)
        .map(|number| {
            let (offer, window) = offers[number % 3];
            let mut client = open(at, "/topics", offer);
            client.next_text();
            client.text("+news");
            assert_eq!(client.next_text(), "+news");
            (client, window)
        })
        .collect();
    let query = "topic=news&text=line&times=3&size=20000";
    Request::get(&format!("/publish?{query}"))
        .send(at)
        .expect(200);
    for (client, window) in &mut clients {
        for number in 0..3 {
            let text = format!("{:20000}", format!("line {number}"));
            let is_packed = expect(client, TEXT, text.as_bytes(), *window);
            assert_eq!(is_packed, *window > 0);
        }
    }
}

#[test]
fn it_can_be_switched_off() {
    let server: Surus = set(&["websocket_compression=false"]);
    let mut client = open(server.address(), "/echo", "permessage-deflate");
    assert_eq!(answer(&client), None);
    let text = text(5000);
    client.text(&text);
    assert_eq!(client.next_text(), text);
}
