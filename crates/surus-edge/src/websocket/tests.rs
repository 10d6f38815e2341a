//! Frames after RFC 6455, in one piece, byte by byte, and split at every place.

use bytes::{Bytes, BytesMut};

use super::decoder::{Decoder, Event, Violation};
use super::frame::{self, Opcode};
use super::{Close, Message};

const MAX: usize = 100_000;
const FIN: u8 = 0x80;

/// A frame of a client.
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    let mut head = Vec::new();
    frame::write_head(&mut head, Opcode::Text, false, payload.len());
    head[0] = first;
    head[1] |= 0x80;
    head.extend_from_slice(&mask);
    let mut payload = payload.to_vec();
    frame::unmask(&mut payload, mask, 0);
    head.extend_from_slice(&payload);
    head
}

fn close(code: u16, reason: &[u8]) -> Vec<u8> {
    let mut payload = code.to_be_bytes().to_vec();
    payload.extend_from_slice(reason);
    masked(FIN | 8, &payload)
}

fn text(text: &str) -> Event {
    message(false, text.as_bytes())
}

fn message(binary: bool, data: &[u8]) -> Event {
    Event::Message(Message {
        binary,
        data: Bytes::copy_from_slice(data),
        shared: None,
    })
}

fn closed(code: u16, reason: &str) -> Event {
    let reason = reason.to_owned();
    Event::Close(Close { code, reason })
}

/// What is decoded from these pieces, up to a violation.
fn decode(pieces: &[&[u8]]) -> (Vec<Event>, Option<u16>) {
    let mut decoder = Decoder::new(MAX, false);
    let mut events = Vec::new();
    for piece in pieces {
        let mut input = BytesMut::from(*piece);
        loop {
            match decoder.decode(&mut input) {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break assert!(input.is_empty()),
                Err(Violation { code, .. }) => return (events, Some(code)),
            }
        }
    }
    (events, None)
}

/// The result does not depend on how the input is split.
fn check(name: &str, input: &[u8], events: &[Event], violation: Option<u16>) {
    let expected = (events, violation);
    let whole = decode(&[input]);
    assert_eq!((&whole.0[..], whole.1), expected, "{name}");
    let bytes: Vec<_> = input.chunks(1).collect();
    let by_bytes = decode(&bytes);
    assert_eq!((&by_bytes.0[..], by_bytes.1), expected, "{name}, by bytes");
    for at in 0..input.len().min(300) {
        let (one, two) = input.split_at(at);
        let split = decode(&[one, two]);
        assert_eq!((&split.0[..], split.1), expected, "{name}, at {at}");
    }
}

#[test]
fn messages_of_all_lengths() {
    for length in [0, 1, 125, 126, 127, 128, 65_535, 65_536, MAX] {
        let data = vec![b'*'; length];
        let name = format!("{length} bytes");
        let event = [message(true, &data)];
        let input = masked(FIN | 2, &data);
        assert_eq!(decode(&[&input]).0, event, "{name}");
        let pieces: Vec<_> = input.chunks(997).collect();
        assert_eq!(decode(&pieces).0, event, "{name}, in pieces");
        let text = [message(false, &data)];
        assert_eq!(decode(&[&masked(FIN | 1, &data)]).0, text, "{name}");
    }
}

#[test]
fn fragments_and_what_comes_between() {
    type Case = (&'static str, Vec<Vec<u8>>, Vec<Event>);
    let cases: [Case; 7] = [
        (
            "two fragments",
            vec![masked(1, b"Hel"), masked(FIN, b"lo")],
            vec![text("Hello")],
        ),
        (
            "empty fragments",
            vec![masked(1, b""), masked(0, b""), masked(FIN, b"")],
            vec![text("")],
        ),
        (
            "a ping within a message",
            vec![
                masked(2, b"a"),
                masked(FIN | 9, b"?"),
                masked(FIN | 10, b"!"),
                masked(0, b"b"),
                masked(FIN, b"c"),
            ],
            vec![
                Event::Ping(Bytes::from_static(b"?")),
                Event::Pong,
                message(true, b"abc"),
            ],
        ),
        (
            "a character in two fragments",
            vec![masked(1, b"\xc3"), masked(FIN, b"\xa9")],
            vec![text("é")],
        ),
        (
            "messages follow each other",
            vec![
                masked(FIN | 1, b"a"),
                masked(FIN | 2, b"\xff"),
                masked(FIN | 1, b"b"),
            ],
            vec![text("a"), message(true, b"\xff"), text("b")],
        ),
        (
            "a close within a message",
            vec![masked(1, b"a"), close(1000, b"bye")],
            vec![closed(1000, "bye")],
        ),
        (
            "the longest ping",
            vec![masked(FIN | 9, &[7; 125])],
            vec![Event::Ping(Bytes::from(vec![7; 125]))],
        ),
    ];
    for (name, frames, events) in cases {
        check(name, &frames.concat(), &events, None);
    }
}

#[test]
fn violations_end_it_with_their_code() {
    let unmasked = {
        let mut frame = Vec::new();
        frame::write(&mut frame, Opcode::Text, b"a");
        frame
    };
    let head = |first: u8, rest: &[u8]| [&[first][..], rest, &[0; 4]].concat();
    let cases: [(&str, Vec<u8>, u16); 22] = [
        ("no mask", unmasked, 1002),
        ("first reserved bit", masked(FIN | 0x40 | 1, b""), 1002),
        ("second reserved bit", masked(FIN | 0x20 | 1, b""), 1002),
        ("third reserved bit", masked(FIN | 0x10 | 9, b""), 1002),
        ("reserved data opcode", masked(FIN | 3, b""), 1002),
        ("last reserved data opcode", masked(FIN | 7, b""), 1002),
        ("reserved control opcode", masked(FIN | 11, b""), 1002),
        ("last reserved control opcode", masked(FIN | 15, b""), 1002),
        ("ping in fragments", masked(9, b""), 1002),
        ("close in fragments", masked(8, b""), 1002),
        ("long ping", masked(FIN | 9, &[0; 126]), 1002),
        ("continuation of nothing", masked(FIN, b"a"), 1002),
        ("unfinished continuation of nothing", masked(0, b"a"), 1002),
        (
            "text in text",
            [masked(1, b"a"), masked(FIN | 1, b"b")].concat(),
            1002,
        ),
        (
            "binary in text",
            [masked(1, b"a"), masked(2, b"b")].concat(),
            1002,
        ),
        ("close with half a code", masked(FIN | 8, b"\x03"), 1002),
        (
            "close with a reason that is not UTF-8",
            close(1000, b"\xff"),
            1007,
        ),
        (
            "length in more bytes than needed",
            head(FIN | 2, &[0xfe, 0, 125]),
            1002,
        ),
        (
            "length in eight bytes",
            head(FIN | 2, &[0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff]),
            1002,
        ),
        (
            "length with the highest bit",
            head(FIN | 2, &[0xff, 0x80, 0, 0, 0, 0, 0, 0, 0]),
            1002,
        ),
        (
            "too large",
            head(FIN | 2, &[0xff, 0, 0, 0, 0, 0, 1, 0x86, 0xa1]),
            1009,
        ),
        (
            "as large as can be written",
            head(
                FIN | 2,
                &[0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            ),
            1009,
        ),
    ];
    for (name, input, code) in cases {
        check(name, &input, &[], Some(code));
    }
    let fragments = [masked(2, &[0; MAX]), masked(FIN, b"a")].concat();
    assert_eq!(decode(&[&fragments]), (vec![], Some(1009)));
}

#[test]
fn texts_are_utf_8() {
    // Of Markus Kuhn's list, as Autobahn has them: each of these is no UTF-8 as a whole.
    let invalid: [&[u8]; 12] = [
        b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited",
        b"\xf4\x90\x80\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xf0\x80\x80\xaf",
        b"\xed\xa0\x80",
        b"\xed\xbf\xbf",
        b"\xed\xa0\x80\xed\xb0\x80",
        b"\x80",
        b"\xff",
        b"\xfe\xfe\xff\xff",
    ];
    for bytes in invalid {
        let name = format!("{bytes:x?}");
        check(&name, &masked(FIN | 1, bytes), &[], Some(1007));
        // Before the message is complete.
        check(&name, &masked(1, bytes), &[], Some(1007));
    }
    // Their beginning is one of UTF-8: known at the end of the message.
    for bytes in [&b"\xc3"[..], b"\xe2\x82", b"\xf0\x9f\x98", b"a\xf4\x8f"] {
        check("cut off", &masked(FIN | 1, bytes), &[], Some(1007));
        check("goes on", &masked(1, bytes), &[], None);
    }
    for valid in [
        "\u{0}",
        "\u{7f}",
        "\u{7ff}",
        "\u{d7ff}",
        "\u{e000}",
        "\u{fffd}",
        "\u{10ffff}",
        "κόσμε",
    ] {
        check(
            valid,
            &masked(FIN | 1, valid.as_bytes()),
            &[text(valid)],
            None,
        );
        let bytes = valid.as_bytes().chunks(1);
        let mut frames: Vec<_> = bytes.map(|byte| masked(0, byte)).collect();
        frames[0][0] = 1;
        frames.push(masked(FIN, b""));
        check(valid, &frames.concat(), &[text(valid)], None);
    }
}

#[test]
fn codes_of_the_end() {
    check("no code", &masked(FIN | 8, b""), &[closed(1005, "")], None);
    let longest = "x".repeat(123);
    let event = [closed(4999, &longest)];
    check(
        "longest reason",
        &close(4999, longest.as_bytes()),
        &event,
        None,
    );
    for code in [
        1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000,
    ] {
        check("allowed", &close(code, b""), &[closed(code, "")], None);
    }
    for code in [
        0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535,
    ] {
        check("forbidden", &close(code, b""), &[], Some(1002));
    }
}

#[test]
fn the_servers_frames() {
    for (length, head) in [
        (0, &b"\x81\x00"[..]),
        (125, b"\x81\x7d"),
        (126, b"\x81\x7e\x00\x7e"),
        (65_535, b"\x81\x7e\xff\xff"),
        (65_536, b"\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00"),
    ] {
        let mut output = Vec::new();
        frame::write_head(&mut output, Opcode::Text, false, length);
        assert_eq!(output, head);
    }
    let written = |code: u16, reason: &str| {
        let mut output = Vec::new();
        let reason = reason.to_owned();
        frame::write_close(&mut output, &Close { code, reason });
        output
    };
    assert_eq!(written(1000, "bye"), b"\x88\x05\x03\xe8bye");
    assert_eq!(written(1005, ""), b"\x88\x00");
    assert_eq!(written(1006, "no"), b"\x88\x00");
    let cut = written(3000, &"é".repeat(100));
    assert_eq!(cut.len(), 2 + 2 + 122);
    assert!(std::str::from_utf8(&cut[4..]).is_ok());
}

#[test]
fn masks_begin_anywhere() {
    let mask = [1, 2, 3, 4];
    let plain: Vec<u8> = (0..100).collect();
    let mut whole = plain.clone();
    frame::unmask(&mut whole, mask, 0);
    for (at, byte) in whole.iter().enumerate() {
        assert_eq!(*byte, plain[at] ^ mask[at % 4]);
    }
    for at in 0..plain.len() {
        let mut parts = whole.clone();
        frame::unmask(&mut parts[..at], mask, 0);
        frame::unmask(&mut parts[at..], mask, at);
        assert_eq!(parts, plain, "{at}");
    }
}

/// RFC 7692, 7.2.3.1, in two fragments.
#[test]
fn a_compressed_message_is_complete_at_its_end() {
    let input = [
        masked(frame::COMPRESSED | 1, &[0xf2, 0x48, 0xcd]),
        masked(FIN | 9, b"?"),
        masked(FIN, &[0xc9, 0xc9, 0x07, 0x00]),
        masked(FIN | 1, b"as it is"),
    ]
    .concat();
    let expected = [
        Event::Ping(Bytes::from_static(b"?")),
        text("Hello"),
        text("as it is"),
    ];
    for size in 1..=input.len() {
        let mut decoder = Decoder::new(MAX, true);
        let mut events = Vec::new();
        for mut piece in input.chunks(size) {
            while let Some(event) = decoder.decode(&mut piece).expect("valid") {
                events.push(event);
            }
        }
        assert_eq!(events, expected, "{size}");
    }
}
