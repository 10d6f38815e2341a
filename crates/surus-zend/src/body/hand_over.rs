//! Uploaded files that the server has stored, and passes to PHP.
//!
//! Hooks `write`: one call for each such file is special, and replaces the file that PHP has opened for the upload
//! (`csrc/http/form_files.c`). Hooks `unlink`, which PHP calls when it does not need the file any more: the file goes
//! back to the server, unless somebody else may have it open. All other calls are passed to libc.

use std::{
    cell::{Cell, RefCell},
    ffi::{c_char, c_int, c_void, CStr, CString, OsStr, OsString},
    fs::{self, File},
    io::{self, Seek},
    mem::ManuallyDrop,
    os::{
        fd::{AsRawFd, FromRawFd, RawFd},
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
    ptr::null,
    rc::{Rc, Weak},
};

use super::kept_body::KeptFile;
use crate::blocking::{
    real::{real, set_errno},
    stream,
};

thread_local! {
    /// The buffer of the special call; NULL if none is expected.
    static EXPECTED: Cell<*const c_void> = const { Cell::new(null()) };
    static PASSING: RefCell<Option<Passing>> = const { RefCell::new(None) };
    /// Lists of all requests with such files.
    static LENT: RefCell<Vec<Weak<Lent>>> = const { RefCell::new(Vec::new()) };
}

/// The files of one request that PHP has, by their names.
#[derive(Debug, Default)]
pub(crate) struct Lent(RefCell<Vec<(PathBuf, Box<dyn KeptFile>)>>);

/// A file that is passed to PHP.
#[derive(Debug)]
pub(crate) struct Passing {
    pub(crate) file: Box<dyn KeptFile>,
    /// Bytes.
    pub(crate) length: u64,
    /// The list to add it to once PHP has it.
    pub(crate) lent: Rc<Lent>,
}

/// The next write from `buffer` is for this file.
pub(crate) fn expect(buffer: *const c_void, passing: Passing) {
    EXPECTED.set(buffer);
    PASSING.set(Some(passing));
}

/// The expected write will not happen.
pub(crate) fn forget() {
    if !EXPECTED.replace(null()).is_null() {
        PASSING.take();
    }
}

#[no_mangle]
unsafe extern "C" fn write(fd: c_int, buffer: *const c_void, size: usize) -> isize {
    let expected = EXPECTED.get();
    if !expected.is_null() && expected == buffer {
        EXPECTED.set(null());
        if let Some(passing) = PASSING.take() {
            if passing.length == size as u64 {
                return match place(passing, fd) {
                    Ok(()) => size as isize,
                    Err(error) => {
                        set_errno(error.raw_os_error().unwrap_or(libc::EIO));
                        -1
                    }
                };
            }
        }
    }
    // SAFETY: the caller's arguments.
    unsafe { stream::write_any(fd, buffer, size) }
}

#[no_mangle]
unsafe extern "C" fn unlink(name: *const c_char) -> c_int {
    // SAFETY: the caller's string, which libc would read as well.
    if !name.is_null() && is_taken_back(unsafe { CStr::from_ptr(name) }) {
        return 0;
    }
    let real = real!(unlink: unsafe extern "C" fn(*const c_char) -> c_int);
    // SAFETY: the caller's argument.
    unsafe { real(name) }
}

/// Replaces the file that is open as `to`: by renaming, or by copying where that is impossible (another file system).
fn place(mut passing: Passing, to: RawFd) -> io::Result<()> {
    let file = &mut passing.file;
    if let Ok(name) = fs::read_link(format!("/proc/self/fd/{to}")) {
        let mut beside = OsString::from(&name);
        beside.push("-kept");
        let moved = match file.lend() {
            Some(before) => {
                fs::rename(&before, &beside).inspect_err(|_| _ = fs::remove_file(&before))
            }
            None => link(file.file(), &beside),
        };
        if moved.is_ok() {
            // In two steps: if a rename replaces a file, ext4 first writes the new file's data to the disk.
            let renamed = fs::remove_file(&name).and_then(|()| fs::rename(&beside, &name));
            renamed.inspect_err(|_| _ = fs::remove_file(&beside))?;
            note(name, passing);
            return Ok(());
        }
    }
    // SAFETY: the caller's descriptor, open for this call; it is not closed here.
    let mut to = ManuallyDrop::new(unsafe { File::from_raw_fd(to) });
    let mut from = file.file();
    from.rewind()?;
    io::copy(&mut from, &mut *to).map(drop)
}

fn note(name: PathBuf, passing: Passing) {
    let Passing { file, lent, .. } = passing;
    LENT.with_borrow_mut(|all| {
        if lent.0.borrow().is_empty() {
            all.retain(|other| other.strong_count() > 0);
            all.push(Rc::downgrade(&lent));
        }
    });
    lent.0.borrow_mut().push((name, file));
}

/// True if this was the name of a lent file, which was taken back.
fn is_taken_back(name: &CStr) -> bool {
    // A thread that exits has no list any more.
    let found = LENT.try_with(|all| {
        let all = all.try_borrow().ok()?;
        let name = Path::new(OsStr::from_bytes(name.to_bytes()));
        all.iter().filter_map(Weak::upgrade).find_map(|lent| {
            let mut files = lent.0.try_borrow_mut().ok()?;
            let at = files.iter().position(|(known, _)| known == name)?;
            Some(files.swap_remove(at))
        })
    });
    let Ok(Some((name, mut file))) = found else {
        return false;
    };
    file.spare_name().is_ok_and(|spare| {
        if !is_alone(file.file(), &name) || fs::rename(&name, &spare).is_err() {
            return false;
        }
        // Under this name nobody finds it: from here on nobody changes it.
        if is_alone(file.file(), &spare) && !is_open_elsewhere(file.file()) {
            file.give_back(spare);
        } else {
            let _ = fs::remove_file(&spare);
        }
        true
    })
}

/// Whether `name` is the only name of a file, and its mode is unchanged.
fn is_alone(file: &File, name: &Path) -> bool {
    let (Ok(file), Ok(named)) = (file.metadata(), fs::symlink_metadata(name)) else {
        return false;
    };
    (file.dev(), file.ino()) == (named.dev(), named.ino())
        && file.nlink() == 1
        && file.mode() & 0o7777 == 0o600
}

/// The kernel grants a write lease only for a file that is open once (fcntl(2), `F_SETLEASE`). True if leases do not
/// work.
fn is_open_elsewhere(file: &File) -> bool {
    /// Sets the signal that reports another open of the file; libc has no name for it.
    const F_SETSIG: c_int = 10;
    // SAFETY: fcntl with an open descriptor and a number. SIGURG is ignored; the default, SIGIO, ends the process.
    let control =
        |command, value: c_int| unsafe { libc::fcntl(file.as_raw_fd(), command, value) } == 0;
    !(control(F_SETSIG, libc::SIGURG)
        && control(libc::F_SETLEASE, libc::F_WRLCK)
        && control(libc::F_SETLEASE, libc::F_UNLCK))
}

/// Gives an unnamed file a name, which must not exist.
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
