//! The process that runs a job, named so that a later one with the same process id is another one.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Holder {
    pid: u32,
    /// When it was started, in the kernel's ticks since the boot.
    start: u64,
    /// Which run of the machine. Not when it was booted: that moves when the clock is set.
    boot: u64,
}

impl Holder {
    /// The process with this id; `None` if there is none.
    pub(crate) fn of(pid: u32) -> Option<Holder> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in brackets, may have any character; what follows has numbers: proc(5).
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        // One that nobody has waited for runs nothing any more.
        if matches!(fields.next()?, "Z" | "X") {
            return None;
        }
        let start = fields.nth(18)?.parse().ok()?;
        let boot = boot()?;
        Some(Holder { pid, start, boot })
    }

    pub(crate) fn is_alive(&self) -> bool {
        let found = Holder::of(self.pid);
        found.as_ref() == Some(self)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }
}

/// Which run of the machine this is.
pub(crate) fn boot() -> Option<u64> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = id
        .chars()
        .filter(char::is_ascii_hexdigit)
        .take(16)
        .collect();
    u64::from_str_radix(&digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::Holder;

    #[test]
    fn a_process_is_known_by_when_it_was_started() {
        let this = Holder::of(std::process::id()).expect("this process");
        assert!(this.is_alive());
        let other = Holder {
            start: this.start + 1,
            ..this
        };
        assert!(!other.is_alive());
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let ended = Holder::of(child.id());
        child.wait().expect("its end");
        assert!(!ended.is_some_and(|ended| ended.is_alive()));
    }
}
