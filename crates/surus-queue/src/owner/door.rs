//! The folder of the jobs: who has its lock owns them, and listens on its socket.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::message::{write, ToOwner, SOCKET};

/// How long an owner may take to leave its jobs to this one.
const HANDED_OVER: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Door {
    folder: PathBuf,
    listener: UnixListener,
    _lock: Flock<File>,
}

impl Door {
    /// Waits for an owner that has the folder, and asks it to leave.
    pub(crate) fn open(folder: &Path) -> io::Result<Door> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(folder.join("lock"))?;
        let deadline = Instant::now() + HANDED_OVER;
        let mut asked = false;
        let lock = loop {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => break lock,
                Err((again, Errno::EWOULDBLOCK)) if Instant::now() < deadline => file = again,
                Err((_, error)) => return Err(error.into()),
            }
            if !asked {
                asked = ask_to_leave(folder).is_ok();
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        // Through the folder's descriptor: a name of a socket has 108 bytes at most.
        let open = File::open(folder)?;
        let path = |name: &str| format!("/proc/self/fd/{}/{name}", open.as_raw_fd());
        let new = format!("{SOCKET}.new");
        let _ = fs::remove_file(path(&new));
        let listener = UnixListener::bind(path(&new))?;
        listener.set_nonblocking(true)?;
        fs::rename(path(&new), path(SOCKET))?;
        Ok(Door {
            folder: folder.to_owned(),
            listener,
            _lock: lock,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    pub(crate) fn accept(&self) -> Option<UnixStream> {
        self.listener.accept().ok().map(|(stream, _)| stream)
    }
}

fn ask_to_leave(folder: &Path) -> io::Result<()> {
    let mut message = Vec::new();
    write(&ToOwner::Yield, &mut message);
    let folder = File::open(folder)?;
    let stream = UnixStream::connect(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd()))?;
    io::Write::write_all(&mut &stream, &message)
}
