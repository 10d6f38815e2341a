//! `write`, of which one call in a form with files is special: it makes a file that the server has written down the one
//! that PHP has opened for it (`csrc/form_files.c`). All others are libc's.

use std::{
    cell::{Cell, RefCell},
    ffi::{c_int, c_void, CString, OsStr, OsString},
    fs::{self, File},
    io::{self, Seek},
    mem::ManuallyDrop,
    os::{
        fd::{AsRawFd, FromRawFd, RawFd},
        unix::ffi::OsStrExt,
    },
    ptr::null,
};

use super::real::{real, set_errno};

thread_local! {
    /// The bytes of the special call; NULL if none is expected.
    static EXPECTED: Cell<*const c_void> = const { Cell::new(null()) };
    static FILE: RefCell<Option<(File, u64)>> = const { RefCell::new(None) };
}

/// The next write of what is at `buffer` is for this file of so many bytes.
pub(crate) fn expect(buffer: *const c_void, file: File, length: u64) {
    EXPECTED.set(buffer);
    FILE.set(Some((file, length)));
}

/// It does not come.
pub(crate) fn forget() {
    if !EXPECTED.replace(null()).is_null() {
        FILE.take();
    }
}

#[no_mangle]
unsafe extern "C" fn write(fd: c_int, buffer: *const c_void, size: usize) -> isize {
    let expected = EXPECTED.get();
    if !expected.is_null() && expected == buffer {
        EXPECTED.set(null());
        if let Some((file, length)) = FILE.take() {
            if length == size as u64 {
                return match place(file, fd) {
                    Ok(()) => size as isize,
                    Err(error) => {
                        set_errno(error.raw_os_error().unwrap_or(libc::EIO));
                        -1
                    }
                };
            }
        }
    }
    let real = real!(write: unsafe extern "C" fn(c_int, *const c_void, usize) -> isize);
    // SAFETY: the caller's arguments.
    unsafe { real(fd, buffer, size) }
}

/// Makes `file` the one that is open as `to`: under its name, or byte by byte where that cannot be (another file system).
fn place(mut file: File, to: RawFd) -> io::Result<()> {
    if let Ok(name) = fs::read_link(format!("/proc/self/fd/{to}")) {
        let mut beside = OsString::from(&name);
        beside.push("-kept");
        if link(&file, &beside).is_ok() {
            // Not at once: ext4 sends the data of what replaces a file to the disk before it goes on.
            let renamed = fs::remove_file(&name).and_then(|()| fs::rename(&beside, &name));
            return renamed.inspect_err(|_| _ = fs::remove_file(&beside));
        }
    }
    // SAFETY: the caller's descriptor, open for this call; it is not closed here.
    let mut to = ManuallyDrop::new(unsafe { File::from_raw_fd(to) });
    file.rewind()?;
    io::copy(&mut file, &mut *to).map(drop)
}

/// Gives a file without a name one that nothing else has.
fn link(file: &File, name: &OsStr) -> io::Result<()> {
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let to = CString::new(name.as_bytes())?;
    // SAFETY: two strings that end with NUL.
    let linked = unsafe {
        libc::linkat(
            libc::AT_FDCWD,
            from.as_ptr(),
            libc::AT_FDCWD,
            to.as_ptr(),
            libc::AT_SYMLINK_FOLLOW,
        )
    };
    if linked != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
