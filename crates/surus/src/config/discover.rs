//! What a path means that `surus serve` is given.

use std::path::{Path, PathBuf};

use super::units::Mode;
use super::ConfigError;

/// An application found without a configuration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) mode: Mode,
    pub(crate) script: PathBuf,
}

/// A script: by its name, classic if it is an index.php, unless told otherwise.
pub(crate) fn script(script: &Path, mode: Option<Mode>) -> Found {
    let index = script.file_name().is_some_and(|name| name == "index.php");
    let mode = mode.unwrap_or(if index {
        Mode::Classic
    } else {
        Mode::Coroutine
    });
    Found {
        mode,
        script: script.to_owned(),
    }
}

/// A folder: app.php, else public/index.php or index.php. A mode that was asked for leaves its own candidates.
pub(crate) fn folder(folder: &Path, mode: Option<Mode>) -> Result<Found, ConfigError> {
    let candidates = [
        (Mode::Coroutine, "app.php"),
        (Mode::Classic, "public/index.php"),
        (Mode::Classic, "index.php"),
    ];
    let wanted = || {
        candidates
            .iter()
            .filter(|(candidate, _)| mode.is_none_or(|mode| mode == *candidate))
    };
    for (mode, name) in wanted() {
        let script = folder.join(name);
        if script.is_file() {
            return Ok(Found {
                mode: *mode,
                script,
            });
        }
    }
    let names: Vec<&str> = wanted().map(|(_, name)| *name).collect();
    Err(ConfigError::new(format!(
        "{} has no {}",
        folder.display(),
        names.join(", no ")
    )))
}
