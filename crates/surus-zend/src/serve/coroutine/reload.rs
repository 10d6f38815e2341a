//! A new version of the application, booted while the old one serves.

use std::{
    fmt,
    path::{Path, PathBuf},
    rc::Rc,
};

use super::{Coroutine, Version};
use crate::{engine::process::BootError, serve::inspect};

/// A version that has booted and does not serve yet.
pub struct Prepared {
    script: PathBuf,
    version: Rc<Version>,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("script", &self.script)
            .finish_non_exhaustive()
    }
}

impl Coroutine {
    /// Boots `script` while the current version serves. The future must be run to its end.
    pub async fn prepare(&self, script: &Path) -> Result<Prepared, BootError> {
        let version = Version::boot(&self.app.engine, script, &self.app.limits).await?;
        Ok(Prepared {
            script: script.to_path_buf(),
            version: Rc::new(version),
        })
    }

    /// From now on this version takes requests; the previous one finishes its own.
    pub fn commit(&self, prepared: Prepared) {
        *self.app.script.borrow_mut() = prepared.script;
        self.app.boot_failed.set(false);
        let old = self.app.version.replace(prepared.version.clone());
        old.retired.set(true);
        old.end_background();
        old.end_websockets();
        self.app.allow_background(&prepared.version);
        self.app.follow_timers(&prepared.version, true);
        old.idle.borrow_mut().clear();
        self.app.rebooted.notify_waiters();
    }

    /// The files that the current version has included so far.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        inspect::files(self.app.version.borrow().isolate.raw())
    }
}
