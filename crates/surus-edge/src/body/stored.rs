//! A body in files: one file for everything except the files of a form, which are stored separately. None has a name
//! that others know.

use std::io::{self, IoSlice, Write};
use std::net::TcpStream;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::body::file_pool::{BodyFile, FilePool};
use crate::body::form::{Found, Scanner};
use crate::os::splice::{Moved, Splicer};

/// Files of one body that are stored separately: as many as PHP accepts in one form by default.
const MAX_APART: usize = 20;

/// A stored body, to be read piece by piece from its beginning.
#[derive(Debug)]
pub struct Kept {
    /// All the text (everything but separate files).
    pub text: BodyFile,
    /// In the order of the body.
    pub pieces: Vec<Piece>,
}

/// The next piece of a body.
#[derive(Debug)]
pub enum Piece {
    /// This number of bytes of the text.
    Text(u64),
    /// A file with this number of bytes. It is counted until the permit is dropped.
    File(BodyFile, u64, OwnedSemaphorePermit),
}

/// Writes a body to files. Blocks, so not for the thread that runs PHP.
#[derive(Debug)]
pub(crate) struct Keeper {
    form: Option<Scanner>,
    output: Output,
}

#[derive(Debug)]
struct Output {
    kept: Kept,
    /// Bytes of the last piece that are not written yet: a single write for all is cheapest.
    waiting: Vec<Bytes>,
    spares: FilePool,
    /// Bounds the number of separate files.
    apart: Arc<Semaphore>,
    files: usize,
}

impl Keeper {
    pub(crate) fn new(
        spares: FilePool,
        form: Option<Scanner>,
        apart: Arc<Semaphore>,
    ) -> io::Result<Keeper> {
        // A form with files has little text.
        let text = match form {
            Some(_) => spares.small_file()?,
            None => spares.file()?,
        };
        let kept = Kept {
            text,
            pieces: Vec::new(),
        };
        let output = Output {
            kept,
            waiting: Vec::new(),
            spares,
            apart,
            files: 0,
        };
        Ok(Keeper { form, output })
    }

    pub(crate) fn keep(&mut self, blocks: &[Bytes]) -> io::Result<()> {
        let output = &mut self.output;
        for block in blocks {
            match &mut self.form {
                Some(form) => form.push(block, &mut |found| output.take(found, block))?,
                None => output.take(Found::Text(block), block)?,
            }
        }
        output.write()
    }

    /// The offset in the current file at which the next bytes are written, or nearly.
    pub(crate) fn at(&self) -> u64 {
        match self.output.kept.pieces.last() {
            Some(Piece::Text(length) | Piece::File(_, length, _)) => *length,
            None => 0,
        }
    }

    /// How many of the next bytes [`Keeper::splice`] would write faster: they need not be scanned, and they overwrite
    /// old bytes. To splice bytes beyond the end of a file takes longer than to copy them.
    pub(crate) fn over(&self) -> Option<u64> {
        let at = self.at();
        let left = self.output.kept.text.length().saturating_sub(at);
        // Not before the first bytes, which create the piece.
        (self.form.is_none() && at > 0 && left > 0).then_some(left)
    }

    /// Writes bytes that a socket has received.
    pub(crate) fn splice(
        &mut self,
        splicer: &Splicer,
        from: &TcpStream,
        most: usize,
    ) -> io::Result<Moved> {
        let kept = &mut self.output.kept;
        let moved = splicer.pass(from, kept.text.file(), most)?;
        if let (Moved::Bytes(count), Some(Piece::Text(length))) = (&moved, kept.pieces.last_mut()) {
            *length += count;
        }
        Ok(moved)
    }

    pub(crate) fn finish(mut self) -> io::Result<Kept> {
        if let Some(form) = &mut self.form {
            let output = &mut self.output;
            form.finish(&mut |found| output.take(found, &Bytes::new()))?;
        }
        self.output.write()?;
        self.output.kept.end()?;
        Ok(self.output.kept)
    }
}

impl Kept {
    /// Cuts off the old contents of the files.
    fn end(&mut self) -> io::Result<()> {
        let mut text = 0;
        for piece in &mut self.pieces {
            match piece {
                Piece::Text(length) => text += *length,
                Piece::File(file, length, _) => file.end_at(*length)?,
            }
        }
        self.text.end_at(text)
    }
}

impl Output {
    /// `found` is part of `block`, or short.
    fn take(&mut self, found: Found<'_>, block: &Bytes) -> io::Result<()> {
        match (found, self.kept.pieces.last_mut()) {
            (Found::File, _) => self.begin_file(),
            (Found::Text(bytes), Some(Piece::Text(length)))
            | (Found::Content(bytes), Some(Piece::Text(length) | Piece::File(_, length, _))) => {
                *length += bytes.len() as u64;
                self.waiting.push(part_of(block, bytes));
                Ok(())
            }
            (Found::Text(bytes) | Found::Content(bytes), _) => {
                self.write()?;
                self.kept.pieces.push(Piece::Text(bytes.len() as u64));
                self.waiting.push(part_of(block, bytes));
                Ok(())
            }
        }
    }

    /// Begins a separate file. If there are too many, its content becomes text.
    fn begin_file(&mut self) -> io::Result<()> {
        if self.files == MAX_APART {
            return Ok(());
        }
        let Ok(permit) = Arc::clone(&self.apart).try_acquire_owned() else {
            return Ok(());
        };
        self.write()?;
        self.files += 1;
        let file = self.spares.file()?;
        self.kept.pieces.push(Piece::File(file, 0, permit));
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        let file = match self.kept.pieces.last_mut() {
            Some(Piece::File(file, ..)) => file,
            _ => &mut self.kept.text,
        };
        let mut file = file.file();
        let mut slices: Vec<_> = self
            .waiting
            .iter()
            .map(|bytes| IoSlice::new(bytes))
            .collect();
        let mut left = &mut slices[..];
        // Skips empty slices.
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            match file.write_vectored(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => IoSlice::advance_slices(&mut left, count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // This body is more important than pooled files for later ones.
                Err(error) if is_full(&error) && self.spares.make_room() => {}
                Err(error) => return Err(error),
            }
        }
        self.waiting.clear();
        Ok(())
    }
}

/// The file system is full, or the disk quota is exceeded.
fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// `bytes`, as a slice of `block` if they are a part of it, else copied.
fn part_of(block: &Bytes, bytes: &[u8]) -> Bytes {
    if block.as_ptr_range().contains(&bytes.as_ptr()) {
        block.slice_ref(bytes)
    } else {
        Bytes::copy_from_slice(bytes)
    }
}
