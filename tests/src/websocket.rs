//! A blocking client of WebSockets that sends whatever frames it is told to, and hides none of the server's.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a client waits for the next byte before it gives up.
const PATIENCE: Duration = Duration::from_secs(30);

const MASK: [u8; 4] = [0xa1, 0x05, 0x7e, 0xf0];

pub const FIN: u8 = 0x80;
pub const TEXT: u8 = 1;
pub const BINARY: u8 = 2;
pub const CLOSE: u8 = 8;
pub const PING: u8 = 9;
pub const PONG: u8 = 10;

/// The example of RFC 6455, 1.3, and what it is answered with.
pub const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
pub const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// A frame of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// With the bits before the opcode.
    pub first: u8,
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn text(text: &str) -> Self {
        Self {
            first: FIN | TEXT,
            payload: text.into(),
        }
    }

    pub fn close(code: u16, reason: &str) -> Self {
        let mut payload = code.to_be_bytes().to_vec();
        payload.extend_from_slice(reason.as_bytes());
        Self {
            first: FIN | CLOSE,
            payload,
        }
    }
}

/// A frame of a client.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        short @ 0..=125 => bytes.push(0x80 | short as u8),
        middle @ 126..=65_535 => {
            bytes.push(0x80 | 126);
            bytes.extend_from_slice(&(middle as u16).to_be_bytes());
        }
        long => {
            bytes.push(0x80 | 127);
            bytes.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&MASK);
    let masked = payload.iter().zip(MASK.iter().cycle());
    bytes.extend(masked.map(|(byte, mask)| byte ^ mask));
    bytes
}

/// The frame that closes.
pub fn close(code: u16, reason: &str) -> Vec<u8> {
    frame(FIN | CLOSE, &Frame::close(code, reason).payload)
}

/// The head of a request for a WebSocket, with these lines.
pub fn handshake(address: SocketAddr, path: &str, lines: &[&str]) -> String {
    let mut head = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n"
    );
    for line in lines {
        head.push_str(line);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    head
}

/// A client that was answered.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    received: Vec<u8>,
    /// The head of the response.
    pub head: String,
}

impl Client {
    /// # Panics
    /// If it is not answered 101.
    pub fn open(address: SocketAddr, path: &str) -> Self {
        let client = Self::ask(address, handshake(address, path, &[]));
        assert!(client.is_open(), "{path}: {}", client.head);
        client
    }

    /// Sends this head, and what follows it.
    pub fn ask(address: SocketAddr, request: impl AsRef<[u8]>) -> Self {
        let stream = TcpStream::connect(address).expect("connect");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream.set_nodelay(true).expect("set");
        let mut client = Self {
            stream,
            received: Vec::new(),
            head: String::new(),
        };
        client.send(request.as_ref());
        let end = loop {
            let end = client.received.windows(4).position(|at| at == b"\r\n\r\n");
            match end {
                Some(end) => break end + 4,
                None => assert!(client.read().expect("an answer") > 0, "no answer"),
            }
        };
        let rest = client.received.split_off(end);
        let head = std::mem::replace(&mut client.received, rest);
        client.head = String::from_utf8(head).expect("ASCII");
        client
    }

    pub fn is_open(&self) -> bool {
        self.head.starts_with("HTTP/1.1 101 ")
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("send");
    }

    /// False: the connection is gone.
    pub fn try_text(&mut self, text: &str) -> bool {
        let frame = frame(FIN | TEXT, text.as_bytes());
        self.stream.write_all(&frame).is_ok()
    }

    pub fn text(&mut self, text: &str) {
        self.send(&frame(FIN | TEXT, text.as_bytes()));
    }

    fn read(&mut self) -> io::Result<usize> {
        let mut block = [0; 16 * 1024];
        let count = self.stream.read(&mut block)?;
        self.received.extend_from_slice(&block[..count]);
        Ok(count)
    }

    /// The next frame; `None` at the end of the connection.
    pub fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some((frame, length)) = parse(&self.received) {
                self.received.drain(..length);
                return Some(frame);
            }
            match self.read() {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no frame: {error}"),
            }
        }
    }

    /// The next message.
    ///
    /// # Panics
    /// If it is no text.
    pub fn next_text(&mut self) -> String {
        let frame = self.frame().expect("a frame");
        assert_eq!(frame.first, FIN | TEXT, "{frame:?}");
        String::from_utf8(frame.payload).expect("UTF-8")
    }

    /// The frames up to the end of the connection. The server's last one is answered.
    pub fn rest(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.frame() {
            if frame.first == FIN | CLOSE {
                // It may be an answer itself: then nobody reads this.
                let _ = self
                    .stream
                    .write_all(&self::frame(FIN | CLOSE, &frame.payload));
            }
            frames.push(frame);
        }
        frames
    }

    /// Closes, and returns the frames up to the end.
    pub fn close(&mut self) -> Vec<Frame> {
        self.send(&close(1000, ""));
        self.rest()
    }
}

/// A frame at the beginning, and its length.
fn parse(bytes: &[u8]) -> Option<(Frame, usize)> {
    let (&first, rest) = bytes.split_first()?;
    let (&length, rest) = rest.split_first()?;
    assert!(length < 0x80, "the server masks a frame");
    let (length, rest) = match length {
        126 => {
            let (length, rest) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        127 => {
            let (length, rest) = rest.split_first_chunk()?;
            (u64::from_be_bytes(*length) as usize, rest)
        }
        short => (usize::from(short), rest),
    };
    let payload = rest.get(..length)?.to_vec();
    let all = bytes.len() - rest.len() + length;
    Some((Frame { first, payload }, all))
}
