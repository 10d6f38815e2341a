//! A client of HTTP/2 (RFC 9113) that sends the frames it is told to, also wrong ones.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// The code of a GOAWAY to a client that asks for too much.
pub const ENHANCE_YOUR_CALM: u32 = 11;

/// What a client sends first: the preface, and settings that leave all as it is.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// How long to wait for a frame.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection whose windows are never opened: the server may send 64 KB of bodies.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
}

#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    /// The code of a GOAWAY.
    pub fn code(&self) -> Option<u32> {
        let code = self.payload.get(4..)?.first_chunk()?;
        Some(u32::from_be_bytes(*code))
    }

    /// The status of the first response of a connection, with which its HEADERS begin: whole from the static table, or its
    /// name, and the number as text (RFC 7541, 6.1 and 6.2).
    pub fn status(&self) -> Option<u16> {
        const WHOLE: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
        match *self.payload.as_slice() {
            [first @ 0x88..=0x8e, ..] => Some(WHOLE[usize::from(first - 0x88)]),
            [0x08 | 0x48, 3, ref digits @ ..] => {
                let digits = digits.get(..3)?.iter();
                Some(digits.fold(0, |number, digit| number * 10 + u16::from(digit - b'0')))
            }
            [0x08 | 0x48, 0x82, a, b, ..] => Some(digits([a, b, 0xff])),
            [0x08 | 0x48, 0x83, a, b, c, ..] => Some(digits([a, b, c])),
            _ => None,
        }
    }
}

/// Three digits in the code of RFC 7541, B: five bits for the first three of them, six for the others.
fn digits(bytes: [u8; 3]) -> u16 {
    let [a, b, c] = bytes;
    let mut bits = u32::from_be_bytes([a, b, c, 0xff]);
    let mut number = 0;
    for _ in 0..3 {
        let (digit, length) = match bits >> 27 {
            few @ 0..=2 => (few, 5),
            _ => ((bits >> 26) - 0b011001 + 3, 6),
        };
        number = number * 10 + digit as u16;
        bits <<= length;
    }
    number
}

impl Client {
    /// Connects and sends the preface.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(PREFACE)?;
        Ok(Client { stream })
    }

    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        self.write(&frame(kind, flags, stream, payload))
    }

    /// Sends these bytes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Asks for this path.
    pub fn get(&mut self, stream: u32, path: &str) -> io::Result<()> {
        self.write(&get(stream, path))
    }

    /// The next frame.
    pub fn frame(&mut self) -> io::Result<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head)?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.stream.read_exact(&mut payload)?;
        Ok(Frame {
            kind,
            flags,
            stream: u32::from_be_bytes(stream),
            payload,
        })
    }

    /// The next frame of this kind.
    pub fn next(&mut self, kind: u8) -> io::Result<Frame> {
        loop {
            let frame = self.frame()?;
            if frame.kind == kind {
                return Ok(frame);
            }
        }
    }

    /// Whether the server has closed the connection, or reset it. What has come is skipped.
    pub fn has_ended(&mut self) -> bool {
        let _ = self.stream.set_nonblocking(true);
        let mut bytes = [0; 1024];
        let ended = loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => break true,
                Ok(_) => {}
                Err(error) => break error.kind() != io::ErrorKind::WouldBlock,
            }
        };
        let _ = self.stream.set_nonblocking(false);
        ended
    }

    /// Everything until the server closes the connection, or resets it.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = self.stream.read_to_end(&mut rest);
        rest
    }
}

/// A frame as bytes; `payload` of at most 16 KB, unless it is to be refused.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short payload");
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A request of this path without a body, as a frame.
pub fn get(stream: u32, path: &str) -> Vec<u8> {
    let flags = END_STREAM | END_HEADERS;
    frame(HEADERS, flags, stream, &head("GET", path, &[]))
}

/// A request's head: pseudo-headers and these headers, none of them compressed (RFC 7541, 6.2.2).
pub fn head(method: &str, path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let own = [
        (":method", method),
        (":scheme", "http"),
        (":path", path),
        (":authority", "a"),
    ];
    let all = own.iter().chain(headers);
    all.flat_map(|(name, value)| field(name, value)).collect()
}

/// One header.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        // RFC 7541, 5.1: a number in seven bits, and more of it where they are full.
        match text.len().checked_sub(127) {
            None => bytes.push(text.len() as u8),
            Some(mut rest) => {
                bytes.push(127);
                while rest >= 128 {
                    bytes.push((rest % 128) as u8 | 128);
                    rest /= 128;
                }
                bytes.push(rest as u8);
            }
        }
        bytes.extend(text.as_bytes());
    }
    bytes
}
