//! Finds the files in a form (`multipart/form-data`, RFC 7578) that arrives in pieces of any size.
//!
//! PHP, which parses the form, decides what it means. So only those files are found here that every parser finds in the
//! same place: from the first ambiguous byte on, the rest of the form is text, including its files.
//!
//! ```text
//!   Line ──boundary──► Head ──of a file or a field──► Content ──next boundary──► Line
//!     └──anything else───┴──anything else──► Text (to the end)
//! ```

use std::io;

use memchr::{memchr, memmem, memrchr};

/// Maximum bytes of the head of a part.
const MAX_HEAD: usize = 4096;

/// The longest valid boundary (RFC 2046, 5.1.1).
const MAX_BOUNDARY: usize = 70;

/// What a piece of a form is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// Everything but the content of files.
    Text(&'a [u8]),
    /// Here a file begins.
    File,
    /// More of its content.
    Content(&'a [u8]),
}

/// Scans one form.
#[derive(Debug)]
pub struct Scanner {
    /// The bytes before each part but the first: a line feed and the boundary.
    delimiter: Vec<u8>,
    state: State,
    /// The part's head as far as it was received; or the last bytes of its content, if they may be the beginning of a
    /// delimiter.
    held: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The line of a boundary, of which this number of bytes was received.
    Line(usize),
    Head,
    Content {
        file: bool,
        begun: bool,
    },
    Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Field,
    File,
    Unclear,
}

impl Scanner {
    /// A scanner for a body of this type; `None` if it is not a form, or not written as browsers and libraries do.
    pub fn new(content_type: &[u8]) -> Option<Scanner> {
        const TYPE: &[u8] = b"multipart/form-data";
        let (start, rest) = content_type.split_at_checked(TYPE.len())?;
        let rest = rest.strip_prefix(b";")?.trim_ascii_start();
        let boundary = rest.strip_prefix(b"boundary=")?;
        let boundary = boundary
            .strip_prefix(b"\"")
            .map_or(Some(boundary), |quoted| quoted.strip_suffix(b"\""))?;
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
        let usual = start.eq_ignore_ascii_case(TYPE)
            && (1..=MAX_BOUNDARY).contains(&boundary.len())
            && boundary.iter().all(plain);
        usual.then(|| Scanner {
            delimiter: [b"\n--", boundary].concat(),
            state: State::Line(0),
            held: Vec::new(),
        })
    }

    /// Scans the next piece. All bytes are passed to `tell` sooner or later, in order.
    pub(crate) fn push(
        &mut self,
        mut data: &[u8],
        tell: &mut impl FnMut(Found<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        while !data.is_empty() {
            let used = match self.state {
                State::Line(at) => self.line(at, data, tell)?,
                State::Head => self.head(data, tell)?,
                State::Content { file, begun: false } => self.begin(file, data, tell)?,
                State::Content { file, begun: true } => self.content(file, data, tell)?,
                State::Text => {
                    tell(Found::Text(data))?;
                    data.len()
                }
            };
            data = &data[used..];
        }
        Ok(())
    }

    /// The form ends here.
    pub(crate) fn finish(
        &mut self,
        tell: &mut impl FnMut(Found<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Content {
                file: true,
                begun: true,
            } => tell(Found::Content(&held)),
            _ => tell(Found::Text(&held)),
        }
    }

    fn line(
        &mut self,
        at: usize,
        data: &[u8],
        tell: &mut impl FnMut(Found<'_>) -> io::Result<()>,
    ) -> io::Result<usize> {
        let boundary = &self.delimiter[1..];
        let expected = boundary.iter().chain(b"\r\n").skip(at);
        let same = expected.zip(data).take_while(|(a, b)| a == b).count();
        self.state = if at + same == boundary.len() + 2 {
            State::Head
        } else if same == data.len() {
            State::Line(at + same)
        } else {
            State::Text
        };
        tell(Found::Text(&data[..same]))?;
        Ok(same)
    }

    fn head(
        &mut self,
        data: &[u8],
        tell: &mut impl FnMut(Found<'_>) -> io::Result<()>,
    ) -> io::Result<usize> {
        let Some(end) = memchr(b'\n', data) else {
            self.held.extend_from_slice(data);
            if self.held.len() > MAX_HEAD {
                self.release(State::Text, tell)?;
            }
            return Ok(data.len());
        };
        self.held.extend_from_slice(&data[..=end]);
        if self.held.len() > MAX_HEAD {
            self.release(State::Text, tell)?;
        } else if self.held == b"\r\n" || self.held.ends_with(b"\n\r\n") {
            let next = match kind(&self.held) {
                Part::Unclear => State::Text,
                part => State::Content {
                    file: part == Part::File,
                    begun: false,
                },
            };
            self.release(next, tell)?;
        }
        Ok(end + 1)
    }

    /// Reports the held bytes as text.
    fn release(
        &mut self,
        next: State,
        tell: &mut impl FnMut(Found<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.state = next;
        tell(Found::Text(&self.held))?;
        self.held.clear();
        Ok(())
    }

    /// A boundary directly after a head is ambiguous: some parsers take it for a boundary, some for content.
    fn begin(
        &mut self,
        file: bool,
        data: &[u8],
        tell: &mut impl FnMut(Found<'_>) -> io::Result<()>,
    ) -> io::Result<usize> {
        let boundary = &self.delimiter[1..];
        let used = data.len().min(boundary.len() - self.held.len());
        self.held.extend_from_slice(&data[..used]);
        if self.held == boundary {
            self.release(State::Text, tell)?;
        } else if !boundary.starts_with(&self.held) {
            if file {
                tell(Found::File)?;
            }
            self.state = State::Content { file, begun: true };
            // Scan the held bytes first, as always.
            let held = std::mem::take(&mut self.held);
            self.push(&held, tell)?;
        }
        Ok(used)
    }

    fn content(
        &mut self,
        file: bool,
        data: &[u8],
        tell: &mut impl FnMut(Found<'_>) -> io::Result<()>,
    ) -> io::Result<usize> {
        if self.held.is_empty() {
            return self.find(file, data, tell);
        }
        // The held bytes, and as many after them as are needed to recognize a delimiter.
        let before = self.held.len();
        let more = data.len().min(self.delimiter.len() + 1);
        let mut joint = std::mem::take(&mut self.held);
        joint.extend_from_slice(&data[..more]);
        if more == data.len() || memmem::find(&joint, &self.delimiter).is_some() {
            let used = self.find(file, &joint, tell)?;
            return Ok(used - before);
        }
        tell(content(file, &joint[..before]))?;
        Ok(0)
    }

    /// Reports content up to the next delimiter, or to what may be its beginning, which is held. Returns how many bytes
    /// of `data` are handled: never fewer than were held before.
    fn find(
        &mut self,
        file: bool,
        data: &[u8],
        tell: &mut impl FnMut(Found<'_>) -> io::Result<()>,
    ) -> io::Result<usize> {
        let Some(at) = memmem::find(data, &self.delimiter) else {
            let end = data.len() - self.unsure(data);
            tell(content(file, &data[..end]))?;
            self.held.extend_from_slice(&data[end..]);
            return Ok(data.len());
        };
        let end = at - usize::from(data[..at].ends_with(b"\r"));
        let next = at + self.delimiter.len();
        tell(content(file, &data[..end]))?;
        tell(Found::Text(&data[end..next]))?;
        self.state = State::Line(self.delimiter.len() - 1);
        Ok(next)
    }

    /// How many bytes at the end of `data` may be the beginning of a delimiter, with the carriage return before it.
    fn unsure(&self, data: &[u8]) -> usize {
        let tail = &data[data.len().saturating_sub(self.delimiter.len())..];
        let start = match memrchr(b'\n', tail) {
            Some(at) if self.delimiter.starts_with(&tail[at..]) => at,
            _ => tail.len(),
        };
        let before = data.len() - (tail.len() - start);
        tail.len() - start + usize::from(data[..before].ends_with(b"\r"))
    }
}

fn content(file: bool, data: &[u8]) -> Found<'_> {
    if file {
        Found::Content(data)
    } else {
        Found::Text(data)
    }
}

/// The kind of a part, from its head including the empty line.
fn kind(head: &[u8]) -> Part {
    let mut found = Part::Unclear;
    let lines = head.strip_suffix(b"\r\n").unwrap_or(head);
    for line in lines.split_inclusive(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r\n").unwrap_or(b"");
        let Some(colon) = memchr(b':', line) else {
            return Part::Unclear;
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii_start());
        let token = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        if !name.iter().all(token) || value.iter().any(u8::is_ascii_control) {
            return Part::Unclear;
        }
        if name.eq_ignore_ascii_case(b"Content-Disposition") {
            match (found, disposition(value)) {
                (Part::Unclear, Some(part)) => found = part,
                _ => return Part::Unclear,
            }
        }
    }
    found
}

/// `form-data; name="…"; filename="…"`, nothing else, and nothing to unescape in it.
fn disposition(value: &[u8]) -> Option<Part> {
    let mut rest = value.strip_prefix(b"form-data")?;
    let (mut name, mut filename) = (None, None);
    while !rest.is_empty() {
        rest = rest.strip_prefix(b"; ")?;
        let slot = if let Some(next) = rest.strip_prefix(b"name=\"") {
            rest = next;
            &mut name
        } else {
            rest = rest.strip_prefix(b"filename=\"")?;
            &mut filename
        };
        let (text, next) = rest.split_at(memchr(b'"', rest)?);
        if text.contains(&b'\\') || slot.replace(text).is_some() {
            return None;
        }
        rest = &next[1..];
    }
    match (name?, filename) {
        (b"", _) | (_, Some(b"")) => None,
        (_, Some(_)) => Some(Part::File),
        (_, None) => Some(Part::Field),
    }
}

#[cfg(test)]
#[path = "form_tests.rs"]
mod tests;
