//! Development: a change to a file of the application causes a reload.
//!
//! The times of files are checked a few times a second: that works on every file system, in containers and over the
//! network, where notifications do not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use surus_master::{Report, Stamp};

use crate::backend::{Counted, Php};
use crate::orders::ControlChannel;

/// How often files are checked.
pub(crate) const LOOK: Duration = Duration::from_millis(250);

/// If the code does not boot, files around it are watched as well: limits of their number and depth.
const MOST_FILES: usize = 2000;
const DEPTH: usize = 6;

fn stamp(path: &Path) -> Stamp {
    let found = fs::metadata(path).ok()?;
    Some((found.mtime(), found.mtime_nsec(), found.size(), found.ino()))
}

/// The kernel takes the times of changes from a clock that is up to one tick late.
const CLOCK: Duration = Duration::from_millis(20);

/// When this process began to read the application.
static BEGAN: OnceLock<SystemTime> = OnceLock::new();

/// Called before this process boots the application.
pub(crate) fn begin() {
    let _ = BEGAN.set(SystemTime::now());
}

/// Whether a file has changed since then, and so perhaps after it was read. A time in the future is ignored: otherwise
/// the file would always count as changed.
fn changed_since_begin(path: &Path) -> bool {
    let Some(began) = BEGAN
        .get()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok())
    else {
        return false;
    };
    let Ok(now) = SystemTime::now().duration_since(UNIX_EPOCH) else {
        return false;
    };
    let changed = fs::metadata(path).ok().and_then(|found| {
        let seconds = u64::try_from(found.ctime()).ok()?;
        Some(Duration::new(
            seconds,
            u32::try_from(found.ctime_nsec()).ok()?,
        ))
    });
    changed.is_some_and(|at| began <= at + CLOCK && at <= now)
}

/// Files, with their state at the last check.
#[derive(Debug, Default)]
pub(crate) struct Watcher {
    known: BTreeMap<PathBuf, Stamp>,
    looked: Option<Instant>,
}

impl Watcher {
    /// Reports one of the files that have changed since the last check. Calls in quick succession do nothing: see
    /// [`LOOK`].
    pub(crate) fn look(&mut self, files: impl FnOnce() -> BTreeSet<PathBuf>) -> Option<Report> {
        if self.looked.is_some_and(|at| at.elapsed() < LOOK / 2) {
            return None;
        }
        let is_first = self.looked.replace(Instant::now()).is_none();
        let mut files = files();
        files.extend(surus_zend::watched());
        self.known.retain(|file, _| files.contains(file));
        let mut changed = None;
        for file in files {
            let now = stamp(&file);
            let before = self.known.insert(file.clone(), now);
            let has_changed = match before {
                Some(before) => before != now,
                // It may have changed while the application booted. A file that is added later was read after it was
                // written.
                None => is_first && changed_since_begin(&file),
            };
            if has_changed {
                changed = Some(Report::Changed {
                    file: file.display().to_string(),
                    stamp: now,
                });
            }
        }
        changed
    }
}

/// The files to watch if the code does not boot: the one that has failed is not among those that were included.
pub(crate) fn around(source: &Path) -> Vec<PathBuf> {
    let mut files = BTreeSet::from([source.to_owned()]);
    scripts(source.parent().unwrap_or(source), DEPTH, &mut files);
    files.into_iter().collect()
}

/// Reports changes to the master, as long as the worker serves.
pub(crate) async fn watch<B: Php>(
    backend: Rc<B>,
    counted: Rc<Counted<B>>,
    orders: Rc<ControlChannel<B>>,
    source: PathBuf,
) {
    let mut watcher = Watcher::default();
    loop {
        let changed = watcher.look(|| {
            let mut files: BTreeSet<PathBuf> = backend.files().into_iter().collect();
            files.insert(source.clone());
            if counted.broken().is_some() {
                files.extend(around(&source));
            }
            files
        });
        if let Some(report) = changed {
            orders.report(&report);
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn scripts(folder: &Path, depth: usize, files: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if files.len() >= MOST_FILES {
            return;
        }
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => {
                let foreign = name.starts_with('.') || name == "vendor" || name == "node_modules";
                if depth > 0 && !foreign {
                    scripts(&path, depth - 1, files);
                }
            }
            Ok(_) if name.ends_with(".php") => {
                files.insert(path);
            }
            _ => {}
        }
    }
}
