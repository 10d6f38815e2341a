//! A JSON parser (RFC 8259) directly into a [`Tree`].
//!
//! Strings without escapes are not copied. Integers that fit are `i64`, other numbers `f64`. The parser is strict: no
//! comments, no trailing commas, no lone surrogates, no bytes that are not UTF-8.

use crate::input::Kind;
use crate::tree::Tree;
use crate::violation::Rejected;

/// An error: its place in the text, and its description.
struct Wrong(usize, &'static str);

/// Parses all of `text` into `tree`, which is empty.
pub(crate) fn parse(text: &[u8], max_depth: usize, tree: &mut Tree) -> Result<(), Rejected> {
    if let Err(error) = std::str::from_utf8(text) {
        return Err(malformed(Wrong(error.valid_up_to(), "invalid UTF-8")));
    }
    let mut parser = Parser {
        text,
        at: 0,
        depth_left: max_depth,
        tree,
    };
    parser.document().map_err(malformed)
}

fn malformed(Wrong(offset, reason): Wrong) -> Rejected {
    if reason == TOO_DEEP {
        return Rejected::TooDeep { offset };
    }
    Rejected::Malformed { offset, reason }
}

const TOO_DEEP: &str = "nested too deep";
const ENDED: &str = "the text ends too early";

/// Any number with this number of digits fits into an `i64`.
const EXACT_DIGITS: usize = 18;

/// Powers of ten, all of them exact.
const TENS: [f64; EXACT_DIGITS + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18,
];

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth_left: usize,
    tree: &'a mut Tree,
}

impl Parser<'_> {
    fn document(&mut self) -> Result<(), Wrong> {
        self.space();
        self.value()?;
        self.space();
        if self.at < self.text.len() {
            return Err(Wrong(self.at, "something follows the value"));
        }
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<(), Wrong> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{') => self.object(),
            Some(b'[') => self.list(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true", Kind::True),
            Some(b'f') => self.word(b"false", Kind::False),
            Some(b'n') => self.word(b"null", Kind::Null),
            Some(_) => Err(Wrong(self.at, "no value begins like this")),
            None => Err(Wrong(self.at, ENDED)),
        }
    }

    fn word(&mut self, word: &[u8], kind: Kind) -> Result<(), Wrong> {
        if !self.text[self.at..].starts_with(word) {
            return Err(Wrong(self.at, "no value begins like this"));
        }
        self.at += word.len();
        self.tree.scalar(kind, 0);
        Ok(())
    }

    fn enter(&mut self) -> Result<(), Wrong> {
        self.depth_left = self
            .depth_left
            .checked_sub(1)
            .ok_or(Wrong(self.at, TOO_DEEP))?;
        self.at += 1;
        self.space();
        Ok(())
    }

    fn object(&mut self) -> Result<(), Wrong> {
        let container = self.tree.open(Kind::Map);
        self.enter()?;
        let mut count = 0;
        if self.peek() == Some(b'}') {
            self.at += 1;
        } else {
            loop {
                if self.peek() != Some(b'"') {
                    return Err(self.unexpected("a key in double quotes is missing"));
                }
                self.string()?;
                self.space();
                if self.peek() != Some(b':') {
                    return Err(self.unexpected("a colon is missing"));
                }
                self.at += 1;
                self.space();
                self.value()?;
                count += 1;
                self.space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b'}') => break,
                    _ => return Err(self.unexpected("a comma or } is missing")),
                }
                self.space();
            }
            self.at += 1;
        }
        self.depth_left += 1;
        self.tree.close(container, count);
        Ok(())
    }

    fn list(&mut self) -> Result<(), Wrong> {
        let container = self.tree.open(Kind::List);
        self.enter()?;
        let mut count = 0;
        if self.peek() == Some(b']') {
            self.at += 1;
        } else {
            loop {
                self.value()?;
                count += 1;
                self.space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b']') => break,
                    _ => return Err(self.unexpected("a comma or ] is missing")),
                }
                self.space();
            }
            self.at += 1;
        }
        self.depth_left += 1;
        self.tree.close(container, count);
        Ok(())
    }

    #[cold]
    fn unexpected(&self, reason: &'static str) -> Wrong {
        Wrong(
            self.at,
            if self.at < self.text.len() {
                reason
            } else {
                ENDED
            },
        )
    }

    fn number(&mut self) -> Result<(), Wrong> {
        let start = self.at;
        let negative = self.peek() == Some(b'-');
        if negative {
            self.at += 1;
        }
        let first = self.at;
        let mut digits = self.digits(0)?;
        let mut count = self.at - first;
        if count > 1 && self.text[first] == b'0' {
            return Err(Wrong(first, "a number begins with a superfluous zero"));
        }
        let mut fraction = None;
        if self.peek() == Some(b'.') {
            self.at += 1;
            let begin = self.at;
            digits = self.digits(digits)?;
            fraction = Some(self.at - begin);
            count += self.at - begin;
        }
        let mut exponent = false;
        if let Some(b'e' | b'E') = self.peek() {
            exponent = true;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits(0)?;
        }
        let (kind, bits) = match fraction {
            _ if exponent || count > EXACT_DIGITS => self.long_number(start),
            None if negative && digits == 0 => Some((Kind::Number, (-0.0_f64).to_bits())),
            None => {
                let bits = if negative {
                    digits.wrapping_neg()
                } else {
                    digits
                };
                Some((Kind::Integer, bits))
            }
            Some(places) if digits < 1 << f64::MANTISSA_DIGITS => {
                // Both are exact, so their quotient is rounded once: Clinger, "How to read floating point numbers
                // accurately".
                #[allow(clippy::cast_precision_loss)]
                let number = digits as f64 / TENS[places];
                let number = if negative { -number } else { number };
                Some((Kind::Number, number.to_bits()))
            }
            Some(_) => self.long_number(start),
        }
        .ok_or(Wrong(start, "a number is out of range"))?;
        self.tree.scalar(kind, bits);
        Ok(())
    }

    /// Reads at least one digit, and appends them to the number `before`; the result is wrong if there are too many.
    fn digits(&mut self, before: u64) -> Result<u64, Wrong> {
        let start = self.at;
        let mut number = before;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            number = number
                .wrapping_mul(10)
                .wrapping_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        if self.at == start {
            return Err(self.unexpected("a digit is missing"));
        }
        Ok(number)
    }

    /// The number that begins at `start` and ends here; `None` if it is out of range.
    #[inline(never)]
    fn long_number(&self, start: usize) -> Option<(Kind, u64)> {
        let text = std::str::from_utf8(&self.text[start..self.at]).ok()?;
        if let Ok(integer) = text.parse::<i64>() {
            return Some((Kind::Integer, integer as u64));
        }
        let number = text.parse::<f64>().ok().filter(|n| n.is_finite())?;
        Some((Kind::Number, number.to_bits()))
    }

    #[inline(always)]
    fn string(&mut self) -> Result<(), Wrong> {
        self.at += 1;
        let start = self.at;
        let end = self.plain();
        match self.text.get(end) {
            Some(b'"') => {
                self.at = end + 1;
                self.tree.slice(Kind::String, start, end - start);
                Ok(())
            }
            Some(b'\\') => self.escaped(start),
            Some(_) => Err(Wrong(end, "a control character in a string")),
            None => Err(Wrong(end, ENDED)),
        }
    }

    /// The end of the text that needs no decoding: at a quote, a backslash, a control character or the end of the
    /// input.
    fn plain(&self) -> usize {
        /// Has a bit set in each byte that ends the search. A byte of a multi-byte character is above 0x7f and never
        /// does.
        fn special(word: u64) -> u64 {
            const LOW: u64 = 0x0101_0101_0101_0101;
            const HIGH: u64 = 0x8080_8080_8080_8080;
            let zero = |x: u64| x.wrapping_sub(LOW) & !x & HIGH;
            let control = word.wrapping_sub(LOW * 0x20) & !word & HIGH;
            zero(word ^ (LOW * 0x22)) | zero(word ^ (LOW * 0x5c)) | control
        }
        let mut rest = &self.text[self.at..];
        while let Some((eight, behind)) = rest.split_first_chunk() {
            let found = special(u64::from_le_bytes(*eight));
            if found != 0 {
                // The lowest hit is exact; borrows cause false hits only above it.
                return self.text.len() - rest.len() + (found.trailing_zeros() / 8) as usize;
            }
            rest = behind;
        }
        let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
        let more = rest.iter().position(is_special).unwrap_or(rest.len());
        self.text.len() - rest.len() + more
    }

    /// The rest of a string with escapes; it begins at `start`.
    #[inline(never)]
    fn escaped(&mut self, start: usize) -> Result<(), Wrong> {
        let decoded = self.tree.arena.len();
        self.at = start;
        loop {
            let end = self.plain();
            self.tree.arena.extend_from_slice(&self.text[self.at..end]);
            self.at = end;
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                Some(_) => return Err(Wrong(end, "a control character in a string")),
                None => return Err(Wrong(end, ENDED)),
            }
        }
        self.at += 1;
        self.tree.decoded(Kind::String, decoded);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Wrong> {
        let start = self.at;
        let byte = match self.text.get(start + 1) {
            Some(b'u') => {
                self.at += 2;
                return self.unicode(start);
            }
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(&same @ (b'"' | b'\\' | b'/')) => same,
            Some(_) => return Err(Wrong(start, "an unknown escape")),
            None => return Err(Wrong(start + 1, ENDED)),
        };
        self.tree.arena.push(byte);
        self.at += 2;
        Ok(())
    }

    fn unicode(&mut self, start: usize) -> Result<(), Wrong> {
        let mut code = self.hex(start)?;
        if (0xd800..0xdc00).contains(&code) && self.text[self.at..].starts_with(b"\\u") {
            self.at += 2;
            let low = self.hex(start)?;
            if (0xdc00..0xe000).contains(&low) {
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            }
        }
        let character =
            char::from_u32(code).ok_or(Wrong(start, "half of a surrogate pair in a string"))?;
        let mut bytes = [0; 4];
        self.tree
            .arena
            .extend_from_slice(character.encode_utf8(&mut bytes).as_bytes());
        Ok(())
    }

    fn hex(&mut self, start: usize) -> Result<u32, Wrong> {
        let digits = self
            .text
            .get(self.at..self.at + 4)
            .ok_or(Wrong(self.text.len(), ENDED))?;
        let mut code = 0;
        for &digit in digits {
            let value = (digit as char)
                .to_digit(16)
                .ok_or(Wrong(start, "an unknown escape"))?;
            code = code * 16 + value;
        }
        self.at += 4;
        Ok(code)
    }
}
