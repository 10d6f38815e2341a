//! How many files and sockets a process may have open: `RLIMIT_NOFILE`.

use nix::sys::resource::{getrlimit, setrlimit, Resource};

/// Raises the limit as far as it may be raised: shells give 1024, of which connections alone may need more.
pub(crate) fn raise() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        if soft < hard {
            // What is not allowed stays as it was, and connections are fewer.
            let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        }
    }
}

/// How many of the wanted connections the limit allows. Half of it is left to the files of bodies and to PHP.
pub(crate) fn connections(wanted: usize) -> usize {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, _)) => wanted.min(usize::try_from(soft / 2).unwrap_or(usize::MAX).max(1)),
        Err(_) => wanted,
    }
}
