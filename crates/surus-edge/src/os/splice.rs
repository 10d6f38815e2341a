//! Moves bytes from a socket to a file with splice(2): the kernel copies them once, and this process never.

use std::fs::File;
use std::io::{self, Read};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use rustix::pipe::{fcntl_setpipe_size, pipe_with, splice, PipeFlags, SpliceFlags};

/// The capacity of the pipe: the largest without privileges (`fs.pipe-max-size`).
const SIZE: usize = 1 << 20;

/// A pipe for bytes that have left the socket and are not in the file yet. Empty between two calls.
#[derive(Debug)]
pub(crate) struct Splicer {
    output: OwnedFd,
    input: OwnedFd,
}

/// The result of an attempt to move bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    Bytes(u64),
    /// Nothing was received, or the client has disconnected.
    Nothing,
    /// The kernel cannot splice between these two; nothing is lost.
    Unsupported,
}

impl Splicer {
    pub(crate) fn new() -> io::Result<Self> {
        let (output, input) = pipe_with(PipeFlags::CLOEXEC)?;
        // A smaller pipe works, too.
        let _ = fcntl_setpipe_size(&input, SIZE);
        Ok(Splicer { output, input })
    }

    /// Appends received bytes to the file, up to `most`.
    ///
    /// # Errors
    /// Of the file. Then bytes are lost, and this pipe must not be used any more.
    pub(crate) fn pass(&self, from: &TcpStream, to: &File, most: usize) -> io::Result<Moved> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let taken = loop {
            match splice(from, None, &self.input, None, most, flags) {
                Ok(0) => return Ok(Moved::Nothing),
                Ok(taken) => break taken,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                    return Ok(Moved::Unsupported)
                }
                Err(_) => return Ok(Moved::Nothing),
            }
        };
        let mut left = taken;
        while left > 0 {
            match splice(&self.output, None, to, None, left, SpliceFlags::MOVE) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => left -= count,
                Err(rustix::io::Errno::INTR) => {}
                // Some file systems do not support splice from a pipe. The bytes in it are copied instead.
                Err(rustix::io::Errno::INVAL) => {
                    self.copy(to, left)?;
                    left = 0;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Moved::Bytes(taken as u64))
    }

    /// Appends the `left` bytes in the pipe.
    fn copy(&self, mut to: &File, left: usize) -> io::Result<()> {
        let waiting = File::from(self.output.try_clone()?);
        let copied = io::copy(&mut waiting.take(left as u64), &mut to)?;
        if copied < left as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn all_arrives_and_nothing_waits() -> io::Result<()> {
        all_arrives(tempfile::tempfile()?)
    }

    /// A file opened for appending does not support splice.
    #[test]
    fn files_that_take_no_pipe_get_it_all_the_same() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let mut options = File::options();
        options.create(true).append(true).read(true);
        all_arrives(options.open(folder.path().join("appended"))?)
    }

    fn all_arrives(mut file: File) -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut client = TcpStream::connect(listener.local_addr()?)?;
        let (server, _) = listener.accept()?;
        server.set_nonblocking(true)?;
        let splicer = Splicer::new()?;
        assert_eq!(splicer.pass(&server, &file, 10)?, Moved::Nothing);

        let sent: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        let copy = sent.clone();
        let writer = std::thread::spawn(move || client.write_all(&copy));
        let mut count = 0;
        while count < sent.len() as u64 {
            match splicer.pass(&server, &file, 700_000)? {
                Moved::Bytes(bytes) => count += bytes,
                Moved::Nothing => std::thread::yield_now(),
                Moved::Unsupported => panic!("a socket and a file of Linux"),
            }
        }
        writer.join().expect("sent")?;
        file.rewind()?;
        let mut found = Vec::new();
        file.read_to_end(&mut found)?;
        assert!(found == sent);
        assert_eq!(splicer.pass(&server, &file, 10)?, Moved::Nothing);
        Ok(())
    }
}
