//! From a client's bytes, in any pieces, to messages and control frames. What it keeps is bounded by the largest message.

use bytes::{Buf, Bytes};

use super::deflate::{self, Wrong};
use super::frame::{self, Opcode, COMPRESSED, MAX_CONTROL};
use super::held::Held;
use super::{Close, Message};

/// Memory that is reserved because a head announces a payload.
const MOST_AT_ONCE: usize = 64 * 1024;

/// What a client has said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Message(Message),
    Ping(Bytes),
    Pong,
    Close(Close),
}

/// Why the conversation must end, and the code that tells the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) code: u16,
    pub(crate) why: &'static str,
}

fn violation(why: &'static str) -> Violation {
    Violation {
        code: Close::PROTOCOL,
        why,
    }
}

const NOT_UTF8: Violation = Violation {
    code: Close::INVALID,
    why: "a text is not UTF-8",
};

const TOO_LARGE: Violation = Violation {
    code: Close::TOO_LARGE,
    why: "a message is too large",
};

const MALFORMED: Violation = Violation {
    code: Close::INVALID,
    why: "a message is not compressed as it has to be",
};

const NO_ROOM: Violation = Violation {
    code: Close::TRY_AGAIN,
    why: "too many long messages",
};

/// The frame whose payload is being read.
#[derive(Debug)]
struct Frame {
    opcode: Opcode,
    is_final: bool,
    mask: [u8; 4],
    read: usize,
    length: usize,
}

/// The first bytes of a frame, up to its mask.
#[derive(Debug, Default)]
struct Head {
    bytes: [u8; 14],
    length: usize,
}

#[derive(Debug)]
enum Reading {
    Head(Head),
    Payload(Frame),
}

/// The message whose frames are being read.
#[derive(Debug, Default)]
struct Pending {
    /// Text or binary; `None` between two messages.
    binary: Option<bool>,
    /// What has come is to be decompressed at its end: only then it is known whether a text is UTF-8.
    is_compressed: bool,
    data: Vec<u8>,
    /// Bytes of a text that are known to be valid.
    valid: usize,
    held: Held,
}

#[derive(Debug)]
pub(crate) struct Decoder {
    reading: Reading,
    message: Pending,
    /// The payload of a control frame, which may come between two frames of a message.
    control: Vec<u8>,
    max_message: usize,
    /// Messages may be compressed.
    deflates: bool,
}

impl Head {
    /// Takes bytes; false if it is not complete yet. `check` judges its first two bytes before the others are waited for.
    fn read(
        &mut self,
        input: &mut impl Buf,
        check: impl Fn(u8, u8) -> Result<(), Violation>,
    ) -> Result<bool, Violation> {
        if self.length < 2 {
            if !self.read_to(2, input) {
                return Ok(false);
            }
            check(self.bytes[0], self.bytes[1])?;
        }
        let extended = match self.bytes[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        Ok(self.read_to(2 + extended + 4, input))
    }

    fn read_to(&mut self, wanted: usize, input: &mut impl Buf) -> bool {
        let count = (wanted - self.length).min(input.remaining());
        input.copy_to_slice(&mut self.bytes[self.length..self.length + count]);
        self.length += count;
        self.length == wanted
    }

    /// The length of the payload.
    fn announced(&self) -> Result<u64, Violation> {
        let [_, short, long @ ..] = self.bytes;
        let (announced, is_shortest) = match short & 0x7f {
            126 => {
                let length = u64::from(u16::from_be_bytes([long[0], long[1]]));
                (length, length > 125)
            }
            127 => {
                let mut length = [0; 8];
                length.copy_from_slice(&long[..8]);
                let length = u64::from_be_bytes(length);
                (length, length > u64::from(u16::MAX) && length >> 63 == 0)
            }
            length => (u64::from(length), true),
        };
        if is_shortest {
            Ok(announced)
        } else {
            Err(violation("a length that is not written as it has to be"))
        }
    }

    fn mask(&self) -> [u8; 4] {
        let mut mask = [0; 4];
        mask.copy_from_slice(&self.bytes[self.length - 4..self.length]);
        mask
    }
}

impl Decoder {
    pub(crate) fn new(max_message: usize, deflates: bool) -> Self {
        Decoder {
            reading: Reading::Head(Head::default()),
            message: Pending::default(),
            control: Vec::new(),
            max_message,
            deflates,
        }
    }

    /// Takes bytes from `input` up to the next event. `None`: it has taken all.
    pub(crate) fn decode(&mut self, input: &mut impl Buf) -> Result<Option<Event>, Violation> {
        loop {
            if let Reading::Head(head) = &mut self.reading {
                let (is_open, deflates) = (self.message.binary.is_some(), self.deflates);
                if !head.read(input, |first, second| {
                    check(first, second, is_open, deflates)
                })? {
                    return Ok(None);
                }
                let frame = self.message.begin(head, self.max_message)?;
                self.reading = Reading::Payload(frame);
            }
            if !self.read_payload(input)? {
                return Ok(None);
            }
            if let Some(event) = self.end()? {
                return Ok(Some(event));
            }
        }
    }

    /// False: the payload is not complete yet.
    fn read_payload(&mut self, input: &mut impl Buf) -> Result<bool, Violation> {
        let Reading::Payload(frame) = &mut self.reading else {
            return Ok(false);
        };
        let is_control = frame.opcode.is_control();
        let left = frame.length - frame.read;
        let mut count = left.min(input.remaining());
        let data = match is_control {
            true => &mut self.control,
            false => &mut self.message.data,
        };
        if count > 0 {
            data.reserve(left.min(MOST_AT_ONCE));
            if !is_control && !self.message.held.grow(data.capacity()) {
                return Err(NO_ROOM);
            }
        }
        let start = data.len();
        let read = frame.read;
        frame.read += count;
        while count > 0 {
            let chunk = input.chunk();
            let piece = count.min(chunk.len());
            data.extend_from_slice(&chunk[..piece]);
            input.advance(piece);
            count -= piece;
        }
        frame::unmask(&mut data[start..], frame.mask, read);
        if !is_control {
            self.message.check_text()?;
        }
        Ok(frame.read == frame.length)
    }

    /// The payload of a frame is complete.
    fn end(&mut self) -> Result<Option<Event>, Violation> {
        let Reading::Payload(frame) =
            std::mem::replace(&mut self.reading, Reading::Head(Head::default()))
        else {
            return Ok(None);
        };
        if !frame.opcode.is_control() {
            return if frame.is_final {
                self.message
                    .take(self.max_message)
                    .map(|message| Some(Event::Message(message)))
            } else {
                Ok(None)
            };
        }
        let payload = std::mem::take(&mut self.control);
        Ok(Some(match frame.opcode {
            Opcode::Ping => Event::Ping(Bytes::from(payload)),
            Opcode::Pong => Event::Pong,
            _ => {
                let close = frame::read_close(&payload).map_err(|code| Violation {
                    code,
                    why: "its last frame is malformed",
                })?;
                Event::Close(close)
            }
        }))
    }
}

/// What the first two bytes of a frame violate. `is_open`: a message has begun; `deflates`: it may be compressed, which its first
/// frame says.
fn check(first: u8, second: u8, is_open: bool, deflates: bool) -> Result<(), Violation> {
    let opcode = Opcode::of(first & 0x0f).ok_or(violation("a reserved opcode"))?;
    let may_say_so = deflates && matches!(opcode, Opcode::Text | Opcode::Binary);
    let allowed = if may_say_so { COMPRESSED } else { 0 };
    if first & 0x70 & !allowed != 0 {
        return Err(violation("a reserved bit is set"));
    }
    if second & 0x80 == 0 {
        return Err(violation("a frame without a mask"));
    }
    let is_final = first & 0x80 != 0;
    let length = usize::from(second & 0x7f);
    match opcode {
        Opcode::Close | Opcode::Ping | Opcode::Pong if !is_final => {
            Err(violation("a control frame in fragments"))
        }
        Opcode::Close | Opcode::Ping | Opcode::Pong if length > MAX_CONTROL => {
            Err(violation("a long control frame"))
        }
        Opcode::Continuation if !is_open => Err(violation("a continuation of nothing")),
        Opcode::Text | Opcode::Binary if is_open => Err(violation("a message within another one")),
        _ => Ok(()),
    }
}

impl Pending {
    /// A frame begins.
    fn begin(&mut self, head: &Head, max_message: usize) -> Result<Frame, Violation> {
        let opcode = Opcode::of(head.bytes[0] & 0x0f).ok_or(violation("a reserved opcode"))?;
        let length = usize::try_from(head.announced()?).unwrap_or(usize::MAX);
        if !opcode.is_control() {
            if opcode != Opcode::Continuation {
                self.binary = Some(opcode == Opcode::Binary);
                self.is_compressed = head.bytes[0] & COMPRESSED != 0;
            }
            // What cannot be made smaller grows by a few bytes for each block.
            let most = match self.is_compressed {
                true => max_message.saturating_add(max_message / 1024 + 64),
                false => max_message,
            };
            if length > most - self.data.len() {
                return Err(TOO_LARGE);
            }
        }
        Ok(Frame {
            opcode,
            is_final: head.bytes[0] & 0x80 != 0,
            mask: head.mask(),
            read: 0,
            length,
        })
    }

    /// What has come of a text may be the beginning of UTF-8.
    fn check_text(&mut self) -> Result<(), Violation> {
        if self.binary != Some(false) || self.is_compressed {
            return Ok(());
        }
        match std::str::from_utf8(&self.data[self.valid..]) {
            Ok(text) => self.valid += text.len(),
            Err(error) if error.error_len().is_some() => return Err(NOT_UTF8),
            Err(error) => self.valid += error.valid_up_to(),
        }
        Ok(())
    }

    fn take(&mut self, max_message: usize) -> Result<Message, Violation> {
        let Pending {
            binary,
            is_compressed,
            mut data,
            mut valid,
            held: _,
        } = std::mem::take(self);
        let binary = binary.unwrap_or(true);
        if is_compressed {
            data = deflate::decompress(data, max_message).map_err(|wrong| match wrong {
                Wrong::TooLarge => TOO_LARGE,
                Wrong::Malformed => MALFORMED,
            })?;
            let is_text = !binary && std::str::from_utf8(&data).is_ok();
            valid = if is_text { data.len() } else { 0 };
        }
        if !binary && valid < data.len() {
            return Err(NOT_UTF8);
        }
        Ok(Message {
            binary,
            data: Bytes::from(data),
            shared: None,
        })
    }
}
