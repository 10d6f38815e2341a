//! Where a log is written.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{fstat, open, FileType, Mode, OFlags};
use rustix::io::{fcntl_dupfd_cloexec, write, Errno};
use rustix::net::{send, SendFlags};

use crate::Log;

/// PHP's `select` handles only descriptors below 1024: the server's own get higher numbers, if the limit of open files
/// allows it.
const HIGH: i32 = 1024;
const LOWEST: i32 = 3;

/// Up to this size, writes to a pipe are not mixed with those of other processes (PIPE_BUF).
const PIPE: usize = 4096;

/// Appending writes to a file are never mixed. This size is fast enough.
const FILE: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A regular file: writes never wait for a reader.
    File,
    Socket,
    /// A pipe or a terminal.
    Stream,
}

/// Standard output, standard error, or a file that was opened.
#[derive(Debug)]
pub(crate) struct Target {
    fd: OwnedFd,
    kind: Kind,
    /// The same target, for non-blocking writes. It is a separate open file description: `O_NONBLOCK` on the inherited
    /// one would affect every process that shares it, such as the shell.
    at_once: Option<OwnedFd>,
}

impl Target {
    pub(crate) fn standard(log: Log) -> io::Result<Self> {
        let fd = match log {
            Log::Error | Log::Terminal => high(rustix::stdio::stderr())?,
            Log::Access | Log::Output => high(rustix::stdio::stdout())?,
        };
        let kind = kind(&fd)?;
        let at_once = match kind {
            Kind::File | Kind::Socket => None,
            Kind::Stream => again(log),
        };
        Ok(Target { fd, kind, at_once })
    }

    pub(crate) fn of(fd: OwnedFd) -> io::Result<Self> {
        let kind = kind(&fd)?;
        let fd = high(fd.as_fd())?;
        Ok(Target {
            // It was opened as non-blocking.
            at_once: (kind == Kind::Stream).then(|| fd.try_clone()).transpose()?,
            fd,
            kind,
        })
    }

    /// Opens a file. For a named pipe or a device, does not wait for the other end.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::WRONLY
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::CLOEXEC
            | OFlags::NOCTTY
            | OFlags::NONBLOCK;
        Target::of(open(path, flags, Mode::from_raw_mode(0o640))?)
    }

    pub(crate) fn copy(&self) -> io::Result<OwnedFd> {
        self.fd.try_clone()
    }

    /// Maximum bytes of complete lines per write.
    pub(crate) fn most(&self) -> usize {
        match self.kind {
            Kind::File => FILE,
            Kind::Socket | Kind::Stream => PIPE,
        }
    }

    /// Writes, and waits for room.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let written = match self.kind {
                Kind::Socket => send(&self.fd, bytes, SendFlags::NOSIGNAL),
                Kind::File | Kind::Stream => write(&self.fd, bytes),
            };
            match written {
                Err(Errno::INTR) => {}
                // Another process that shares the description has made it non-blocking.
                Err(Errno::AGAIN) => _ = self.is_ready(None)?,
                written => return Ok(written?),
            }
        }
    }

    /// Writes as much as there is room for now.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let written = match (self.kind, &self.at_once) {
                (Kind::File, _) => write(&self.fd, bytes),
                (Kind::Socket, _) => {
                    send(&self.fd, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
                }
                (Kind::Stream, Some(fd)) => write(fd, bytes),
                // The next best way: a pipe with any room takes a short line.
                (Kind::Stream, None) if !self.is_ready(Some(Timespec::default()))? => {
                    Err(Errno::AGAIN)
                }
                (Kind::Stream, None) => write(&self.fd, &bytes[..bytes.len().min(PIPE)]),
            };
            match written {
                Err(Errno::INTR) => {}
                written => return Ok(written?),
            }
        }
    }

    fn is_ready(&self, timeout: Option<Timespec>) -> io::Result<bool> {
        let mut fds = [PollFd::new(&self.fd, PollFlags::OUT)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for room, at most this time.
    pub(crate) fn wait(&self, time: std::time::Duration) {
        let time = Timespec::try_from(time).unwrap_or_default();
        let _ = self.is_ready(Some(time));
    }
}

fn kind(fd: &OwnedFd) -> io::Result<Kind> {
    let mode = fstat(fd)?.st_mode;
    Ok(match FileType::from_raw_mode(mode) {
        FileType::RegularFile => Kind::File,
        FileType::Socket => Kind::Socket,
        _ => Kind::Stream,
    })
}

fn high(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let copy = fcntl_dupfd_cloexec(fd, HIGH).or_else(|_| fcntl_dupfd_cloexec(fd, LOWEST));
    Ok(copy?)
}

/// A second open file description of the standard stream. `None` if /proc is missing, or the terminal belongs to
/// another user.
fn again(log: Log) -> Option<OwnedFd> {
    let path = match log {
        Log::Error | Log::Terminal => "/proc/self/fd/2",
        Log::Access | Log::Output => "/proc/self/fd/1",
    };
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let fd = open(path, flags, Mode::empty()).ok()?;
    high(fd.as_fd()).ok()
}
