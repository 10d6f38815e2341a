//! Development: a change to a file of the application is a reload.
//!
//! Files are looked at by their times, a few times a second: that works on every file system, in containers and over
//! the network, where notifications do not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use surus_master::Report;

use crate::backend::{Counted, Php};
use crate::orders::Orders;

const LOOK: Duration = Duration::from_millis(250);

/// Where the code does not boot, files around it are looked at as well: at most so many, and so deep.
const MOST_FILES: usize = 2000;
const DEPTH: usize = 6;

/// What changes with a file: seconds and nanoseconds of its time, its size, its inode.
type Stamp = Option<(i64, i64, u64, u64)>;

fn stamp(path: &Path) -> Stamp {
    let found = fs::metadata(path).ok()?;
    Some((found.mtime(), found.mtime_nsec(), found.size(), found.ino()))
}

/// Tells the master of changes, for as long as the worker serves.
pub(crate) async fn watch<B: Php>(
    backend: Rc<B>,
    counted: Rc<Counted<B>>,
    orders: Rc<Orders<B>>,
    source: PathBuf,
) {
    let mut known: BTreeMap<PathBuf, Stamp> = BTreeMap::new();
    loop {
        let mut files: BTreeSet<PathBuf> = backend.files().into_iter().collect();
        files.extend(surus_zend::watched());
        files.insert(source.clone());
        if counted.broken().is_some() {
            // What has failed is not among the files that were included.
            let folder = source.parent().unwrap_or(&source);
            scripts(folder, DEPTH, &mut files);
        }
        // A file that is new to the list has not changed: it was read after it was written.
        known.retain(|file, _| files.contains(file));
        let mut changed = None;
        for file in files {
            let now = stamp(&file);
            let before = known.insert(file.clone(), now);
            if before.is_some_and(|before| before != now) {
                changed = Some(file);
            }
        }
        if let Some(file) = changed {
            let file = file.display().to_string();
            orders.report(&Report::Changed { file });
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
