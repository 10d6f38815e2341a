//! The script or folder that is served, and the mode.

use std::io;
use std::path::{Path, PathBuf};

use super::file::parent;
use super::paths::named;
use super::units::Mode;
use super::{discover, tables, ConfigError};
use crate::cli::ServeArgs;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Coroutine {
        script: PathBuf,
    },
    Worker {
        script: PathBuf,
        /// Whether each request finds the isolate as the boot has left it.
        is_snapshot: bool,
    },
    Classic {
        root: PathBuf,
        /// File name of the front controller.
        front: String,
    },
}

impl Entry {
    pub(crate) fn mode(&self) -> Mode {
        match self {
            Entry::Coroutine { .. } => Mode::Coroutine,
            Entry::Worker {
                is_snapshot: false, ..
            } => Mode::Worker,
            Entry::Worker { .. } => Mode::Snapshot,
            Entry::Classic { .. } => Mode::Classic,
        }
    }
}

/// Finds what is served: the script on the command line, else what the configuration names, else what is found in the
/// folder.
pub(super) fn entry(
    arguments: &ServeArgs,
    base: &Path,
    app: &mut tables::App,
) -> Result<(Entry, PathBuf, String), ConfigError> {
    let wanted = app.mode.filter(|mode| mode.boots_isolates());
    let is_worker = wanted.is_some();
    if let (Some(_), Some(_), false) = (&app.script, &app.root, is_worker) {
        return Err(ConfigError::new("an app has a script or a root, not both"));
    }
    let path = &arguments.path;
    let kind = discover::kind(path)?;
    if kind.is_file() && path.extension().is_some_and(|extension| extension == "php") {
        app.script = Some(path.clone());
        app.root = None;
    }
    match (&app.script, &app.root) {
        (Some(script), _) if script.is_dir() => {
            return Err(ConfigError::new(format!(
                "script: {} is a folder; root = \"…\" names the folder of a classic site",
                script.display()
            )));
        }
        (None, Some(root)) if root.is_file() => {
            return Err(ConfigError::new(format!(
                "root: {} is a file; script = \"…\" names a script",
                root.display()
            )));
        }
        _ => {}
    }
    let found = match (&app.script, &app.root) {
        (Some(script), _) => discover::script(script, app.mode),
        (None, Some(root)) if is_worker => discover::Found {
            mode: wanted.unwrap_or(Mode::Worker),
            script: root.join("index.php"),
        },
        (None, Some(root)) => {
            if app.mode == Some(Mode::Coroutine) {
                return Err(ConfigError::new(
                    "mode \"coroutine\" needs a script, not a root",
                ));
            }
            discover::Found {
                mode: Mode::Classic,
                script: root.join("index.php"),
            }
        }
        (None, None)
            if !kind.is_dir() && arguments.config.is_none() && *path != base.join("surus.toml") =>
        {
            return Err(ConfigError::new(format!(
                "{} is neither a PHP script nor a folder",
                path.display()
            )));
        }
        // If classic mode is requested, a site need not have a front controller: its scripts are called by their names.
        (None, None) if path.is_dir() && app.mode == Some(Mode::Classic) => {
            discover::folder(path, app.mode).unwrap_or_else(|_| {
                app.root = Some(path.clone());
                discover::Found {
                    mode: Mode::Classic,
                    script: path.join("index.php"),
                }
            })
        }
        (None, None) => discover::folder(if path.is_dir() { path } else { base }, app.mode)?,
    };
    discover::readable(&found.script)?;
    let label = label(base, &found.script)?;
    let source = match found.mode {
        Mode::Coroutine | Mode::Worker | Mode::Snapshot => named(&found.script)?,
        Mode::Classic | Mode::Process => named(&parent(&found.script))?,
    };
    app.mode = Some(found.mode);
    let entry = match found.mode {
        Mode::Coroutine => {
            let script = absolute(&found.script)?;
            app.script = Some(script.clone());
            Entry::Coroutine { script }
        }
        Mode::Worker | Mode::Snapshot => {
            let script = absolute(&found.script)?;
            app.script = Some(script.clone());
            // A front controller lies in the document root; a script of another name need not.
            if app.root.is_none() && script.file_name().is_some_and(|name| name == "index.php") {
                app.root = Some(parent(&script));
            }
            Entry::Worker {
                script,
                is_snapshot: found.mode == Mode::Snapshot,
            }
        }
        Mode::Classic | Mode::Process => {
            let from_root = app.root.is_some();
            let root = absolute(&parent(&found.script))?;
            if !from_root {
                // A script that was named or found must exist; a root may have only other scripts.
                absolute(&found.script)?;
            }
            let front = found.script.file_name().and_then(|name| name.to_str());
            let front = front
                .ok_or_else(|| ConfigError::new("the script's name is not UTF-8"))?
                .to_owned();
            if from_root || front == "index.php" {
                app.root = Some(root.clone());
                app.script = None;
            } else {
                app.script = Some(root.join(&front));
            }
            Entry::Classic { root, front }
        }
    };
    Ok((entry, source, label))
}

/// The script's name below `base`; that of its folder if the script does not exist.
fn label(base: &Path, script: &Path) -> Result<String, ConfigError> {
    let folder = parent(script);
    let name = if script.is_file() { script } else { &folder };
    Ok(match named(name)?.strip_prefix(named(base)?) {
        Ok(name) if !name.as_os_str().is_empty() => name.display().to_string(),
        _ => name.display().to_string(),
    })
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf, ConfigError> {
    path.canonicalize().map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::NotFound => "there is no such file or folder".to_owned(),
            _ => error.to_string(),
        };
        ConfigError::new(format!("{}: {why}", path.display()))
    })
}
