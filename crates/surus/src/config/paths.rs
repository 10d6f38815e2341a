//! Makes the paths in a configuration absolute, once, when they are read, because PHP changes the working directory.

use std::env;
use std::path::{self, Path, PathBuf};

use super::layers::Layer;
use super::list::{List, Listen};
use super::tables::{Log, Reset, Restart, SaidIn, Words};
use super::units::{Memory, Mode, PerAddress, Share, Size, Span, Workers};
use super::ConfigError;

/// A value that may contain paths. Each type of a key implements this.
pub(super) trait Paths {
    fn each_path(&mut self, _change: &mut dyn FnMut(&mut PathBuf)) {}
}

impl Paths for PathBuf {
    fn each_path(&mut self, change: &mut dyn FnMut(&mut PathBuf)) {
        change(self);
    }
}

impl<T: Paths> Paths for List<T> {
    fn each_path(&mut self, change: &mut dyn FnMut(&mut PathBuf)) {
        self.0.iter_mut().for_each(|each| each.each_path(change));
    }
}

impl<T: Paths> Paths for Option<T> {
    fn each_path(&mut self, change: &mut dyn FnMut(&mut PathBuf)) {
        self.iter_mut().for_each(|each| each.each_path(change));
    }
}

macro_rules! without {
    ($($name:ty),*) => { $(impl Paths for $name {})* };
}

// The path of a Unix socket in `listen` must be absolute.
without!(bool, usize, u64, String, Listen, Log, Reset, Restart, SaidIn, Words);
without!(Memory, Mode, PerAddress, Share, Size, Span, Workers);

/// Makes relative paths start from `base`, which is absolute.
pub(super) fn start_from(base: &Path, layer: &mut Layer) {
    // `join` leaves a path that is absolute itself as it is.
    let change = &mut |path: &mut PathBuf| *path = base.join(&path);
    let Layer {
        server,
        app,
        process,
        pusher,
        ..
    } = layer;
    server.each_path(change);
    app.each_path(change);
    process.values_mut().for_each(|each| each.each_path(change));
    pusher.values_mut().for_each(|each| each.each_path(change));
}

/// The absolute path, with its symbolic links. If the working directory was entered through a link, the shell has that
/// path in `PWD`.
pub(super) fn named(path: &Path) -> Result<PathBuf, ConfigError> {
    let wrong = |error| ConfigError::new(format!("{}: {error}", path.display()));
    let folder = env::current_dir().map_err(wrong)?;
    let folder = match env::var_os("PWD").map(PathBuf::from) {
        Some(pwd) if pwd.is_absolute() && pwd.canonicalize().ok() == Some(folder.clone()) => pwd,
        _ => folder,
    };
    path::absolute(folder.join(path)).map_err(wrong)
}
