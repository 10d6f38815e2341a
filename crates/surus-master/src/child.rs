//! Runs one-time work in a child process, so that its side effects do not stay in the master.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::ForkResult;
use surus_log::LAST_LINES;

use crate::fork::fork;
use crate::identity::Identity;
use crate::state::Death;

/// As [`in_child`], as the user that workers run as.
pub fn in_child_as(
    identity: Option<&Identity>,
    work: &dyn Fn() -> String,
) -> io::Result<Result<String, String>> {
    in_child(&|| match identity.map_or(Ok(()), Identity::assume) {
        Ok(()) => work(),
        Err(error) => format!("cannot become the user that workers run as: {error}"),
    })
}

/// Runs `work` in a child process and returns what it returned there, or how the child has died instead.
pub fn in_child(work: &dyn Fn() -> String) -> io::Result<Result<String, String>> {
    let (mut ours, mut theirs) = UnixStream::pair()?;
    match fork()? {
        ForkResult::Child => {
            drop(ours);
            let done = theirs.write_all(work().as_bytes()).is_ok();
            surus_log::finish(LAST_LINES);
            std::process::exit(i32::from(!done))
        }
        ForkResult::Parent { child } => {
            drop(theirs);
            let mut text = String::new();
            ours.read_to_string(&mut text)?;
            let death = loop {
                match waitpid(child, None) {
                    Ok(WaitStatus::Exited(_, 0)) => return Ok(Ok(text)),
                    Ok(WaitStatus::Exited(_, code)) => break Death::Exit(code),
                    Ok(WaitStatus::Signaled(_, signal, _)) => break Death::Signal(signal.as_str()),
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(error) => return Err(error.into()),
                }
            };
            Ok(Err(death.to_string()))
        }
    }
}
