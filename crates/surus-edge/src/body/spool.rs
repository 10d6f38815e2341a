//! Request bodies that are read to their end before a backend begins: small ones into memory, others into a file
//! without a name. A slow client then occupies a buffer or a file, but not PHP.
//!
//! Helper threads write the files, one block while the next one is read. So memory use stays constant, and a slow disk
//! delays only the upload.

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

/// Smaller pieces are copied together: each may keep a much larger buffer alive.
const PIECE: usize = 8 * 1024;

/// Helper threads that write at a time: more would only wait for each other, and compete with PHP's thread.
const WRITERS: usize = 2;

/// Bytes that a helper thread reads from a socket before other bodies have their turn.
const JOB: u64 = 8 * 1024 * 1024;

/// Files of forms that are stored separately at a time. Further ones stay part of their forms' text.
const APART: usize = 256;

/// The limits of [`Spool`].
#[derive(Clone, Debug)]
pub struct SpoolLimits {
    /// A body of more bytes goes to a file.
    pub memory_each: usize,
    /// Bytes of memory for all bodies that are being read; beyond that, further bodies go to files at once.
    pub memory: u64,
    /// Bytes of all files (503).
    pub disk: u64,
    /// Where the files are.
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

/// Stores the request bodies of one worker.
#[derive(Debug)]
pub struct Spool {
    limits: SpoolLimits,
    memory: Rc<Cell<u64>>,
    disk: Rc<Cell<u64>>,
    writers: Arc<Semaphore>,
    /// Unused tools: one for each helper thread that reads from a socket.
    tools: Arc<Mutex<Vec<Tools>>>,
    apart: Arc<Semaphore>,
    spares: FilePool,
}

/// The received part of a body that is not written yet.
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
    /// A short body.
    Memory(Bytes),
    /// A long body, perhaps a form with files.
    File(SpooledFile),
}

/// A body in files. Its disk space is free again when it is dropped.
#[derive(Debug)]
pub struct SpooledFile {
    /// The files.
    pub kept: Kept,
    /// Bytes.
    pub length: u64,
    /// Its share of the disk space.
    pub share: Share,
}

/// Bytes that count against a limit until this is dropped.
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

    /// False, and nothing is added, if that would exceed `limit`.
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
    /// A spool without bodies.
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

    /// The same spool, but its files are counted in `disk`, in bytes, together with others.
    #[must_use]
    pub fn counted_by(self, disk: Rc<Cell<u64>>) -> Self {
        Spool { disk, ..self }
    }

    /// True for a body that is short according to its announced length: it will be kept in memory, if there is room.
    pub fn holds(&self, body: &RequestBody) -> bool {
        body.announced()
            .is_some_and(|length| length <= self.limits.memory_each as u64)
    }

    /// Reads `body` to its end. If it is written to a file, `form` scans it, and the files of the form are stored
    /// separately.
    ///
    /// # Errors
    /// A [`BodyError`] if a limit is reached; else an error of the client or the disk.
    pub async fn read(
        &self,
        mut body: RequestBody,
        form: Option<Scanner>,
    ) -> Result<Spooled, BoxError> {
        // The event loop need not read a body that goes to a file.
        let is_for_file = body.is_direct() && !self.holds(&body);
        let Some(first) = next(&mut body).await? else {
            return Ok(Spooled::Memory(Bytes::new()));
        };
        if body.is_end_stream() {
            // It was received in one piece, as most are: nothing is copied.
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
            // An announced length must fit now, so that the client does not send the body in vain.
            self.reserve(&mut share, length)?;
        }
        let mut reserved = share.bytes;
        let (spares, apart) = (self.spares.clone(), Arc::clone(&self.apart));
        let begin = self.helper(move || Keeper::new(spares, form, apart));
        let mut keeper = begin.await;
        if let Some(rest) = body.rest().transpose()? {
            // The announced length does not include the bytes that were already read.
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

    /// The same if the rest of the body is still in the socket: a helper thread reads it there, and writes each block
    /// at once.
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
        // The semaphore is never closed, so this cannot fail.
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
