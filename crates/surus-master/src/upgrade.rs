//! Upgrades: the old master starts a new binary with its listening sockets, which takes over when it serves.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;

use command_fds::{CommandFdExt, FdMapping};
use nix::sys::signal::{kill, Signal};
use nix::unistd::{getppid, Pid};

use crate::listen::Inherited;

/// Environment variable of a new master: the process id of the one it replaces.
const PREDECESSOR: &str = "SURUS_UPGRADE_FROM";

const FIRST_PROCESS: &str = "this is the first process of a container, which would end with it: \
    start a container of the new image, then stop this one (`surus reload` takes new code)";

/// Maximum bytes of one message of [`Predecessor::tell`].
const LONGEST_REASON: usize = 16 * 1024;

/// The first inherited descriptor, by the convention that `LISTEN_FDS` comes from.
const FIRST: i32 = 3;

/// How this program was started, to be started again.
#[derive(Clone, Debug)]
pub struct Program {
    /// Path of the program.
    pub path: PathBuf,
    /// Its arguments, without its name.
    pub arguments: Vec<OsString>,
}

impl Program {
    /// The running program by its path, which may hold a newer version by the time it is used.
    pub fn this() -> io::Result<Self> {
        Ok(Program {
            path: std::env::current_exe()?,
            arguments: std::env::args_os().skip(1).collect(),
        })
    }

    /// # Errors
    /// It cannot be started; or this is the first process of a container, which would end with it, together with the
    /// successor.
    pub(crate) fn start(&self, mut sockets: Vec<OwnedFd>) -> io::Result<Upgrade> {
        if std::process::id() == 1 {
            return Err(io::Error::other(FIRST_PROCESS));
        }
        let (reasons, theirs) = UnixDatagram::pair()?;
        reasons.set_nonblocking(true)?;
        sockets.push(theirs.into());
        let count = sockets.len();
        let mappings = (FIRST..)
            .zip(sockets)
            .map(|(child_fd, parent_fd)| FdMapping {
                parent_fd,
                child_fd,
            })
            .collect();
        let mut command = Command::new(&self.path);
        command
            .args(&self.arguments)
            .env("LISTEN_FDS", count.to_string())
            .env_remove("LISTEN_PID")
            .env(PREDECESSOR, std::process::id().to_string());
        command.fd_mappings(mappings).map_err(io::Error::other)?;
        let child = command.spawn()?;
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        Ok(Upgrade {
            pid: Pid::from_raw(pid),
            reasons,
        })
    }
}

/// A new master that does not serve yet.
#[derive(Debug)]
pub(crate) struct Upgrade {
    pub(crate) pid: Pid,
    /// Its messages about why it does not start.
    reasons: UnixDatagram,
}

impl Upgrade {
    pub(crate) fn reason(&self) -> String {
        let mut bytes = vec![0; LONGEST_REASON];
        let mut reasons = Vec::new();
        while let Ok(count) = self.reasons.recv(&mut bytes) {
            reasons.push(String::from_utf8_lossy(&bytes[..count]).into_owned());
        }
        reasons.join("\n")
    }
}

/// The master that has started this process as its successor. It waits for the signal that the new one serves.
#[derive(Clone, Debug)]
pub struct Predecessor {
    id: Pid,
    reasons: Option<Rc<UnixDatagram>>,
}

impl Predecessor {
    /// Only the parent process can be the predecessor: the variable may be left over in an environment.
    pub fn from_env(inherited: &mut Inherited) -> Option<Self> {
        let id = std::env::var(PREDECESSOR).ok()?.parse().ok()?;
        let id = Pid::from_raw(id);
        let reasons = inherited.reasons.take();
        (id == getppid()).then(|| Predecessor {
            id,
            reasons: reasons.map(Rc::new),
        })
    }

    /// Reports why this process does not start, for those who requested the upgrade.
    pub fn tell(&self, reason: &str) {
        let Some(reasons) = &self.reasons else {
            return;
        };
        // A predecessor that does not read must not block this process.
        let _ = reasons.set_nonblocking(true);
        let _ = reasons.send(&reason.as_bytes()[..reason.len().min(LONGEST_REASON)]);
    }

    /// Its process id, as long as it has not ended.
    pub(crate) fn pid(&self) -> Option<i32> {
        (getppid() == self.id).then_some(self.id.as_raw())
    }

    /// Sends SIGTERM, after which it drains and exits.
    pub(crate) fn retire(&self) {
        if getppid() == self.id {
            // It is the parent, so the id is still its own.
            let _ = kill(self.id, Signal::SIGTERM);
        }
    }
}
