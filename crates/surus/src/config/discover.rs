//! Finds out what to serve, from the path on the command line.

use std::fs::{self, File, FileType};
use std::io;
use std::path::{Path, PathBuf};

use super::shape::{has_symfony_runtime, is_laravel};
use super::units::Mode;
use super::ConfigError;

/// An application found without a configuration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) mode: Mode,
    pub(crate) script: PathBuf,
}

/// The type of the file at a path. A folder must also be searchable.
pub(crate) fn kind(path: &Path) -> Result<FileType, ConfigError> {
    let found = fs::metadata(path).and_then(|metadata| match metadata.is_dir() {
        true => fs::metadata(path.join(".")),
        false => Ok(metadata),
    });
    match found {
        Ok(metadata) => Ok(metadata.file_type()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(forbidden(path)),
        Err(_) => Err(ConfigError::new(format!(
            "{}: no such file or folder",
            path.display()
        ))),
    }
}

fn forbidden(path: &Path) -> ConfigError {
    let user = nix::unistd::Uid::effective();
    ConfigError::new(format!(
        "cannot read {}: it is not permitted to user {user}; see the permissions of the file and of its folders",
        path.display()
    ))
}

/// Checks that this user can read a script, if it exists.
pub(crate) fn readable(script: &Path) -> Result<(), ConfigError> {
    if !script.is_file() {
        return Ok(());
    }
    match File::open(script) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(forbidden(script)),
        _ => Ok(()),
    }
}

/// A script: without `mode` it is classic if its name is index.php, else coroutine.
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

/// A folder: app.php, else public/index.php or index.php. With `mode`, only the candidates of that mode. Without, an
/// application of Symfony (that leaves it to its Runtime how it is served) or of Laravel boots once.
pub(crate) fn folder(folder: &Path, wanted_mode: Option<Mode>) -> Result<Found, ConfigError> {
    let candidates = [
        (Mode::Coroutine, "app.php"),
        (Mode::Classic, "public/index.php"),
        (Mode::Classic, "index.php"),
    ];
    let workers = [
        (Mode::Worker, "worker.php"),
        (Mode::Worker, "public/worker.php"),
        (Mode::Worker, "public/index.php"),
        (Mode::Worker, "index.php"),
        (Mode::Worker, "app.php"),
    ];
    let wanted = || {
        let all = candidates.iter().chain(&workers);
        all.filter(|(candidate, _)| match wanted_mode {
            Some(Mode::Snapshot) => *candidate == Mode::Worker,
            Some(mode) => mode == *candidate,
            None => *candidate != Mode::Worker,
        })
    };
    for (mode, name) in wanted() {
        let script = folder.join(name);
        if script.is_file() {
            let boots_once = has_symfony_runtime(&script) || is_laravel(&script);
            let mode = match boots_once && wanted_mode.is_none() && *mode == Mode::Classic {
                true => Mode::Worker,
                false => wanted_mode.unwrap_or(*mode),
            };
            return Ok(Found { mode, script });
        }
    }
    let names: Vec<&str> = wanted().map(|(_, name)| *name).collect();
    Err(ConfigError::new(format!(
        "{} has no {}; make one, or name a script",
        std::path::absolute(folder)
            .unwrap_or_else(|_| folder.to_owned())
            .display(),
        names.join(", no ")
    )))
}
