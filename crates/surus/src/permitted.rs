//! Checks that the user that PHP runs as may read and write the files that it needs: otherwise requests would end in
//! unclear errors.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::Uid;
use surus_master::in_child_as;

use crate::config::{Config, Entry};

/// PHP's setting for the file to which it writes errors itself.
const ERROR_LOG: &str = "error_log";

/// Messages about missing permissions, with remedies.
pub(crate) fn check(config: &Config) -> Vec<String> {
    let wanted = wanted(config);
    let identity = config.master.identity.as_ref();
    let tried = in_child_as(identity, &|| {
        let lines = wanted.iter().map(|each| each.try_it().unwrap_or_default());
        lines.collect::<Vec<_>>().join("\n")
    });
    // If the child cannot start, or cannot become that user, that is reported elsewhere.
    let Ok(Ok(text)) = tried else {
        return Vec::new();
    };
    let user = identity.map_or_else(
        || format!("user {}", Uid::effective()),
        |identity| format!("user {:?}", identity.name()),
    );
    let said = wanted.iter().zip(text.lines());
    said.filter(|(_, line)| !line.is_empty())
        .map(|(each, line)| config.say(each.place(), &each.say(&user, line)))
        .collect()
}

struct Wanted {
    key: &'static str,
    path: PathBuf,
    to: To,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    ReadFile,
    EnterFolder,
    Append,
}

fn wanted(config: &Config) -> Vec<Wanted> {
    let app = &config.app;
    let wants = |key, path: &Path, to| Wanted {
        key,
        path: path.to_owned(),
        to,
    };
    let mut all = match &app.entry {
        Entry::Coroutine { script } | Entry::Worker { script, .. } => {
            vec![wants("script", script, To::ReadFile)]
        }
        Entry::Classic { root, front } => {
            let front = root.join(front);
            // The front controller need not exist.
            let has_front = fs::symlink_metadata(&front).is_ok();
            let script = has_front.then(|| wants("script", &front, To::ReadFile));
            let root = wants("root", root, To::EnterFolder);
            [root].into_iter().chain(script).collect()
        }
    };
    all.extend(
        app.public
            .iter()
            .map(|folder| wants("public", folder, To::EnterFolder)),
    );
    let sendfile = app.sendfile.iter();
    all.extend(sendfile.map(|folder| wants("sendfile", folder, To::EnterFolder)));
    let log = config.ini.iter().rfind(|(name, _)| name == ERROR_LOG);
    all.extend(
        log.map(|(_, path)| Path::new(path))
            .filter(|path| path.is_absolute())
            .map(|path| wants("[php] error_log", path, To::Append)),
    );
    all
}

impl Wanted {
    /// Tries it, in the child. Returns which folder or file is not accessible, and why, on one line.
    fn try_it(&self) -> Option<String> {
        let path = &self.path;
        let tried = match self.to {
            To::ReadFile => File::open(path).map(drop),
            To::EnterFolder => fs::metadata(path.join(".")).map(drop),
            // Creates the file, so that it belongs to this user: PHP in the master would create it as root.
            To::Append => OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .map(drop),
        };
        let error = tried.err()?;
        let place = match error.kind() {
            io::ErrorKind::PermissionDenied => closed(path).unwrap_or(path),
            io::ErrorKind::NotFound => path.parent().unwrap_or(path),
            _ => path,
        };
        let text = format!("{}: {error}", place.display());
        Some(text.replace('\n', " "))
    }

    fn place(&self) -> &'static str {
        match self.key {
            "script" => "app.script",
            "root" => "app.root",
            "public" => "app.public",
            "sendfile" => "app.sendfile",
            _ => "php.error_log",
        }
    }

    fn say(&self, user: &str, why: &str) -> String {
        let (key, path) = (self.key, self.path.display());
        match self.to {
            To::Append => format!(
                "{key}: {user}, whom PHP runs as, cannot write {path} ({why}): give the file, or its folder, to that user, or leave \
                 this out and set error_log of [server], which the master opens and rotates"
            ),
            To::ReadFile | To::EnterFolder => format!(
                "{key}: {user}, whom PHP runs as, cannot read {path} ({why}): change the permissions (chmod, chown, setfacl), or \
                 serve it from elsewhere"
            ),
        }
    }
}

/// The first folder of the path that is not accessible.
fn closed(path: &Path) -> Option<&Path> {
    let mut folders: Vec<&Path> = path.ancestors().skip(1).collect();
    folders.reverse();
    folders
        .into_iter()
        .find(|folder| fs::metadata(folder.join(".")).is_err())
}
