//! Follows the boundaries of a client's frames to find out whether it has sent only a part of a head (RFC 9113, 4.1 and
//! 6.10). `h2` waits for the rest of a head without a timeout, and accepts nothing else on the connection meanwhile.

/// Bytes with which every connection begins (RFC 9113, 3.4).
const PREFACE: usize = 24;

const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// The position in the frames that a client sends, whose bytes may be split anywhere.
#[derive(Debug)]
pub(crate) struct Frames {
    /// A frame's header: length, type, flags, stream.
    head: [u8; 9],
    /// Bytes of it that were received.
    have: usize,
    /// Bytes of the frame that were not received yet.
    left: usize,
    /// The frame is a part of a request's head.
    is_head: bool,
    /// Another frame continues that head.
    goes_on: bool,
}

impl Frames {
    pub(crate) fn new() -> Self {
        Frames {
            head: [0; 9],
            have: 0,
            left: PREFACE,
            is_head: false,
            goes_on: false,
        }
    }

    /// Reads the next bytes. True if the client was outside of a head at some point in them: a head, or another frame,
    /// has ended.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) -> bool {
        let mut ended = false;
        while !bytes.is_empty() {
            if self.left == 0 {
                let count = bytes.len().min(self.head.len() - self.have);
                self.head[self.have..self.have + count].copy_from_slice(&bytes[..count]);
                self.have += count;
                bytes = &bytes[count..];
                if self.have == self.head.len() {
                    self.begin();
                    ended |= !self.is_open();
                }
                continue;
            }
            let count = bytes.len().min(self.left);
            self.left -= count;
            bytes = &bytes[count..];
            ended |= !self.is_open();
        }
        ended
    }

    /// Evaluates a complete frame header.
    fn begin(&mut self) {
        let [a, b, c, kind, flags, ..] = self.head;
        self.have = 0;
        self.left = u32::from_be_bytes([0, a, b, c]) as usize;
        self.is_head = kind == HEADERS || kind == CONTINUATION;
        if self.is_head {
            self.goes_on = flags & END_HEADERS == 0;
        }
    }

    /// Whether the client owes the rest of a head, or of a frame that may be one.
    pub(crate) fn is_open(&self) -> bool {
        self.goes_on || self.have > 0 || (self.is_head && self.left > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, length: u8) -> Vec<u8> {
        let mut frame = vec![0, 0, length, kind, flags, 0, 0, 0, 1];
        frame.resize(frame.len() + usize::from(length), b'x');
        frame
    }

    #[test]
    fn a_head_is_open_until_its_last_byte() {
        let preface = [b'p'; PREFACE].to_vec();
        let (get, data, empty) = (frame(HEADERS, 5, 20), frame(0, 0, 30), frame(0, 1, 0));
        let (first, last) = (frame(HEADERS, 1, 10), frame(CONTINUATION, END_HEADERS, 7));
        let none = frame(CONTINUATION, 0, 0);
        let all = [
            &preface, &get, &data, &empty, &get, &first, &none, &last, &data,
        ];
        let mut expected = Vec::new();
        for (at, bytes) in all.into_iter().enumerate() {
            for index in 0..bytes.len() {
                let is_last = index + 1 == bytes.len();
                expected.push(match at {
                    // The preface; the bytes of a body after their frame's header.
                    0 => false,
                    2 | 3 | 8 => index < 8,
                    5 | 6 => true,
                    _ => !is_last,
                });
            }
        }
        let bytes: Vec<u8> = all.into_iter().flatten().copied().collect();
        let mut frames = Frames::new();
        let seen: Vec<bool> = bytes
            .iter()
            .map(|byte| {
                let ended = frames.read(&[*byte]);
                assert_eq!(ended, !frames.is_open());
                frames.is_open()
            })
            .collect();
        assert_eq!(seen, expected);
        // In pieces of any length.
        for size in 1..bytes.len() {
            let mut frames = Frames::new();
            for (index, piece) in bytes.chunks(size).enumerate() {
                let ended = frames.read(piece);
                let upto = index * size + piece.len();
                assert_eq!(frames.is_open(), expected[upto - 1], "{size} {index}");
                let has_ended = expected[upto - piece.len()..upto].contains(&false);
                assert_eq!(ended, has_ended, "{size} {index}");
            }
        }
    }
}
