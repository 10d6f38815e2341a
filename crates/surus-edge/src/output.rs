//! Bytes on their way to a client: one write for what one turn of the connection's task has produced.
//!
//! hyper flushes after each response, or, with `pipeline_flush`, not before its read buffer is empty; the latter keeps
//! finished responses from a client whose next pipelined request is slow or incomplete, and drops the answer to a request
//! that it cannot parse. So hyper flushes into this buffer, and the task empties it at the end of each turn, before it
//! sleeps: pipelined responses leave together, and none waits.

use std::fs::File;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{ready, Context, Poll};

use http::header::{HeaderName, HeaderValue};
use rustix::fs::sendfile;
use tokio::io::{AsyncWrite, Interest};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::TcpStream;

/// Bytes that may wait. Beyond that a writer is held up, and with it the body it reads from.
const CAPACITY: usize = 64 * 1024;

/// From this size on bytes are not copied if nothing waits before them.
const LARGE: usize = 16 * 1024;

#[derive(Debug)]
pub(crate) struct Output {
    socket: OwnedWriteHalf,
    waiting: Vec<u8>,
    /// How much of `waiting` is already written.
    written: usize,
    /// Bytes that the socket has taken in all.
    sent: u64,
    /// The socket takes no more for now.
    blocked: bool,
}

impl Output {
    pub(crate) fn new(socket: OwnedWriteHalf) -> Self {
        Output {
            socket,
            waiting: Vec::new(),
            written: 0,
            sent: 0,
            blocked: false,
        }
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.socket.as_ref()
    }

    pub(crate) fn append<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        write(&mut self.waiting)
    }

    /// Pending while as much waits as may.
    pub(crate) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.waiting.len() < CAPACITY {
            return Poll::Ready(Ok(()));
        }
        self.poll_flush(cx)
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_room(cx))?;
        let length: usize = bufs.iter().map(|buf| buf.len()).sum();
        if length >= LARGE && self.waiting.is_empty() {
            return self.poll_try(cx, |socket, _| socket.try_write_vectored(bufs));
        }
        for buf in bufs {
            self.push(buf);
        }
        Poll::Ready(Ok(length))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Writes once, without waiting. False: some of it is left, or an error is to be found.
    pub(crate) fn try_flush(&mut self) -> bool {
        if self.waiting.is_empty() {
            return true;
        }
        match self.socket.try_write(&self.waiting[self.written..]) {
            Ok(count) => {
                self.written += count;
                self.took(count);
                let done = self.written == self.waiting.len();
                if done {
                    self.reset();
                }
                done
            }
            Err(_) => false,
        }
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.waiting.len() {
            match ready!(self.poll_try(cx, TcpStream::try_write))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
        }
        self.reset();
        Poll::Ready(Ok(()))
    }

    /// Lets the kernel send up to `most` bytes of a file; nothing waits before them. Zero at the file's end.
    pub(crate) fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        file: &File,
        mut offset: u64,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        self.poll_try(cx, |socket, _| {
            socket.try_io(Interest::WRITABLE, || {
                Ok(sendfile(socket, file, Some(&mut offset), most)?)
            })
        })
    }

    /// Tries, with what waits, until the socket takes something.
    fn poll_try(
        &mut self,
        cx: &mut Context<'_>,
        mut send: impl FnMut(&TcpStream, &[u8]) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            match send(self.socket.as_ref(), &self.waiting[self.written..]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked = true;
                    ready!(self.stream().poll_write_ready(cx))?;
                }
                sent => {
                    self.took(*sent.as_ref().unwrap_or(&0));
                    return Poll::Ready(sent);
                }
            }
        }
    }

    fn reset(&mut self) {
        self.written = 0;
        self.waiting.clear();
        // One large response must not be paid for as long as the connection lives.
        self.waiting.shrink_to(LARGE);
    }

    fn took(&mut self, count: usize) {
        self.sent += count as u64;
        self.blocked = false;
    }

    /// Tells the client that nothing more will come.
    pub(crate) fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_flush(cx))?;
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

/// A header as HTTP/1 has it.
pub(crate) fn write_header(output: &mut Vec<u8>, name: &HeaderName, value: &HeaderValue) {
    output.extend_from_slice(name.as_str().as_bytes());
    output.extend_from_slice(b": ");
    output.extend_from_slice(value.as_bytes());
    output.extend_from_slice(b"\r\n");
}
