//! The limit of open files and sockets of a process: `RLIMIT_NOFILE`.

use nix::sys::resource::{getrlimit, setrlimit, Resource};

/// Raises the limit as far as allowed: shells set 1024, and connections alone may need more.
pub(crate) fn raise() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        if soft < hard {
            // If that is not allowed the limit stays, and allows fewer connections.
            let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        }
    }
}

/// How many of the wanted connections the limit allows. Half of the limit is reserved for the files of bodies and for
/// PHP.
pub(crate) fn connections(wanted: usize) -> usize {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, _)) => wanted.min(usize::try_from(soft / 2).unwrap_or(usize::MAX).max(1)),
        Err(_) => wanted,
    }
}
