//! What companions print. If the error log is a file, it comes through a pipe to the master, which alone has the file open: a
//! program that had opened the file itself would go on writing to it after it was rotated.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::unistd::{pipe2, Pid};

/// Bytes that are read at a time, so that the master is not kept by one that prints much.
const PIECE: usize = 64 << 10;
/// A line that is longer is broken.
const LONGEST_LINE: usize = 16 << 10;
/// Programs that have ended, and left children behind which still print; beyond that, those of the oldest one get a closed pipe.
const MOST: usize = 256;

/// The end of a pipe that the master reads.
#[derive(Debug)]
pub(crate) struct Printed {
    pipe: File,
    /// The beginning of a line.
    rest: Vec<u8>,
    /// The companion, until it has ended.
    by: Option<Pid>,
}

impl Printed {
    /// With the end that the companion writes to.
    pub(crate) fn new() -> nix::Result<(Printed, OwnedFd)> {
        let (ours, theirs) = pipe2(OFlag::O_CLOEXEC)?;
        // Not the other end: programs do not expect that.
        fcntl(&ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let printed = Printed {
            pipe: ours.into(),
            rest: Vec::new(),
            by: None,
        };
        Ok((printed, theirs))
    }

    /// Passes on whole lines. Returns whether more may come.
    fn pass(&mut self, write: &mut impl FnMut(&[u8])) -> bool {
        let begin = self.rest.len();
        self.rest.resize(begin + PIECE, 0);
        let read = self.pipe.read(&mut self.rest[begin..]);
        self.rest.truncate(begin + *read.as_ref().unwrap_or(&0));
        let goes_on = match read {
            Ok(count) => count > 0,
            Err(error) => matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
            ),
        };
        let mut end = self.rest.iter().rposition(|&byte| byte == b'\n');
        if end.is_none() && !self.rest.is_empty() && (!goes_on || self.rest.len() >= LONGEST_LINE) {
            end = Some(self.rest.len());
            self.rest.push(b'\n');
        }
        if let Some(end) = end {
            write(&self.rest[..=end]);
            self.rest.drain(..=end);
        }
        goes_on
    }
}

/// Of all companions.
#[derive(Debug, Default)]
pub(crate) struct Outputs(Vec<Printed>);

impl Outputs {
    /// One has started.
    pub(crate) fn add(&mut self, mut printed: Printed, by: Pid) {
        let mut left = self.0.iter().filter(|each| each.by.is_none()).count();
        self.0.retain(|each| {
            let goes = each.by.is_none() && left > MOST;
            left -= usize::from(goes);
            !goes
        });
        printed.by = Some(by);
        self.0.push(printed);
    }

    /// One has ended. What it has left behind may print on.
    pub(crate) fn ended(&mut self, pid: Pid) {
        for printed in self.0.iter_mut().filter(|each| each.by == Some(pid)) {
            printed.by = None;
        }
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().map(|printed| printed.pipe.as_fd())
    }

    /// Passes on what has come, and forgets those that have ended.
    pub(crate) fn pass(&mut self, mut write: impl FnMut(&[u8])) {
        self.0.retain_mut(|printed| printed.pass(&mut write));
    }

    /// In a child of the master, which reads none of them.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn passed(outputs: &mut Outputs) -> String {
        let mut text = Vec::new();
        outputs.pass(|lines| text.extend_from_slice(lines));
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn whole_lines_are_passed_on_and_the_last_one_at_the_end() {
        let (printed, theirs) = Printed::new().expect("a pipe");
        let mut outputs = Outputs::default();
        outputs.add(printed, Pid::this());
        let mut theirs = File::from(theirs);
        theirs.write_all(b"one\ntw").expect("room");
        assert_eq!(passed(&mut outputs), "one\n");
        assert_eq!(passed(&mut outputs), "");
        theirs.write_all(b"o").expect("room");
        drop(theirs);
        passed(&mut outputs);
        assert_eq!(outputs.descriptors().count(), 1);
        assert_eq!(passed(&mut outputs), "two\n");
        assert_eq!(outputs.descriptors().count(), 0);
    }

    #[test]
    fn a_line_without_an_end_is_broken() {
        let (printed, theirs) = Printed::new().expect("a pipe");
        let mut outputs = Outputs::default();
        outputs.add(printed, Pid::this());
        File::from(theirs)
            .write_all(&[b'x'; LONGEST_LINE])
            .expect("room");
        assert_eq!(passed(&mut outputs).len(), LONGEST_LINE + 1);
    }

    #[test]
    fn one_that_runs_keeps_its_pipe_however_many_others_there_are() {
        let mut outputs = Outputs::default();
        let mut ends = Vec::new();
        for pid in 1..=MOST as i32 + 10 {
            let (printed, theirs) = Printed::new().expect("a pipe");
            outputs.add(printed, Pid::from_raw(pid));
            ends.push(theirs);
        }
        assert_eq!(outputs.descriptors().count(), MOST + 10);
        for pid in 2..=MOST as i32 + 10 {
            outputs.ended(Pid::from_raw(pid));
        }
        let (printed, _theirs) = Printed::new().expect("a pipe");
        outputs.add(printed, Pid::from_raw(1));
        assert_eq!(outputs.descriptors().count(), MOST + 2);
        File::from(ends.remove(0))
            .write_all(b"one\n")
            .expect("room");
        assert_eq!(passed(&mut outputs), "one\n");
    }
}
