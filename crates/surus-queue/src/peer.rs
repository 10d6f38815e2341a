//! One connection of the owner.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use crate::holder::Holder;
use crate::message::{read, write, ToClient, ToOwner};

/// Bytes that are read at a time, so that nobody waits for one who sends much.
const PIECE: usize = 256 << 10;
/// Who lets more lie unread has lost its mind; its jobs go to others when it dies.
const UNREAD: u64 = 256 << 20;

#[derive(Debug)]
pub(crate) struct Socket {
    stream: UnixStream,
    pub(crate) holder: Holder,
    received: Vec<u8>,
    out: Vec<u8>,
    sent: usize,
    /// It has said which jobs it runs.
    pub(crate) is_known: bool,
}

impl Socket {
    /// Refuses what is no process any more.
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let peer = rustix::net::sockopt::socket_peercred(&stream)?;
        let pid = u32::try_from(peer.pid.as_raw_nonzero().get()).unwrap_or_default();
        let holder = Holder::of(pid).ok_or(io::ErrorKind::NotConnected)?;
        Ok(Socket {
            stream,
            holder,
            received: Vec::new(),
            out: Vec::new(),
            sent: 0,
            is_known: false,
        })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    pub(crate) fn send(&mut self, message: &ToClient) {
        write(message, &mut self.out);
    }

    pub(crate) fn has_to_send(&self) -> bool {
        self.sent < self.out.len()
    }

    /// What has arrived. An error: the connection is over.
    pub(crate) fn receive(&mut self) -> io::Result<Vec<ToOwner>> {
        let begin = self.received.len();
        self.received.resize(begin + PIECE, 0);
        let count = self.stream.read(&mut self.received[begin..]);
        self.received
            .truncate(begin + *count.as_ref().unwrap_or(&0));
        match count {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => read(&mut self.received),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    /// Sends what the other side takes.
    /// `most`: bytes of jobs that may lie unread, since all that there are may be this one's.
    pub(crate) fn flush(&mut self, most: u64) -> io::Result<()> {
        while self.has_to_send() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if !self.has_to_send() {
            self.out.clear();
            self.sent = 0;
        } else if (self.out.len() - self.sent) as u64 > most.saturating_add(UNREAD) {
            return Err(io::ErrorKind::WriteZero.into());
        } else if self.sent > PIECE {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        Ok(())
    }
}
