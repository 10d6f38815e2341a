//! Decodes a chunked body (RFC 9112, 7.1), whose input may be split anywhere. Every line must end in CRLF, except
//! trailers: no request follows them on the connection anyway.

use bytes::{Buf, Bytes, BytesMut};
use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::Limits;

/// Bytes of extensions and leading zeros that every body may have; more than that only with the same number of bytes of
/// data.
const EXTRA: u64 = 16 * 1024;

/// No file is larger than this either, and other implementations do not understand larger chunks.
const LARGEST: u64 = i64::MAX as u64;

/// The input is not a valid chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

#[derive(Debug)]
pub(crate) enum Decoded {
    Data(Bytes),
    /// All has been decoded; these fields followed.
    End(Option<HeaderMap>),
}

/// How far a body has been decoded.
#[derive(Debug)]
pub(crate) struct Chunks {
    at: At,
    /// Bytes of data.
    data: u64,
    /// Bytes of extensions and leading zeros.
    extra: u64,
    most_trailers: usize,
    most_trailer_bytes: usize,
}

/// What comes next.
#[derive(Debug)]
enum At {
    /// The first digit of a size.
    Begin,
    Size(u64),
    /// White space after the size.
    Space(u64),
    Extension(u64),
    /// LF.
    SizeEnd(u64),
    Data(u64),
    DataCr,
    DataLf,
    /// The lines after the last chunk: those received, and where the last of them begins.
    Trailers(Vec<u8>, usize),
}

impl Chunks {
    pub(crate) fn new(limits: &Limits) -> Self {
        Chunks {
            at: At::Begin,
            data: 0,
            extra: 0,
            most_trailers: limits.header_count,
            most_trailer_bytes: limits.header_bytes,
        }
    }

    /// Takes the next piece from the beginning of `input`. `None`: all of `input` was taken, and more is needed.
    ///
    /// # Errors
    /// The body is malformed: what follows it must not be interpreted.
    pub(crate) fn decode(&mut self, input: &mut BytesMut) -> Result<Option<Decoded>, Malformed> {
        loop {
            match &mut self.at {
                At::Data(left) => {
                    if input.is_empty() {
                        return Ok(None);
                    }
                    let count = usize::try_from(*left).unwrap_or(usize::MAX);
                    let count = count.min(input.len());
                    *left -= count as u64;
                    if *left == 0 {
                        self.at = At::DataCr;
                    }
                    self.data += count as u64;
                    return Ok(Some(Decoded::Data(input.split_to(count).freeze())));
                }
                At::Trailers(lines, begin) => {
                    let Some(end) = memchr::memchr(b'\n', input) else {
                        lines.extend_from_slice(input);
                        input.clear();
                        return match lines.len() > self.most_trailer_bytes {
                            true => Err(Malformed),
                            false => Ok(None),
                        };
                    };
                    lines.extend_from_slice(&input[..=end]);
                    input.advance(end + 1);
                    if lines.len() > self.most_trailer_bytes {
                        return Err(Malformed);
                    }
                    match &lines[*begin..] {
                        b"\r\n" if *begin == 0 => return Ok(Some(Decoded::End(None))),
                        b"\r\n" => {
                            let fields = fields(lines, self.most_trailers)?;
                            return Ok(Some(Decoded::End(Some(fields))));
                        }
                        b"\n" => return Err(Malformed),
                        _ => *begin = lines.len(),
                    }
                }
                _ => {
                    let Some(&byte) = input.first() else {
                        return Ok(None);
                    };
                    input.advance(1);
                    self.step(byte)?;
                }
            }
        }
    }

    /// Handles one byte that is not data.
    fn step(&mut self, byte: u8) -> Result<(), Malformed> {
        let (next, is_extra) = match (&self.at, byte) {
            (At::Begin, digit) => (At::Size(add(0, digit)?), false),
            (At::Size(size) | At::Space(size), b';') => (At::Extension(*size), true),
            (At::Size(size) | At::Space(size), b' ' | b'\t') => (At::Space(*size), true),
            (At::Size(size) | At::Space(size) | At::Extension(size), b'\r') => {
                (At::SizeEnd(*size), false)
            }
            (At::Size(size), digit) => (At::Size(add(*size, digit)?), *size == 0),
            (At::Extension(size), _) if byte != b'\n' => (At::Extension(*size), true),
            (At::SizeEnd(0), b'\n') => (At::Trailers(Vec::new(), 0), false),
            (At::SizeEnd(size), b'\n') => (At::Data(*size), false),
            (At::DataCr, b'\r') => (At::DataLf, false),
            (At::DataLf, b'\n') => (At::Begin, false),
            _ => return Err(Malformed),
        };
        self.at = next;
        self.extra += u64::from(is_extra);
        match self.extra > EXTRA + self.data {
            true => Err(Malformed),
            false => Ok(()),
        }
    }
}

/// Appends a digit to a size.
fn add(size: u64, digit: u8) -> Result<u64, Malformed> {
    let digit = char::from(digit).to_digit(16).ok_or(Malformed)?;
    let size = size.checked_mul(16).ok_or(Malformed)? + u64::from(digit);
    match size > LARGEST {
        true => Err(Malformed),
        false => Ok(size),
    }
}

fn fields(lines: &[u8], most: usize) -> Result<HeaderMap, Malformed> {
    let mut parsed = vec![httparse::EMPTY_HEADER; most];
    let Ok(httparse::Status::Complete((_, parsed))) = httparse::parse_headers(lines, &mut parsed)
    else {
        return Err(Malformed);
    };
    let mut fields = HeaderMap::new();
    for field in parsed {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| Malformed)?;
        let value = HeaderValue::from_bytes(field.value).map_err(|_| Malformed)?;
        fields.append(name, value);
    }
    Ok(fields)
}
