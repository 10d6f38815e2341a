//! Output for a client: one write for everything that one turn of the connection's task has produced.
//!
//! The protocol engines write into this buffer, and the task empties it at the end of each turn, before it sleeps:
//! pipelined responses are sent together, and none waits for a request that is slow or incomplete. Large pieces are not
//! copied: they are written from where they are, after the buffered bytes.

use std::fs::File;
use std::io::{self, IoSlice};
use std::task::{ready, Context, Poll};

use bytes::{Buf, Bytes};
use http::header::{HeaderName, HeaderValue};

use crate::connection::buffers;
use crate::connection::transport::Transport;

/// Bytes that may be buffered. Beyond that a writer waits, and so does the body that it reads from.
const CAPACITY: usize = 64 * 1024;

/// Pieces of at least this size are not copied.
pub(crate) const LARGE: usize = 16 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Output {
    waiting: Vec<u8>,
    /// Bytes of `waiting` that are already written.
    written: usize,
    /// A large piece that follows, not copied.
    large: Bytes,
    /// The bytes after that.
    behind: Vec<u8>,
    /// Bytes that the socket has taken in total.
    sent: u64,
    /// The socket takes no more for now.
    blocked: bool,
}

impl Output {
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.large.is_empty() && self.behind.is_empty()
    }

    #[inline(always)]
    pub(crate) fn append<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let last = match self.large.is_empty() {
            true => &mut self.waiting,
            false => &mut self.behind,
        };
        if last.capacity() == 0 {
            *last = buffers::take_output();
        }
        write(last)
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.append(|waiting| waiting.extend_from_slice(bytes));
    }

    /// Adds bytes. A large piece is not copied if none waits yet.
    pub(crate) fn push_bytes(&mut self, bytes: Bytes) {
        if bytes.len() >= LARGE && self.large.is_empty() {
            self.large = bytes;
        } else {
            self.push(&bytes);
        }
    }

    /// Pending while the output is full.
    #[inline(always)]
    pub(crate) fn poll_room(
        &mut self,
        socket: &dyn Transport,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        // Nothing is added to output that the socket does not take: the next piece can wait where its memory is
        // counted.
        if self.waiting.len() < CAPACITY && self.large.is_empty() && !self.blocked {
            return Poll::Ready(Ok(()));
        }
        self.poll_flush(socket, cx)
    }

    pub(crate) fn poll_write(
        &mut self,
        socket: &dyn Transport,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_room(socket, cx))?;
        let length: usize = bufs.iter().map(|buf| buf.len()).sum();
        if length >= LARGE && self.is_empty() {
            return self.poll_try(socket, cx, |_| socket.try_write(bufs));
        }
        for buf in bufs {
            self.push(buf);
        }
        Poll::Ready(Ok(length))
    }

    /// Writes once, without waiting. False: some output is left, or there was an error, which the next flush returns.
    pub(crate) fn try_flush(&mut self, socket: &dyn Transport) -> bool {
        if self.is_empty() {
            return true;
        }
        match self.try_waiting(socket) {
            Ok(count) => {
                self.took(count);
                self.advance(count);
                self.is_empty()
            }
            Err(_) => false,
        }
    }

    pub(crate) fn poll_flush(
        &mut self,
        socket: &dyn Transport,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.is_empty() {
            match ready!(self.poll_try(socket, cx, |output| output.try_waiting(socket)))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.advance(count),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Lets the kernel send up to `most` bytes of a file. The output must be empty. Zero at the file's end.
    pub(crate) fn poll_send_file(
        &mut self,
        socket: &dyn Transport,
        cx: &mut Context<'_>,
        file: &File,
        offset: u64,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        self.poll_try(socket, cx, |_| socket.try_send_file(file, offset, most))
    }

    fn try_waiting(&self, socket: &dyn Transport) -> io::Result<usize> {
        let waiting = &self.waiting[self.written..];
        if self.large.is_empty() {
            return socket.try_write(&[IoSlice::new(waiting)]);
        }
        let all = [waiting, &self.large, &self.behind].map(IoSlice::new);
        socket.try_write(&all)
    }

    /// Removes `count` bytes that the socket has taken.
    fn advance(&mut self, count: usize) {
        let short = count.min(self.waiting.len() - self.written);
        let large = (count - short).min(self.large.len());
        self.written += short;
        self.large.advance(large);
        if self.written < self.waiting.len() || !self.large.is_empty() {
            return;
        }
        // Empty output holds no buffer, and a large piece is freed as soon as it is written.
        self.large = Bytes::new();
        let behind = std::mem::take(&mut self.behind);
        buffers::give_output(std::mem::replace(&mut self.waiting, behind));
        self.written = count - short - large;
        if self.written == self.waiting.len() {
            self.written = 0;
            buffers::give_output(std::mem::take(&mut self.waiting));
        }
    }

    /// Tries until the socket takes something.
    fn poll_try(
        &mut self,
        socket: &dyn Transport,
        cx: &mut Context<'_>,
        mut send: impl FnMut(&Self) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            match send(self) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked = true;
                    ready!(socket.poll_writable(cx))?;
                }
                sent => {
                    self.took(*sent.as_ref().unwrap_or(&0));
                    return Poll::Ready(sent);
                }
            }
        }
    }

    fn took(&mut self, count: usize) {
        self.sent += count as u64;
        self.blocked = false;
    }

    /// Tells the client that nothing more will come.
    pub(crate) fn poll_finish(
        &mut self,
        socket: &dyn Transport,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_flush(socket, cx))?;
        Poll::Ready(socket.finish())
    }
}

/// Writes a header in the format of HTTP/1.
#[inline(always)]
pub(crate) fn write_header(output: &mut Vec<u8>, name: &HeaderName, value: &HeaderValue) {
    output.extend_from_slice(name.as_str().as_bytes());
    output.extend_from_slice(b": ");
    output.extend_from_slice(value.as_bytes());
    output.extend_from_slice(b"\r\n");
}
