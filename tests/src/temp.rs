//! Folders that are removed with their value.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::unistd::{Uid, User};

use crate::watchdog;

/// A fresh folder that every user may enter (the databases run as users of their own).
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
}

impl TempDir {
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("surus-test-{}-{number}-{name}", std::process::id()));
        fs::create_dir(&path).expect("create a temporary folder");
        watchdog::dir(&path);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("open the folder");
        Self { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new folder inside.
    pub fn folder(&self, name: &str) -> PathBuf {
        let path = self.path.join(name);
        fs::create_dir_all(&path).expect("create a folder");
        path
    }

    /// A new file inside.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path.join(name);
        fs::write(&path, text).expect("write a file");
        path
    }

    /// Gives the folder itself to `user`.
    pub(crate) fn owned_by(self, user: &User) -> Self {
        if Uid::effective().is_root() {
            nix::unistd::chown(&self.path, Some(user.uid), Some(user.gid)).expect("chown");
        }
        self
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // A server may write its last file while its folder goes: the watchdog's list keeps it then.
        for _ in 0..10 {
            if fs::remove_dir_all(&self.path).is_ok() {
                watchdog::dir_gone(&self.path);
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
