//! The socket between workers and processes, which is the queue. It has no name: nobody else can connect to it, and no
//! file is left behind.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::time::{clock_gettime, ClockId};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::preflight;

/// How long a free process sleeps in `accept` before it checks again; signals wake it at once.
pub(crate) const SLEEP: Duration = Duration::from_secs(2);

/// Requests that may wait for a process; the kernel caps it at net.core.somaxconn.
const LENGTH: i32 = 4096;

/// What a queue is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// All requests that need PHP.
    Requests,
    /// Jobs of `Surus\offload()`.
    Jobs,
}

/// The queue, created by the master and inherited by all processes.
#[derive(Debug)]
pub(crate) struct Queue {
    socket: Socket,
    /// The socket's removed file, to connect to through /proc.
    file: File,
    /// Reaches its end when no worker is left that could send a request.
    workers: UnixStream,
    pub(crate) purpose: Purpose,
}

/// A temporary folder in which the socket has a name for a moment.
fn own_folder() -> io::Result<PathBuf> {
    let name = format!("surus-line-{}", std::process::id());
    let mut wrong = Vec::new();
    for parent in preflight::scratch_folders() {
        let folder = parent.join(&name);
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) => wrong.push(format!("{}: {error}", parent.display())),
        }
    }
    let wrong = wrong.join("; ");
    Err(io::Error::other(format!(
        "{wrong} (TMPDIR names a folder that can be written to)"
    )))
}

impl Queue {
    /// Creates the queue, and a descriptor that each worker must hold as long as it lives, and nobody else. `look`: how
    /// often a free process returns from `accept`.
    pub(crate) fn new(purpose: Purpose, look: Duration) -> io::Result<(Queue, OwnedFd)> {
        let folder = own_folder()?;
        let made = Self::bound(&folder.join("socket"), look);
        fs::remove_dir_all(&folder)?;
        let (socket, file) = made?;
        let (workers, held) = UnixStream::pair()?;
        let queue = Queue {
            socket,
            file,
            workers,
            purpose,
        };
        Ok((queue, held.into()))
    }

    fn bound(path: &std::path::Path, look: Duration) -> io::Result<(Socket, File)> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&SockAddr::unix(path)?)?;
        socket.listen(LENGTH)?;
        // Without a timeout, `accept` would not return after a signal.
        socket.set_read_timeout(Some(look))?;
        // For workers that run as another user than the master; the folder keeps others out.
        fs::set_permissions(path, Permissions::from_mode(0o666))?;
        let flags = nix::libc::O_PATH | nix::libc::O_CLOEXEC;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)?;
        Ok((socket, file))
    }

    /// The path to connect to, in each process that has inherited the queue.
    pub(crate) fn address(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// The next request, for a free process. `None` if there was none for a while, or a signal.
    ///
    /// It blocks the thread on purpose: of many processes that sleep here the kernel wakes only one, while with event
    /// loops it would wake them all.
    pub(crate) fn accept(&self) -> io::Result<Option<UnixStream>> {
        match self.socket.accept() {
            Ok((stream, _)) => Ok(Some(UnixStream::from(OwnedFd::from(stream)))),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// As [`Queue::accept`], while the server drains: after the last worker has exited there are no more requests,
    /// which is an `UnexpectedEof`.
    pub(crate) fn accept_last(&self, patience: Duration) -> io::Result<Option<UnixStream>> {
        let mut fds = [
            PollFd::new(self.socket.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.workers.as_fd(), PollFlags::POLLIN),
        ];
        let patience = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, patience) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
        if ready(&fds[0]) {
            return self.accept();
        }
        if ready(&fds[1]) && (&self.workers).read(&mut [0])? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(None)
    }
}

/// A clock that is the same for all processes of the machine.
pub(crate) fn now() -> Duration {
    // Through libc: rustix reads the vDSO itself, which does not exist under valgrind.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}
