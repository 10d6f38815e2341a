//! Request bodies that are read to their end before a backend begins: what is small to memory, what is not to a file that
//! has no name any more. A slow client then occupies a buffer or a file, and no PHP.
//!
//! Files are written by helper threads, a block at a time while the next one is read, so memory stays flat and a disk
//! that is slow holds up the upload only.

use std::cell::Cell;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use http_body::Body;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::body::file_pool::FilePool;
use crate::body::form::Scanner;
use crate::body::offload::{Rest, Tools};
use crate::body::stored::{Keeper, Kept};
use crate::{BodyError, BoxError, RequestBody};

/// Bytes that a helper thread is given at a time.
const BLOCK: usize = 512 * 1024;

/// What comes in smaller pieces is put together: a piece may keep a buffer alive that is much larger.
const PIECE: usize = 8 * 1024;

/// Helper threads that write at a time: more would only wait for each other, and take turns with PHP's thread.
const WRITERS: usize = 2;

/// Bytes that a helper thread reads from a socket before others have their turn.
const JOB: u64 = 8 * 1024 * 1024;

/// Files of forms that are kept apart at a time. More are part of their forms.
const APART: usize = 256;

/// The bounds of [`Spool`].
#[derive(Clone, Debug)]
pub struct SpoolLimits {
    /// A body of more bytes goes to a file.
    pub memory_each: usize,
    /// Bytes of memory of all bodies that are being read; beyond that each goes to its file at once.
    pub memory: u64,
    /// Bytes of all files (503).
    pub disk: u64,
    /// Of the files.
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
    /// One for each helper thread that reads from a socket.
    tools: Arc<Mutex<Vec<Tools>>>,
    apart: Arc<Semaphore>,
    spares: FilePool,
}

/// What has come of a body and is not written yet.
#[derive(Debug)]
struct Block {
    pieces: Vec<Bytes>,
    small: BytesMut,
    length: usize,
    memory: Share,
}

impl Block {
    fn add(&mut self, piece: Bytes) {
        self.length += piece.len();
        if piece.len() < PIECE {
            self.small.extend_from_slice(&piece);
        } else {
            self.put_small();
            self.pieces.push(piece);
        }
    }

    fn put_small(&mut self) {
        if !self.small.is_empty() {
            self.pieces.push(self.small.split().freeze());
        }
    }

    fn whole(mut self) -> Bytes {
        self.put_small();
        match &mut self.pieces[..] {
            [one] => std::mem::take(one),
            several => Bytes::from(several.concat()),
        }
    }
}

/// A whole request body.
#[derive(Debug)]
pub enum Spooled {
    /// What is short.
    Memory(Bytes),
    /// What is long, or a form with files.
    File(SpooledFile),
}

/// A body in files. Its room on the disk is free again when it is dropped.
#[derive(Debug)]
pub struct SpooledFile {
    /// The files.
    pub kept: Kept,
    /// Bytes.
    pub length: u64,
    /// What it takes of the disk.
    pub share: Share,
}

/// Bytes that count against a bound until this is dropped.
#[derive(Debug)]
pub struct Share {
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
    /// One that has no bodies yet.
    pub fn new(limits: SpoolLimits) -> Self {
        Spool {
            spares: FilePool::new(limits.folder.clone()),
            limits,
            memory: Rc::default(),
            disk: Rc::default(),
            writers: Arc::new(Semaphore::new(WRITERS)),
            tools: Arc::default(),
            apart: Arc::new(Semaphore::new(APART)),
        }
    }

    /// The same, but its files count together with others that `disk` is the sum of, in bytes.
    #[must_use]
    pub fn counted_by(self, disk: Rc<Cell<u64>>) -> Self {
        Spool { disk, ..self }
    }

    /// True for a body that is short, and says so: it will be kept in memory, if there is room.
    pub fn holds(&self, body: &RequestBody) -> bool {
        body.announced()
            .is_some_and(|length| length <= self.limits.memory_each as u64)
    }

    /// Reads `body` to its end. The files of a form are kept apart where it has to be written down; `form` goes through
    /// it.
    ///
    /// # Errors
    /// A [`BodyError`] where a bound is reached; else what the client or the disk did wrong.
    pub async fn read(
        &self,
        mut body: RequestBody,
        form: Option<Scanner>,
    ) -> Result<Spooled, BoxError> {
        // The event loop need not read what is not for memory.
        let is_for_file = body.is_direct() && !self.holds(&body);
        let Some(first) = next(&mut body).await? else {
            return Ok(Spooled::Memory(Bytes::new()));
        };
        if body.is_end_stream() {
            // It came in one piece, as most do: nothing is copied.
            return Ok(Spooled::Memory(first));
        }
        let mut block = self.block();
        let mut piece = first;
        loop {
            let length = block.length + piece.len();
            let fits = length <= self.limits.memory_each && self.counts(&mut block, &piece);
            block.add(piece);
            if !fits || is_for_file {
                return self.to_file(block, body, form).await.map(Spooled::File);
            }
            match next(&mut body).await? {
                Some(next) => piece = next,
                None => return Ok(Spooled::Memory(block.whole())),
            }
        }
    }

    async fn to_file(
        &self,
        mut block: Block,
        mut body: RequestBody,
        form: Option<Scanner>,
    ) -> Result<SpooledFile, BoxError> {
        let mut share = Share::of(&self.disk);
        if let Some(length) = body.announced() {
            // What is announced must fit before it is sent for nothing.
            self.reserve(&mut share, length)?;
        }
        let mut reserved = share.bytes;
        let (spares, apart) = (self.spares.clone(), Arc::clone(&self.apart));
        let begin = self.helper(move || Keeper::new(spares, form, apart));
        let mut keeper = begin.await;
        if let Some(rest) = body.rest().transpose()? {
            // What is announced does not count what has come.
            self.reserve(&mut share, block.length as u64)?;
            let length = share.bytes;
            let kept = self
                .pass(self.written(keeper).await?, rest, block, body)
                .await?;
            return Ok(SpooledFile {
                kept,
                length,
                share,
            });
        }
        let mut length = 0;
        // The block that is being written.
        let mut _memory = Share::of(&self.memory);
        loop {
            let piece = next(&mut body).await?;
            let ended = piece.is_none();
            if let Some(piece) = piece {
                let counts = self.counts(&mut block, &piece);
                block.add(piece);
                if block.length < BLOCK && counts {
                    continue;
                }
            }
            length += block.length as u64;
            if length > reserved {
                self.reserve(&mut share, length - reserved)?;
                reserved = length;
            }
            let mut open = self.written(keeper).await?;
            block.put_small();
            let full = std::mem::replace(&mut block, self.block());
            _memory = full.memory;
            let pieces = full.pieces;
            if ended {
                let end = self.helper(move || {
                    open.keep(&pieces)?;
                    open.finish()
                });
                return Ok(SpooledFile {
                    kept: self.written(end.await).await?,
                    length,
                    share,
                });
            }
            let go_on = self.helper(move || open.keep(&pieces).map(|()| open));
            keeper = go_on.await;
        }
    }

    /// The same where the rest of the body is still in the socket: a helper thread reads it there, and writes each block
    /// when it has it.
    async fn pass(
        &self,
        mut keeper: Keeper,
        mut rest: Rest,
        mut block: Block,
        mut body: RequestBody,
    ) -> Result<Kept, BoxError> {
        block.put_small();
        let mut taken = 0;
        while body.arrival(taken).await? {
            let first = std::mem::take(&mut block.pieces);
            let all = Arc::clone(&self.tools);
            let most = body.announced().map_or(0, |left| left.min(JOB));
            let work = self.helper(move || {
                keeper.keep(&first)?;
                let mut tools = lock(&all).pop().unwrap_or_default();
                let passed = rest.keep(&mut keeper, &mut tools, most);
                lock(&all).push(tools);
                Ok((keeper, rest, passed?))
            });
            (keeper, rest, taken) = self.written(work.await).await?;
            block.memory = Share::of(&self.memory);
        }
        let last = std::mem::take(&mut block.pieces);
        let end = self.helper(move || {
            keeper.keep(&last)?;
            keeper.finish()
        });
        self.written(end.await).await
    }

    async fn written<T>(&self, work: JoinHandle<io::Result<T>>) -> Result<T, BoxError> {
        let done = work.await.map_err(io::Error::other).and_then(|done| done);
        done.map_err(|error| {
            surus_log::say!(
                "cannot keep a request body in {}: {error}; make room there, or name another folder (spool_folder)",
                self.limits.folder.display()
            );
            BodyError::NoRoom.into()
        })
    }

    fn block(&self) -> Block {
        Block {
            pieces: Vec::new(),
            small: BytesMut::new(),
            length: 0,
            memory: Share::of(&self.memory),
        }
    }

    /// False if there is no memory for more.
    fn counts(&self, block: &mut Block, piece: &Bytes) -> bool {
        block.memory.add(piece.len() as u64, self.limits.memory)
    }

    fn reserve(&self, share: &mut Share, bytes: u64) -> Result<(), BoxError> {
        let most = self.limits.disk;
        if share.add(bytes, most.saturating_sub(self.spares.bytes())) {
            return Ok(());
        }
        self.spares.clear();
        if share.add(bytes, most) {
            return Ok(());
        }
        Err(BodyError::NoRoom.into())
    }

    /// Begins work on a helper thread; does not wait for its end.
    async fn helper<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> JoinHandle<io::Result<T>> {
        // Never closed, so this is no error.
        let turn = Arc::clone(&self.writers).acquire_owned().await;
        tokio::task::spawn_blocking(move || {
            let result = work();
            drop(turn);
            result
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

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
