//! The file system operations that resolving a path needs, and a cache in front of them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The kinds of files that can be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// Metadata of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// File or directory.
    pub kind: Kind,
    /// Bytes.
    pub length: u64,
    /// When its content was last changed.
    pub modified: SystemTime,
}

/// Where a [`Site`](crate::Site) looks for files.
pub trait FileSystem {
    /// The metadata of `path` after following symbolic links. `None` if it does not exist, is not accessible, or is
    /// neither file nor directory: opening a FIFO would block, and a device does not belong in a site.
    fn stat(&self, path: &Path) -> Option<Stat>;

    /// The path without symbolic links.
    fn real_path(&self, path: &Path) -> Option<PathBuf>;
}

/// The file system itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl FileSystem for Disk {
    fn stat(&self, path: &Path) -> Option<Stat> {
        let metadata = std::fs::metadata(path).ok()?;
        let kind = match metadata.file_type() {
            kind if kind.is_file() => Kind::File,
            kind if kind.is_dir() => Kind::Directory,
            _ => return None,
        };
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Some(Stat {
            kind,
            length: metadata.len(),
            modified,
        })
    }

    fn real_path(&self, path: &Path) -> Option<PathBuf> {
        std::fs::canonicalize(path).ok()
    }
}

/// Caches existing paths for a second; php-fpm's realpath cache does so for longer. Missing paths are looked up each
/// time, so that a new file is found at once.
#[derive(Debug)]
pub struct CachedDisk {
    disk: Disk,
    ttl: Duration,
    stats: RefCell<HashMap<PathBuf, (Instant, Stat)>>,
    real_paths: RefCell<HashMap<PathBuf, (Instant, PathBuf)>>,
}

/// Entries per cache; a full cache is emptied, which bounds it without bookkeeping on every hit.
const ENTRIES: usize = 4096;

impl CachedDisk {
    /// Caches for a second.
    pub fn new() -> Self {
        Self::with_ttl(Duration::from_secs(1))
    }

    /// Caches for this time.
    pub fn with_ttl(ttl: Duration) -> Self {
        CachedDisk {
            disk: Disk,
            ttl,
            stats: RefCell::default(),
            real_paths: RefCell::default(),
        }
    }

    fn cached<T: Clone>(
        &self,
        cache: &RefCell<HashMap<PathBuf, (Instant, T)>>,
        path: &Path,
        look_up: impl FnOnce(&Path) -> Option<T>,
    ) -> Option<T> {
        let now = Instant::now();
        if let Some((at, value)) = cache.borrow().get(path) {
            if now.duration_since(*at) < self.ttl {
                return Some(value.clone());
            }
        }
        let found = look_up(path);
        let mut cache = cache.borrow_mut();
        match &found {
            Some(value) => {
                if cache.len() >= ENTRIES {
                    cache.clear();
                }
                cache.insert(path.to_path_buf(), (now, value.clone()));
            }
            None => {
                cache.remove(path);
            }
        }
        found
    }
}

impl Default for CachedDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl FileSystem for CachedDisk {
    fn stat(&self, path: &Path) -> Option<Stat> {
        self.cached(&self.stats, path, |path| self.disk.stat(path))
    }

    fn real_path(&self, path: &Path) -> Option<PathBuf> {
        self.cached(&self.real_paths, path, |path| self.disk.real_path(path))
    }
}
