//! A new binary: started by the old master with its listening sockets, it takes over when it serves.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command};

use command_fds::{CommandFdExt, FdMapping};
use nix::sys::signal::{kill, Signal};
use nix::unistd::{getppid, Pid};

/// In the environment of a new master: the process id of the one it replaces.
const PREDECESSOR: &str = "SURUS_UPGRADE_FROM";

const FIRST_PROCESS: &str = "this is the first process of a container, which would end with it: \
    start a container of the new image beside this one, then stop this one (`surus reload` takes new code)";

/// The first inherited descriptor, by the convention that `LISTEN_FDS` comes from.
const FIRST: i32 = 3;

/// How this program was started, to be started again.
#[derive(Clone, Debug)]
pub struct Program {
    /// Of the program.
    pub path: PathBuf,
    /// Without its name.
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
    /// It cannot be started; or this is the first process of a container, which ends with it, successor and all.
    pub(crate) fn start(&self, sockets: Vec<OwnedFd>) -> io::Result<Child> {
        if std::process::id() == 1 {
            return Err(io::Error::other(FIRST_PROCESS));
        }
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
        command.spawn()
    }
}

/// The master that this process was started by to replace it. It waits to be told that the new one serves.
#[derive(Clone, Copy, Debug)]
pub struct Predecessor(Pid);

impl Predecessor {
    /// Only a parent can be one: the variable may be left over in an environment.
    pub fn from_env() -> Option<Self> {
        let pid = std::env::var(PREDECESSOR).ok()?.parse().ok()?;
        let pid = Pid::from_raw(pid);
        (pid == getppid()).then_some(Predecessor(pid))
    }

    /// Its process id, as long as it has not ended.
    pub(crate) fn pid(self) -> Option<i32> {
        (getppid() == self.0).then_some(self.0.as_raw())
    }

    /// SIGTERM from its successor: drain and end.
    pub(crate) fn retire(self) {
        if getppid() == self.0 {
            // It is our parent, so the number is still its own.
            let _ = kill(self.0, Signal::SIGTERM);
        }
    }
}
