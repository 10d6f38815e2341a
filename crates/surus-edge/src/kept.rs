//! A body that is written down: one file of everything, except for the files of a form, which are kept apart. None has a
//! name.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::form::{Found, Scanner};

/// Files that are kept apart of one body: as many as PHP takes of one form by default.
const MAX_APART: usize = 20;

/// A written body, to be read from its beginning: piece by piece.
#[derive(Debug)]
pub struct Kept {
    /// All the text.
    pub text: File,
    pub pieces: Vec<Piece>,
}

/// What comes next in a body.
#[derive(Debug)]
pub enum Piece {
    /// So many bytes of the text.
    Text(u64),
    /// A file of so many bytes. It counts until the permit is dropped.
    File(File, u64, OwnedSemaphorePermit),
}

/// Writes a body down. Works with files: not for the thread that runs PHP.
#[derive(Debug)]
pub(crate) struct Keeper {
    form: Option<Scanner>,
    output: Output,
}

#[derive(Debug)]
struct Output {
    kept: Kept,
    folder: PathBuf,
    /// How many files there may be.
    apart: Arc<Semaphore>,
    files: usize,
}

impl Keeper {
    pub(crate) fn new(
        folder: PathBuf,
        form: Option<Scanner>,
        apart: Arc<Semaphore>,
    ) -> io::Result<Keeper> {
        let kept = Kept {
            text: tempfile::tempfile_in(&folder)?,
            pieces: Vec::new(),
        };
        let output = Output {
            kept,
            folder,
            apart,
            files: 0,
        };
        Ok(Keeper { form, output })
    }

    pub(crate) fn keep(&mut self, blocks: &[Bytes]) -> io::Result<()> {
        let output = &mut self.output;
        blocks.iter().try_for_each(|block| match &mut self.form {
            Some(form) => form.push(block, &mut |found| output.take(found)),
            None => output.text(block),
        })
    }

    pub(crate) fn finish(mut self) -> io::Result<Kept> {
        if let Some(form) = &mut self.form {
            form.finish(&mut |found| self.output.take(found))?;
        }
        Ok(self.output.kept)
    }
}

impl Output {
    fn take(&mut self, found: Found<'_>) -> io::Result<()> {
        match (found, self.kept.pieces.last_mut()) {
            (Found::Text(bytes), _) => self.text(bytes),
            (Found::File, _) => self.begin_file(),
            (Found::Content(bytes), Some(Piece::File(file, length, _))) => {
                *length += bytes.len() as u64;
                file.write_all(bytes)
            }
            // Too many files.
            (Found::Content(bytes), _) => self.text(bytes),
        }
    }

    fn text(&mut self, bytes: &[u8]) -> io::Result<()> {
        let more = bytes.len() as u64;
        match self.kept.pieces.last_mut() {
            Some(Piece::Text(length)) => *length += more,
            _ => self.kept.pieces.push(Piece::Text(more)),
        }
        self.kept.text.write_all(bytes)
    }

    fn begin_file(&mut self) -> io::Result<()> {
        if self.files == MAX_APART {
            return Ok(());
        }
        let Ok(permit) = Arc::clone(&self.apart).try_acquire_owned() else {
            return Ok(());
        };
        self.files += 1;
        let file = tempfile::tempfile_in(&self.folder)?;
        // Where it gets a name, it is nobody else's.
        file.set_permissions(Permissions::from_mode(0o600))?;
        self.kept.pieces.push(Piece::File(file, 0, permit));
        Ok(())
    }
}
