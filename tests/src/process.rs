//! Child processes that end with their value.

use std::fmt;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{killpg, Signal};
use nix::unistd::{Pid, Uid, User};

use crate::watchdog;

/// How long a server may take to start, or to obey the signal that stops it.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running server: the leader of a process group of its own, its output in two files.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    group: Pid,
    stop: Signal,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Process {
    /// Starts `command`, which `stop` will end. Its output goes to `NAME.out` and `NAME.err` in `logs`.
    pub fn start(name: &str, command: Command, stop: Signal, logs: &Path) -> Self {
        Self::start_with(name, command, stop, logs, [None, None])
    }

    /// The same, with its standard output and standard error elsewhere, if that is said.
    pub fn start_with(
        name: &str,
        mut command: Command,
        stop: Signal,
        logs: &Path,
        [output, errors]: [Option<OwnedFd>; 2],
    ) -> Self {
        let stdout = logs.join(format!("{name}.out"));
        let stderr = logs.join(format!("{name}.err"));
        let file = |path: &Path| Stdio::from(File::create(path).expect("create a log"));
        let child = command
            .stdin(Stdio::null())
            .stdout(output.map_or_else(|| file(&stdout), Stdio::from))
            .stderr(errors.map_or_else(|| file(&stderr), Stdio::from))
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error} ({command:?})"));
        let id = i32::try_from(child.id()).expect("a process id");
        let group = Pid::from_raw(id);
        watchdog::group(group, stop);
        Self {
            name: name.to_owned(),
            child,
            group,
            stop,
            stdout,
            stderr,
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote on its standard output so far.
    pub fn stdout(&self) -> String {
        read_lossy(&self.stdout)
    }

    /// What it wrote on its standard error so far.
    pub fn stderr(&self) -> String {
        read_lossy(&self.stderr)
    }

    /// Bytes of anonymous memory of the process group. Pages of the program and its libraries do not count: other tests
    /// that end leave a larger share of them.
    pub fn memory(&self) -> u64 {
        let mut bytes = 0;
        for entry in fs::read_dir("/proc").expect("/proc").flatten() {
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let group = stat
                .rsplit(") ")
                .next()
                .and_then(|rest| rest.split(' ').nth(2));
            if group != Some(&self.group.to_string()) {
                continue;
            }
            let rollup = fs::read_to_string(entry.path().join("smaps_rollup")).unwrap_or_default();
            let kilobytes = rollup
                .lines()
                .find_map(|line| line.strip_prefix("Pss_Anon:"))
                .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
            bytes += kilobytes.unwrap_or_default() * 1024;
        }
        bytes
    }

    /// `Some` when it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("wait for a child")
    }

    /// Waits until `ready`; panics with the output if the process ends or takes too long.
    pub fn wait_until(&mut self, mut ready: impl FnMut(&Self) -> bool) {
        let start = Instant::now();
        loop {
            if ready(self) {
                return;
            }
            let ended = self.ended();
            let late = start.elapsed() > PATIENCE;
            if ended.is_some() || late {
                let what = ended.map_or("is not ready".to_owned(), |status| {
                    format!("ended: {status}")
                });
                panic!("{} {what}\n{}{}", self.name, self.stdout(), self.stderr());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends `signal` to the whole group.
    pub fn signal(&self, signal: Signal) {
        // An error means that the group is gone already.
        let _ = killpg(self.group, signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let text = self.stderr();
            eprintln!("---- {}'s standard error ----\n{text}----", self.name);
        }
        self.signal(self.stop);
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        // Whoever is left of the group: children of a leader that ended without them.
        self.signal(Signal::SIGKILL);
        let _ = self.child.wait();
        watchdog::group_gone(self.group);
    }
}

/// CPU time that a process has used: other than the time, it does not depend on what else the machine does.
///
/// None is used by a process that is not there.
pub fn cpu_time(pid: impl fmt::Display) -> Duration {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return Duration::ZERO;
    };
    // After the name: state, then ten more fields before the two of time, in ticks of 10 ms.
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let fields: Vec<_> = fields.split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<u64>().expect("ticks");
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

/// Runs a command to its end; panics with its output if it fails.
pub fn run(mut command: Command) {
    let output = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{error}: {command:?}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A command that runs as `user` when the tests run as root.
pub(crate) fn command_as(user: &User, program: &str) -> Command {
    let mut command = Command::new(program);
    if Uid::effective().is_root() {
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    command
}

/// A user of this machine.
pub(crate) fn user(name: &str) -> User {
    User::from_name(name)
        .expect("read the users")
        .unwrap_or_else(|| panic!("no user {name}: its Debian package is missing"))
}

fn read_lossy(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
