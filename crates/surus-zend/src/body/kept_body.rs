//! Request bodies that the server has stored in files.
//!
//! PHP reads a form with a parser of its own, which writes each uploaded file a second time. If the server has stored
//! the file separately, the parser reads a mark in its place, and later gets the file: see `csrc/http/form_files.c`.

use std::{
    any::Any,
    collections::VecDeque,
    fmt,
    fs::File,
    hash::{BuildHasher, RandomState},
    io::{self, Read},
    os::unix::fs::FileExt,
    path::PathBuf,
    rc::Rc,
};

use super::hand_over::Lent;

/// Bytes of a mark.
const MARK: usize = 24;

/// Bytes that are read at a time: few enough to stay in the processor's cache until PHP has read them.
const BLOCK: usize = 64 * 1024;

/// Bytes that are read before other tasks get a turn.
const TURN: usize = 256 * 1024;

/// A file with a body or a part of it.
pub trait KeptFile: fmt::Debug {
    /// Open for reading.
    fn file(&self) -> &File;

    /// Passes it to PHP. Returns its name, if it has one.
    fn lend(&mut self) -> Option<PathBuf>;

    /// An unused name, in the folder of files that PHP has returned.
    ///
    /// # Errors
    /// Errors of the file system.
    fn spare_name(&self) -> io::Result<PathBuf>;

    /// PHP does not need it any more. It has this name now, and is open nowhere else.
    fn give_back(&mut self, name: PathBuf);
}

/// A piece of a body.
#[derive(Debug)]
pub enum KeptPiece {
    /// This number of bytes of the file with all the text.
    Text(u64),
    /// An uploaded file, and its number of bytes.
    File(Box<dyn KeptFile>, u64),
}

/// A whole body. Reading it returns all its bytes in order, whatever file they are in.
pub struct KeptBody {
    text: Box<dyn KeptFile>,
    pieces: VecDeque<KeptPiece>,
    /// The number of bytes that were read of the text, and of the current file.
    read: [u64; 2],
    marks: Option<Marks>,
    /// The unread part of a mark.
    unread: Vec<u8>,
    /// For a body in one file that is read by position: the block that was read last, and its position.
    block: Vec<u8>,
    block_at: u64,
    /// Bytes since other tasks had a turn.
    turn: usize,
    /// Files that PHP has.
    lent: Rc<Lent>,
    /// Dropped with the body: the server counts bodies by it.
    _guard: Box<dyn Any>,
}

/// The files that marks have replaced.
struct Marks {
    /// The prefix of this body's marks.
    start: String,
    files: Vec<Option<(Box<dyn KeptFile>, u64)>>,
}

impl KeptBody {
    /// `text` has all bytes outside of uploaded files; `guard` is dropped with the body.
    pub fn new(
        text: Box<dyn KeptFile>,
        pieces: impl IntoIterator<Item = KeptPiece>,
        guard: impl Any,
    ) -> Self {
        KeptBody {
            text,
            pieces: pieces.into_iter().collect(),
            read: [0; 2],
            marks: None,
            unread: Vec::new(),
            block: Vec::new(),
            block_at: 0,
            turn: 0,
            lent: Rc::default(),
            _guard: Box::new(guard),
        }
    }

    /// The length of the body, if it is one file and still unread. Then it is read with [`KeptBody::read_at`].
    pub(crate) fn take_whole(&mut self) -> Option<u64> {
        let [KeptPiece::Text(length)] = *self.pieces.make_contiguous() else {
            return None;
        };
        if self.read[0] > 0 {
            return None;
        }
        self.pieces.clear();
        Some(length)
    }

    /// True if other tasks must get a turn before more is read.
    pub(crate) fn ends_turn(&mut self) -> bool {
        let ends = self.turn >= TURN;
        if ends {
            self.turn = 0;
        }
        ends
    }

    /// Reads bytes from `position` on: at least one, unless it is the end.
    pub(crate) fn read_at(&mut self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let end = self.block_at + self.block.len() as u64;
        if !(self.block_at..end).contains(&position) {
            self.block.resize(BLOCK, 0);
            let read = read_at(self.text.file(), &mut self.block, position);
            self.block.truncate(*read.as_ref().unwrap_or(&0));
            self.block_at = position;
            self.turn += read?;
        }
        let start = usize::try_from(position - self.block_at).unwrap_or(usize::MAX);
        let found = self.block.get(start..).unwrap_or_default();
        let size = found.len().min(buffer.len());
        buffer[..size].copy_from_slice(&found[..size]);
        Ok(size)
    }

    /// From now on there are marks in the place of files. A client gains nothing by guessing a mark: it could only swap
    /// its own files.
    pub(crate) fn mark_files(&mut self) {
        if self.read != [0; 2] || self.marks.is_some() {
            return;
        }
        let random = RandomState::new().hash_one(0);
        self.marks = Some(Marks {
            start: format!("surus-{random:016x}"),
            files: Vec::new(),
        });
    }

    /// The file in whose place this mark was, and its length.
    pub(crate) fn take_marked(&mut self, mark: &[u8]) -> Option<(Box<dyn KeptFile>, u64)> {
        if mark.len() != MARK {
            return None;
        }
        let marks = self.marks.as_mut()?;
        let number = mark.strip_prefix(marks.start.as_bytes())?;
        let number: usize = std::str::from_utf8(number).ok()?.parse().ok()?;
        marks.files.get_mut(number)?.take()
    }

    /// The list of its files that PHP has.
    pub(crate) fn lent(&self) -> &Rc<Lent> {
        &self.lent
    }
}

impl Read for KeptBody {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.unread.is_empty() {
                let size = self.unread.len().min(buffer.len());
                buffer[..size].copy_from_slice(&self.unread[..size]);
                self.unread.drain(..size);
                return Ok(size);
            }
            if let (Some(marks), Some(KeptPiece::File(_, 1..))) =
                (&mut self.marks, self.pieces.front())
            {
                self.unread = format!("{}{:02}", marks.start, marks.files.len()).into_bytes();
                if let Some(KeptPiece::File(file, length)) = self.pieces.pop_front() {
                    marks.files.push(Some((file, length)));
                }
                continue;
            }
            let (file, left, at) = match self.pieces.front_mut() {
                None => return Ok(0),
                Some(KeptPiece::Text(left)) => (self.text.file(), left, &mut self.read[0]),
                Some(KeptPiece::File(file, left)) => (file.file(), left, &mut self.read[1]),
            };
            if *left == 0 {
                self.read[1] = 0;
                self.pieces.pop_front();
                continue;
            }
            let wanted = buffer
                .len()
                .min(usize::try_from(*left).unwrap_or(usize::MAX));
            let size = read_at(file, &mut buffer[..wanted], *at)?;
            if size == 0 && wanted > 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            *left -= size as u64;
            *at += size as u64;
            return Ok(size);
        }
    }
}

fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, position) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

impl fmt::Debug for KeptBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptBody")
            .field("pieces", &self.pieces)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[derive(Debug)]
    struct Plain(File);

    impl KeptFile for Plain {
        fn file(&self) -> &File {
            &self.0
        }

        fn lend(&mut self) -> Option<PathBuf> {
            None
        }

        fn spare_name(&self) -> io::Result<PathBuf> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn give_back(&mut self, _: PathBuf) {}
    }

    fn file(content: &str) -> Box<dyn KeptFile> {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(content.as_bytes()).expect("written");
        Box::new(Plain(file))
    }

    fn body() -> KeptBody {
        let pieces = [
            KeptPiece::Text(4),
            KeptPiece::File(file("one"), 3),
            KeptPiece::File(file(""), 0),
            KeptPiece::Text(3),
            KeptPiece::File(file("two!"), 4),
        ];
        KeptBody::new(file("head/mid"), pieces, ())
    }

    fn read(body: &mut KeptBody, size: usize) -> String {
        let (mut all, mut buffer) = (Vec::new(), vec![0; size]);
        loop {
            match body.read(&mut buffer).expect("read") {
                0 => return String::from_utf8(all).expect("text"),
                size => all.extend_from_slice(&buffer[..size]),
            }
        }
    }

    #[test]
    fn a_body_is_read_as_it_came() {
        for size in 1..20 {
            assert_eq!(read(&mut body(), size), "headone/mitwo!");
        }
    }

    #[test]
    fn marks_lead_to_files() {
        for size in 1..60 {
            let mut body = body();
            body.mark_files();
            let text = read(&mut body, size);
            let (first, second) = (&text[4..4 + MARK], &text[text.len() - MARK..]);
            assert_eq!(text, format!("head{first}/mi{second}"));
            assert!(body.take_marked(&second.as_bytes()[1..]).is_none());
            assert_eq!(body.take_marked(second.as_bytes()).expect("a file").1, 4);
            assert!(body.take_marked(second.as_bytes()).is_none(), "twice");
            assert_eq!(body.take_marked(first.as_bytes()).expect("a file").1, 3);
        }
    }

    #[test]
    fn one_file_is_taken_whole() {
        let mut whole = KeptBody::new(file("all"), [KeptPiece::Text(3)], ());
        assert_eq!(whole.take_whole(), Some(3));
        assert_eq!(read(&mut whole, 10), "");
        let mut buffer = [0; 2];
        for (position, text) in [(0, "al"), (2, "l"), (1, "ll"), (3, ""), (9, "")] {
            let size = whole.read_at(position, &mut buffer).expect("read");
            assert_eq!(&buffer[..size], text.as_bytes(), "at {position}");
        }
        assert!(body().take_whole().is_none());
    }

    #[test]
    fn what_is_missing_is_an_error() {
        let mut short = KeptBody::new(file("all"), [KeptPiece::Text(4)], ());
        assert!(io::read_to_string(&mut short).is_err());
    }
}
