//! Output for a client: one write for everything that one turn of the connection's task has produced.
//!
//! The protocol engines write into this buffer, and the task empties it at the end of each turn, before it sleeps:
//! pipelined responses are sent together, and none waits for a request that is slow or incomplete. Large pieces are not
//! copied: they are written from where they are, after the buffered bytes.

use std::collections::VecDeque;
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

/// Large pieces that are written together.
const TOGETHER: usize = 8;

/// A large piece, which is not copied, and the bytes after it.
#[derive(Debug)]
struct Tail {
    large: Bytes,
    behind: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct Output {
    waiting: Vec<u8>,
    /// Bytes of `waiting` that are already written.
    written: usize,
    /// What follows `waiting`.
    tails: VecDeque<Tail>,
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
        self.waiting.is_empty() && self.tails.is_empty()
    }

    #[inline(always)]
    pub(crate) fn append<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let last = match self.tails.back_mut() {
            None => &mut self.waiting,
            Some(tail) => &mut tail.behind,
        };
        if last.capacity() == 0 {
            *last = buffers::take_output();
        }
        write(last)
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.append(|waiting| waiting.extend_from_slice(bytes));
    }

    /// Adds bytes. A large piece is not copied, unless many wait.
    pub(crate) fn push_bytes(&mut self, bytes: Bytes) {
        if bytes.len() >= LARGE && self.tails.len() < TOGETHER {
            let behind = Vec::new();
            self.tails.push_back(Tail {
                large: bytes,
                behind,
            });
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
        if self.has_room() && !self.blocked {
            return Poll::Ready(Ok(()));
        }
        self.poll_flush(socket, cx)
    }

    #[inline(always)]
    fn has_room(&self) -> bool {
        let mut length = self.waiting.len();
        if !self.tails.is_empty() {
            let tails = self.tails.iter();
            length += tails
                .map(|tail| tail.large.len() + tail.behind.len())
                .sum::<usize>();
        }
        length < CAPACITY && self.tails.len() < TOGETHER
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
        if self.tails.is_empty() {
            return socket.try_write(&[IoSlice::new(waiting)]);
        }
        let mut all = [IoSlice::new(&[]); 1 + 2 * TOGETHER];
        all[0] = IoSlice::new(waiting);
        for (pair, tail) in all[1..].chunks_exact_mut(2).zip(&self.tails) {
            pair[0] = IoSlice::new(&tail.large);
            pair[1] = IoSlice::new(&tail.behind);
        }
        socket.try_write(&all[..=2 * self.tails.len()])
    }

    /// Removes `count` bytes that the socket has taken.
    fn advance(&mut self, count: usize) {
        let short = count.min(self.waiting.len() - self.written);
        let mut left = count - short;
        self.written += short;
        // Empty output holds no buffer, and a large piece is freed as soon as it is written.
        while self.written == self.waiting.len() {
            self.written = 0;
            let Some(tail) = self.tails.front_mut() else {
                buffers::give_output(std::mem::take(&mut self.waiting));
                self.tails = VecDeque::new();
                return;
            };
            let large = left.min(tail.large.len());
            left -= large;
            tail.large.advance(large);
            let behind = if tail.large.is_empty() {
                self.tails.pop_front().map(|tail| tail.behind)
            } else {
                None
            };
            let is_over = behind.is_none();
            let before = std::mem::replace(&mut self.waiting, behind.unwrap_or_default());
            buffers::give_output(before);
            if is_over {
                return;
            }
            self.written = left.min(self.waiting.len());
            left -= self.written;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn left(output: &Output) -> Vec<u8> {
        let mut bytes = output.waiting[output.written..].to_vec();
        for tail in &output.tails {
            bytes.extend_from_slice(&tail.large);
            bytes.extend_from_slice(&tail.behind);
        }
        bytes
    }

    #[test]
    fn whatever_the_socket_takes_the_rest_is_left() {
        for step in [
            1,
            3,
            700,
            LARGE - 1,
            LARGE,
            LARGE + 5,
            3 * LARGE,
            usize::MAX,
        ] {
            let (mut output, mut all) = (Output::default(), Vec::new());
            for number in 0..2 * TOGETHER as u8 {
                let large = vec![number; LARGE + usize::from(number)];
                let behind: &[u8] = if number % 3 == 0 { b"" } else { b"\r\nbehind" };
                output.push_bytes(Bytes::from(large.clone()));
                output.push(behind);
                all.extend_from_slice(&large);
                all.extend_from_slice(behind);
            }
            assert!(!output.has_room());
            assert_eq!(output.tails.len(), TOGETHER);
            let mut done = 0;
            while !output.is_empty() {
                assert!(left(&output) == all[done..], "{done} of {}", all.len());
                let count = step.min(all.len() - done);
                output.advance(count);
                done += count;
                // What is added later comes last.
                if done < LARGE && step < LARGE {
                    output.push(b"late");
                    all.extend_from_slice(b"late");
                }
            }
            assert_eq!(done, all.len());
            assert_eq!(output.tails.capacity() + output.waiting.capacity(), 0);
        }
    }
}
