//! For tests: which bytes of PHP and of the libraries behind it change while PHP runs, though no isolate has its own.

use std::{
    ffi::{CStr, CString},
    os::unix::ffi::OsStringExt,
    path::PathBuf,
};

use crate::{engine::process::StartError, ffi};

/// The writable data of all libraries is watched, for as long as the process lives.
#[derive(Debug)]
pub struct Changes {
    path: CString,
}

impl Changes {
    /// Once PHP has started. What changes is added to the file in the end, a line each: object, address in it, length
    /// in bytes, and the script.
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

    /// What has changed since the last look.
    pub(crate) fn look(&self) {
        // SAFETY: reads variables of this process; the only other threads are helpers that may write some of them
        // meanwhile, each byte of which is then seen as it was or as it is.
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
