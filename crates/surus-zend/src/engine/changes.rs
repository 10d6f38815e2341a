//! For tests: finds bytes of PHP and its libraries that change while PHP runs, but that isolates share.

use std::{
    ffi::{CStr, CString},
    os::unix::ffi::OsStringExt,
    path::PathBuf,
};

use crate::{engine::process::StartError, ffi};

/// Watches the writable data of all libraries until the process ends.
#[derive(Debug)]
pub struct Changes {
    path: CString,
}

impl Changes {
    /// Call it after PHP has started. At the end, a line is added to the file for each change: object, address in it,
    /// length in bytes, and the script.
    pub fn watch(path: PathBuf) -> Result<Changes, StartError> {
        let path = CString::new(path.into_os_string().into_vec())
            .map_err(|error| StartError(error.to_string()))?;
        // SAFETY: PHP has started and this thread runs it; nothing else uses the list of what is watched.
        if unsafe { ffi::surus_changes_start() } {
            Ok(Changes { path })
        } else {
            Err(StartError("there is too much to watch".to_string()))
        }
    }

    /// Records the changes since the last call.
    pub(crate) fn look(&self) {
        // SAFETY: reads variables of this process; the only other threads are helpers that may write some of them
        // meanwhile: then each byte has its old or its new value.
        unsafe { ffi::surus_changes_look() }
    }

    pub(crate) fn write(&self, script: &CStr) -> Result<(), StartError> {
        self.look();
        // SAFETY: NUL-terminated strings.
        if unsafe { ffi::surus_changes_write(self.path.as_ptr(), script.as_ptr()) } {
            return Ok(());
        }
        let path = self.path.to_string_lossy();
        Err(StartError(format!("{path} cannot be written")))
    }
}
