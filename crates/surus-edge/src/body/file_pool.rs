//! Files for bodies, and a pool in which they are used again.
//!
//! Getting pages from the kernel and giving them back takes longer than filling them. So a file that is no longer
//! needed waits in the pool for the next body, if nobody else can have it open; only for seconds, so that it does not
//! occupy the disk for long.

use std::fs::{self, File, Permissions};
use std::io::{self, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::process::geteuid;
use tempfile::TempDir;
use tokio::runtime::Handle;

use crate::os::descriptors::lifted;

/// How long a file waits in the pool.
const PATIENCE: Duration = Duration::from_secs(2);

/// The kernel begins to write data to the disk that has been in memory for 30 s (`vm.dirty_expire_centisecs`). Files
/// that are overwritten again and again and are younger need not be written.
const LIFETIME: Duration = Duration::from_secs(20);

/// Smaller files are not pooled: creating one is as fast.
const WORTH: u64 = 256 * 1024;

/// Most files in the pool.
const MOST: usize = 256;

/// Name prefix of the folders for pooled files that have names.
const PREFIX: &str = "surus-spool-";

/// The pool that provides files for bodies.
#[derive(Clone, Debug)]
pub(crate) struct FilePool(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    waiting: Vec<(Instant, Parts)>,
    /// Bytes of the waiting files.
    bytes: u64,
    names: Option<Names>,
    is_swept: bool,
}

#[derive(Debug)]
struct Parts {
    file: File,
    /// In the folder of named files: a file that PHP has had needs a name.
    name: Option<PathBuf>,
    born: Instant,
    /// Bytes.
    length: u64,
}

/// The folder of pooled files that have names, locked as long as a worker uses it.
#[derive(Debug)]
struct Names {
    folder: TempDir,
    _lock: OwnedFd,
    given: u64,
}

/// A file with a body. When dropped it goes to the pool, unless it was lent and not given back.
#[derive(Debug)]
pub struct BodyFile {
    /// `Some` until it is dropped.
    parts: Option<Parts>,
    lent: bool,
    spares: FilePool,
}

impl FilePool {
    pub(crate) fn new(folder: PathBuf) -> Self {
        FilePool(Arc::new(Mutex::new(Inner {
            folder,
            waiting: Vec::new(),
            bytes: 0,
            names: None,
            is_swept: false,
        })))
    }

    /// A file to write to from its beginning. Nobody else has it open, or knows a name of it.
    ///
    /// # Errors
    /// Of the file system.
    pub(crate) fn file(&self) -> io::Result<BodyFile> {
        let spare = self.inner().take();
        let parts = match spare {
            Some(mut spare) => {
                spare.file.rewind()?;
                spare
            }
            None => self.fresh()?,
        };
        Ok(self.body_file(parts))
    }

    /// The same for a few bytes, never from the pool.
    pub(crate) fn small_file(&self) -> io::Result<BodyFile> {
        Ok(self.body_file(self.fresh()?))
    }

    /// Bytes of the files in the pool.
    pub(crate) fn bytes(&self) -> u64 {
        self.inner().bytes
    }

    /// Frees the disk space of the pool, on another thread.
    pub(crate) fn clear(&self) {
        drop_beside(self.inner().take_all());
    }

    /// The same at once, on this thread. False if the pool was empty. Not for the thread that runs PHP.
    pub(crate) fn make_room(&self) -> bool {
        let all = self.inner().take_all();
        !all.is_empty()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fresh(&self) -> io::Result<Parts> {
        let folder = self.inner().folder.clone();
        let file = lifted(tempfile::tempfile_in(folder)?);
        // If it gets a name later, nobody else may open it.
        file.set_permissions(Permissions::from_mode(0o600))?;
        Ok(Parts {
            file,
            name: None,
            born: Instant::now(),
            length: 0,
        })
    }

    fn body_file(&self, parts: Parts) -> BodyFile {
        BodyFile {
            parts: Some(parts),
            lent: false,
            spares: self.clone(),
        }
    }

    fn put(&self, parts: Parts) {
        let mut inner = self.inner();
        let is_good = parts.length >= WORTH
            && parts.born.elapsed() < LIFETIME
            && inner.waiting.len() < MOST
            && inner.is_swept_by(self);
        if is_good {
            inner.bytes += parts.length;
            inner.waiting.push((Instant::now(), parts));
        } else {
            drop(inner);
            drop_beside(vec![parts]);
        }
    }
}

impl Inner {
    fn take(&mut self) -> Option<Parts> {
        let (_, parts) = self.waiting.pop()?;
        self.bytes -= parts.length;
        Some(parts)
    }

    fn take_all(&mut self) -> Vec<(Instant, Parts)> {
        self.bytes = 0;
        std::mem::take(&mut self.waiting)
    }

    /// Ensures that a task removes files that wait too long. False if there is no runtime for it.
    fn is_swept_by(&mut self, spares: &FilePool) -> bool {
        if !self.is_swept {
            let Ok(handle) = Handle::try_current() else {
                return false;
            };
            let spares = spares.clone();
            handle.spawn(async move {
                while spares.inner().sweep() {
                    tokio::time::sleep(PATIENCE / 2).await;
                }
            });
            self.is_swept = true;
        }
        true
    }

    /// Removes files that have waited too long. False when the pool is empty.
    fn sweep(&mut self) -> bool {
        let now = Instant::now();
        let is_late = |(freed, parts): &(Instant, Parts)| {
            now - *freed >= PATIENCE || now - parts.born >= LIFETIME
        };
        let (late, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(is_late);
        self.waiting = waiting;
        self.bytes = self.waiting.iter().map(|(_, parts)| parts.length).sum();
        drop_beside(late);
        self.is_swept = !self.waiting.is_empty();
        self.is_swept
    }
}

impl BodyFile {
    /// Open for reading and writing.
    pub fn file(&self) -> &File {
        // `Some` until the drop.
        &self.parts.as_ref().expect("a body's file").file
    }

    /// Bytes that the file had before it was written to.
    pub(crate) fn length(&self) -> u64 {
        self.parts.as_ref().map_or(0, |parts| parts.length)
    }

    /// Sets the length of the file: cuts off what is left of a longer, older body.
    pub(crate) fn end_at(&mut self, length: u64) -> io::Result<()> {
        let Some(parts) = &mut self.parts else {
            return Ok(());
        };
        if parts.length > length {
            parts.file.set_len(length)?;
        }
        parts.length = length;
        Ok(())
    }

    /// Gives the file to somebody else, with its name, if it has one.
    pub fn lend(&mut self) -> Option<PathBuf> {
        self.lent = true;
        self.parts.as_mut()?.name.take()
    }

    /// An unused name, for a file that is given back.
    ///
    /// # Errors
    /// Of the file system. A file that is too small for the pool gets no name.
    pub fn spare_name(&self) -> io::Result<PathBuf> {
        if self.length() < WORTH {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.spares.inner().spare_name()
    }

    /// The file has this name now, and nobody else has it open.
    pub fn give_back(&mut self, name: PathBuf) {
        if let Some(parts) = &mut self.parts {
            parts.name = Some(name);
            self.lent = false;
        }
    }
}

impl Drop for BodyFile {
    fn drop(&mut self) {
        let Some(mut parts) = self.parts.take() else {
            return;
        };
        // PHP may have changed it.
        parts.length = parts.file.metadata().map_or(0, |found| found.len());
        if self.lent {
            drop_beside(vec![parts]);
        } else {
            self.spares.put(parts);
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // If the file cannot be removed there is nothing to do about it.
            let _ = fs::remove_file(name);
        }
    }
}

impl Inner {
    fn spare_name(&mut self) -> io::Result<PathBuf> {
        // Somebody may have removed the folder.
        let names = match self.names.take() {
            Some(names) if names.folder.path().is_dir() => names,
            _ => Names::new(&self.folder)?,
        };
        let names = self.names.insert(names);
        names.given += 1;
        Ok(names.folder.path().join(names.given.to_string()))
    }
}

impl Names {
    fn new(folder: &Path) -> io::Result<Self> {
        sweep_out(folder);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(folder)?;
        // Another worker may have removed it as one that was left behind.
        let lock = lock(folder.path()).filter(|_| folder.path().is_dir());
        let lock = lock.ok_or(io::ErrorKind::NotFound)?;
        Ok(Names {
            folder,
            _lock: lock,
            given: 0,
        })
    }
}

/// Removes folders that killed workers have left behind.
fn sweep_out(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !name.as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let path = entry.path();
        let is_left = lock(&path).is_some_and(|_lock| fs::remove_dir_all(&path).is_ok());
        if is_left {
            surus_log::say!("removed {}, which was left behind", path.display());
        }
    }
}

/// Locks a folder that nobody has locked. The lock lasts until this is dropped.
fn lock(path: &Path) -> Option<OwnedFd> {
    // Other users may write to the parent folder, too: something that has such a name and is not ours is left alone.
    // Opening a pipe would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let is_ours = rustix::fs::fstat(&found).ok()?.st_uid == geteuid().as_raw();
    let locked = rustix::fs::flock(&found, FlockOperation::NonBlockingLockExclusive);
    (is_ours && locked.is_ok()).then_some(found)
}

/// Drops files on another thread: giving back many pages takes too long for the thread that runs PHP.
fn drop_beside<T: Send + 'static>(parts: Vec<T>) {
    if parts.is_empty() {
        return;
    }
    match Handle::try_current() {
        Ok(handle) => drop(handle.spawn_blocking(move || drop(parts))),
        Err(_) => drop(parts),
    }
}
