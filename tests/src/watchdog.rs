//! Cleans up after the test binary, however it ended.
//!
//! Rust drops no `static`, and a killed process drops nothing at all. So one shell per test binary reads
//! from a pipe what there is to clean up. When the pipe closes, the test binary has ended: the shell
//! stops the process groups that are left, then removes the folders, queues and semaphores that are left.
//!
//! This is used instead of `PR_SET_PDEATHSIG` because that one follows the thread that started the child
//! (a test's thread ends long before its binary) and reaches no grandchildren.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

/// Waits at most 5 s for groups to obey their signal, then kills them.
const SCRIPT: &str = r#"
groups= dirs= keys=
without() { # ITEM LIST...
    item=$1; shift
    for each in "$@"; do case $each in "$item"|"$item":*) ;; *) printf ' %s' "$each" ;; esac; done
}
while read -r what value signal; do
    case $what in
        group) groups="$groups $value:$signal" ;;
        dir) dirs="$dirs $value" ;;
        key) keys="$keys $value" ;;
        group-gone) groups=$(without "$value" $groups) ;;
        dir-gone) dirs=$(without "$value" $dirs) ;;
        key-gone) keys=$(without "$value" $keys) ;;
    esac
done
alive() { # a leader that only waits to be reaped has ended
    kill -s 0 "$1" && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status"
}
for each in $groups; do kill -s "${each#*:}" -- "-${each%:*}"; done
tries=100
while [ $tries -gt 0 ]; do
    left=
    for each in $groups; do alive "${each%:*}" && left=1; done
    [ -n "$left" ] || break
    tries=$((tries - 1)); sleep 0.05
done
for each in $groups; do kill -s KILL -- "-${each%:*}"; done
[ -z "$dirs" ] || rm -rf -- $dirs
for each in $keys; do ipcrm -Q "$each"; ipcrm -S "$each"; done
"#;

fn tell(line: &str) {
    static PIPE: OnceLock<Mutex<ChildStdin>> = OnceLock::new();
    #[expect(clippy::zombie_processes, reason = "it ends after this process")]
    let pipe = PIPE.get_or_init(|| {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT])
            // A group of its own: an interrupt typed at the terminal must not reach it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("start the watchdog");
        Mutex::new(shell.stdin.take().expect("the watchdog's pipe"))
    });
    let mut pipe = pipe.lock().unwrap_or_else(PoisonError::into_inner);
    writeln!(pipe, "{line}").expect("write to the watchdog");
}

/// A process group that `signal` stops.
pub(crate) fn group(group: Pid, signal: Signal) {
    let name = signal.as_str();
    tell(&format!("group {group} {}", name.trim_start_matches("SIG")));
}

pub(crate) fn group_gone(group: Pid) {
    tell(&format!("group-gone {group}"));
}

/// A key of queues and semaphores to remove.
pub(crate) fn key(key: u32) {
    tell(&format!("key {key}"));
}

pub(crate) fn key_gone(key: u32) {
    tell(&format!("key-gone {key}"));
}

/// A folder to remove; its path has no white space.
pub(crate) fn dir(path: &Path) {
    tell(&format!("dir {}", path.display()));
}

pub(crate) fn dir_gone(path: &Path) {
    tell(&format!("dir-gone {}", path.display()));
}
