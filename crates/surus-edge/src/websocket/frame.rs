//! What frames are made of (RFC 6455, 5.2).

use super::Close;

/// The largest payload of a control frame.
pub(crate) const MAX_CONTROL: usize = 125;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

impl Opcode {
    /// `None`: it is reserved.
    pub(crate) fn of(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Opcode::Continuation),
            1 => Some(Opcode::Text),
            2 => Some(Opcode::Binary),
            8 => Some(Opcode::Close),
            9 => Some(Opcode::Ping),
            10 => Some(Opcode::Pong),
            _ => None,
        }
    }

    fn bits(self) -> u8 {
        match self {
            Opcode::Continuation => 0,
            Opcode::Text => 1,
            Opcode::Binary => 2,
            Opcode::Close => 8,
            Opcode::Ping => 9,
            Opcode::Pong => 10,
        }
    }

    pub(crate) fn is_control(self) -> bool {
        matches!(self, Opcode::Close | Opcode::Ping | Opcode::Pong)
    }
}

/// The first reserved bit, of a message that is compressed (RFC 7692, 6).
pub(crate) const COMPRESSED: u8 = 0x40;

/// Writes the head of a final frame of the server, which has no mask.
pub(crate) fn write_head(output: &mut Vec<u8>, opcode: Opcode, is_compressed: bool, length: usize) {
    output.push(0x80 | opcode.bits() | if is_compressed { COMPRESSED } else { 0 });
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short @ 0..=125), _) => output.push(short),
        (_, Ok(middle)) => {
            output.push(126);
            output.extend_from_slice(&middle.to_be_bytes());
        }
        _ => {
            output.push(127);
            output.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

/// Writes a short frame as a whole.
pub(crate) fn write(output: &mut Vec<u8>, opcode: Opcode, payload: &[u8]) {
    write_head(output, opcode, false, payload.len());
    output.extend_from_slice(payload);
}

/// Writes the frame that ends a conversation.
pub(crate) fn write_close(output: &mut Vec<u8>, close: &Close) {
    if !may_be_sent(close.code) {
        return write(output, Opcode::Close, b"");
    }
    let mut payload = close.code.to_be_bytes().to_vec();
    let mut end = close.reason.len().min(MAX_CONTROL - payload.len());
    while !close.reason.is_char_boundary(end) {
        end -= 1;
    }
    payload.extend_from_slice(&close.reason.as_bytes()[..end]);
    write(output, Opcode::Close, &payload);
}

/// Whether a frame may have this code (RFC 6455, 7.4; IANA, "WebSocket Close Code Number").
pub(crate) fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

/// Reads the payload of a frame that ends a conversation. The error is the code to answer with.
pub(crate) fn read_close(payload: &[u8]) -> Result<Close, u16> {
    let (code, reason) = match payload {
        [] => return Ok(Close::new(Close::NONE)),
        [_] => return Err(Close::PROTOCOL),
        [high, low, reason @ ..] => (u16::from_be_bytes([*high, *low]), reason),
    };
    if !may_be_sent(code) {
        return Err(Close::PROTOCOL);
    }
    let reason = std::str::from_utf8(reason).map_err(|_| Close::INVALID)?;
    Ok(Close {
        code,
        reason: reason.to_owned(),
    })
}

/// Applies the mask of a client. `offset`: bytes of this payload that were unmasked before.
pub(crate) fn unmask(bytes: &mut [u8], mask: [u8; 4], offset: usize) {
    let mut key = mask;
    key.rotate_left(offset % 4);
    let wide = u64::from_ne_bytes([
        key[0], key[1], key[2], key[3], key[0], key[1], key[2], key[3],
    ]);
    let mut words = bytes.chunks_exact_mut(8);
    for word in &mut words {
        let mut value = [0; 8];
        value.copy_from_slice(word);
        word.copy_from_slice(&(u64::from_ne_bytes(value) ^ wide).to_ne_bytes());
    }
    for (byte, key) in words.into_remainder().iter_mut().zip(key.iter().cycle()) {
        *byte ^= key;
    }
}
