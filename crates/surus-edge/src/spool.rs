//! Request bodies that are read to their end before a backend begins: what is small to memory, what is not to a file that
//! has no name any more. A slow client then occupies a buffer or a file, and no PHP.
//!
//! Files are written by helper threads, a block at a time while the next one is read, so memory stays flat and a disk
//! that is slow holds up the upload only.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::{BodyError, BoxError, RequestBody};

/// Bytes per write to a file.
const BLOCK: usize = 128 * 1024;

/// Helper threads that write at a time: more would only wait for each other.
const WRITERS: usize = 4;

/// The bounds of [`Spool`].
#[derive(Clone, Debug)]
pub struct SpoolLimits {
    /// A body of more bytes goes to a file.
    pub memory_each: usize,
    /// Bytes of memory of all bodies that are being read; beyond that each goes to its file at once.
    pub memory: u64,
    /// Bytes of all files (503).
    pub disk: u64,
    pub folder: PathBuf,
}

impl Default for SpoolLimits {
    fn default() -> Self {
        SpoolLimits {
            memory_each: 256 * 1024,
            memory: 64 << 20,
            disk: 4 << 30,
            folder: std::env::temp_dir(),
        }
    }
}

/// Where the bodies of one worker are kept.
#[derive(Debug)]
pub struct Spool {
    limits: SpoolLimits,
    memory: Rc<Cell<u64>>,
    disk: Rc<Cell<u64>>,
    writers: Arc<Semaphore>,
}

/// A whole request body.
#[derive(Debug)]
pub enum Spooled {
    Memory(Bytes),
    File(SpooledFile),
}

/// A body in a file, to be read from its beginning. Its room on the disk is free again when it is dropped.
#[derive(Debug)]
pub struct SpooledFile {
    file: File,
    length: u64,
    _share: Share,
}

impl SpooledFile {
    /// Bytes.
    pub fn len(&self) -> u64 {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl Read for SpooledFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

/// Bytes that count against a bound until this is dropped.
#[derive(Debug)]
struct Share {
    used: Rc<Cell<u64>>,
    bytes: u64,
}

impl Share {
    fn of(used: &Rc<Cell<u64>>) -> Self {
        Share {
            used: Rc::clone(used),
            bytes: 0,
        }
    }

    /// False, and nothing is added, where that would pass `limit`.
    fn add(&mut self, bytes: u64, limit: u64) -> bool {
        let sum = self.used.get().saturating_add(bytes);
        if sum > limit {
            return false;
        }
        self.used.set(sum);
        self.bytes += bytes;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.used.set(self.used.get() - self.bytes);
    }
}

impl Spool {
    pub fn new(limits: SpoolLimits) -> Self {
        Spool {
            limits,
            memory: Rc::default(),
            disk: Rc::default(),
            writers: Arc::new(Semaphore::new(WRITERS)),
        }
    }

    /// True for a body that is short, and says so: it will be kept in memory, if there is room.
    pub fn holds(&self, body: &RequestBody) -> bool {
        body.announced()
            .is_some_and(|length| length <= self.limits.memory_each as u64)
    }

    /// Reads `body` to its end.
    ///
    /// # Errors
    /// A [`BodyError`] where a bound is reached; else what the client or the disk did wrong.
    pub async fn read(&self, mut body: RequestBody) -> Result<Spooled, BoxError> {
        let Some(first) = next(&mut body).await? else {
            return Ok(Spooled::Memory(Bytes::new()));
        };
        if body.is_end_stream() {
            // It came in one piece, as most do: nothing is copied.
            return Ok(Spooled::Memory(first));
        }
        let mut share = Share::of(&self.memory);
        let mut read = BytesMut::new();
        let mut chunk = first;
        loop {
            let length = read.len() + chunk.len();
            let fits = length <= self.limits.memory_each
                && share.add(chunk.len() as u64, self.limits.memory);
            read.extend_from_slice(&chunk);
            if !fits {
                return self.to_file(read, share, body).await.map(Spooled::File);
            }
            match next(&mut body).await? {
                Some(next) => chunk = next,
                None => return Ok(Spooled::Memory(read.freeze())),
            }
        }
    }

    async fn to_file(
        &self,
        mut block: BytesMut,
        mut memory: Share,
        mut body: RequestBody,
    ) -> Result<SpooledFile, BoxError> {
        let mut share = Share::of(&self.disk);
        if let Some(length) = body.announced() {
            // What is announced must fit before it is sent for nothing.
            self.reserve(&mut share, length)?;
        }
        let mut reserved = share.bytes;
        let folder = self.limits.folder.clone();
        let mut file = self.helper(move || tempfile::tempfile_in(folder)).await;
        let mut length = 0;
        loop {
            let chunk = next(&mut body).await?;
            if let Some(chunk) = &chunk {
                block.extend_from_slice(chunk);
                if block.len() < BLOCK && memory.add(chunk.len() as u64, self.limits.memory) {
                    continue;
                }
            }
            length += block.len() as u64;
            if length > reserved {
                self.reserve(&mut share, length - reserved)?;
                reserved = length;
            }
            let mut open = written(file).await?;
            if chunk.is_none() {
                let last = block;
                let file = self
                    .helper(move || {
                        open.write_all(&last)?;
                        open.seek(SeekFrom::Start(0))?;
                        Ok(open)
                    })
                    .await;
                return Ok(SpooledFile {
                    file: written(file).await?,
                    length,
                    _share: share,
                });
            }
            memory = Share::of(&self.memory);
            let full = std::mem::replace(&mut block, BytesMut::new());
            file = self
                .helper(move || open.write_all(&full).map(|()| open))
                .await;
        }
    }

    fn reserve(&self, share: &mut Share, bytes: u64) -> Result<(), BoxError> {
        if share.add(bytes, self.limits.disk) {
            return Ok(());
        }
        Err(BodyError::NoRoom.into())
    }

    /// Begins work on a helper thread; does not wait for its end.
    async fn helper(
        &self,
        work: impl FnOnce() -> io::Result<File> + Send + 'static,
    ) -> JoinHandle<io::Result<File>> {
        // Never closed, so this is no error.
        let turn = Arc::clone(&self.writers).acquire_owned().await;
        tokio::task::spawn_blocking(move || {
            let result = work();
            drop(turn);
            result
        })
    }
}

async fn written(file: JoinHandle<io::Result<File>>) -> Result<File, BoxError> {
    let file = file.await.map_err(io::Error::other).and_then(|file| file);
    file.map_err(|error| {
        eprintln!("surus: cannot keep a request body: {error}");
        BodyError::NoRoom.into()
    })
}

/// The next bytes of a body.
async fn next(body: &mut RequestBody) -> Result<Option<Bytes>, BoxError> {
    loop {
        let frame = std::future::poll_fn(|cx| std::pin::Pin::new(&mut *body).poll_frame(cx)).await;
        match frame.transpose()? {
            None => return Ok(None),
            Some(frame) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
