//! A long body, read from the client's socket beside hyper, which reads nothing of the connection meanwhile.
//!
//! What is to be written down goes from the socket to its file on a helper thread then, through one buffer that stays in
//! the processor's cache: hyper would have each block copied to memory of its own, and keep much more of it.

use std::io::{self, Read};
use std::net::TcpStream;
use std::rc::Rc;
use std::task::{ready, Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::ReadBuf;

use crate::connection::State;
use crate::high::copied;
use crate::kept::Keeper;
use crate::splice::{Moved, Splicer};

/// Shorter bodies gain nothing.
pub(crate) const SHORTEST: u64 = 256 * 1024;

/// Bytes that the event loop reads at once: others wait meanwhile.
const BLOCK: usize = 64 * 1024;

/// Bytes that a helper thread reads at once: writing fewer costs the kernel more.
const HELPER_BLOCK: usize = 512 * 1024;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What is left of a body. Dropped before its end it is its connection's last.
#[derive(Debug)]
pub(crate) struct Direct {
    state: Rc<State>,
    /// What has come with the head.
    first: Bytes,
    /// Bytes of the rest, which are still in the socket.
    left: u64,
    buffer: BytesMut,
    /// The client waits to be told that its body is wanted.
    expects: bool,
}

impl Direct {
    /// `length`: bytes of the body, of which `first` have come; more have not. `expects`: the client wants to be told that
    /// it shall send them.
    pub(crate) fn new(state: &Rc<State>, first: Bytes, length: u64, expects: bool) -> Self {
        state.divert();
        Direct {
            left: length - first.len() as u64,
            state: Rc::clone(state),
            first,
            buffer: BytesMut::new(),
            expects,
        }
    }

    /// Bytes that are still to be read.
    pub(crate) fn left(&self) -> u64 {
        self.first.len() as u64 + self.left
    }

    /// The next bytes; none at the end.
    ///
    /// # Errors
    /// The client has left.
    pub(crate) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        self.invite();
        if !self.first.is_empty() {
            return Poll::Ready(Ok(Some(std::mem::take(&mut self.first))));
        }
        while self.left > 0 {
            self.buffer.reserve(BLOCK.min(at_most(self.left)));
            let mut room = (&mut self.buffer).limit(at_most(self.left));
            let read = self.state.stream().try_read_buf(&mut room);
            match read {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => {
                    self.took(count as u64);
                    return Poll::Ready(Ok(Some(self.buffer.split().freeze())));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.state.stream().poll_read_ready(cx))?;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(None))
    }

    /// Ready when something can be read.
    ///
    /// # Errors
    /// The client has left.
    pub(crate) fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.invite();
        // Whether there is something only the socket knows: what has read from it did not ask tokio.
        let mut byte = [0];
        let count = ready!(self
            .state
            .stream()
            .poll_peek(cx, &mut ReadBuf::new(&mut byte)))?;
        Poll::Ready(match count {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        })
    }

    /// For a helper thread, which says by [`Direct::took`] how much it has read.
    pub(crate) fn rest(&self) -> io::Result<Rest> {
        let stream = copied(&*self.state.stream())?;
        Ok(Rest(stream.into()))
    }

    /// So many bytes were read.
    pub(crate) fn took(&mut self, count: u64) {
        self.left -= count;
        if self.left == 0 {
            self.state.rejoin();
        }
    }

    fn invite(&mut self) {
        if std::mem::take(&mut self.expects) && self.first.is_empty() {
            self.state
                .respond(|output| output.extend_from_slice(CONTINUE));
            self.state.wake();
        }
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        if self.left > 0 {
            self.state.abandon();
        }
    }
}

/// What a helper thread works with.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    buffer: BytesMut,
    splicer: Option<Splicer>,
}

/// Where the rest of a body comes from, for a helper thread.
#[derive(Debug)]
pub(crate) struct Rest(TcpStream);

impl Rest {
    /// Writes down what has come, until there is no more, or `most` bytes. How many it was. Who waits for more is told if
    /// the client has left.
    ///
    /// # Errors
    /// The keeper's.
    pub(crate) fn keep(
        &mut self,
        keeper: &mut Keeper,
        tools: &mut Tools,
        most: u64,
    ) -> io::Result<u64> {
        let mut count = 0;
        while count < most {
            let kept = match keeper.over() {
                Some(old) => self.splice(keeper, tools, old.min(most - count))?,
                None => self.copy(keeper, &mut tools.buffer, most - count)?,
            };
            match kept {
                0 => break,
                kept => count += kept,
            }
        }
        Ok(count)
    }

    fn copy(&mut self, keeper: &mut Keeper, buffer: &mut BytesMut, most: u64) -> io::Result<u64> {
        // Zeroed once.
        buffer.resize(HELPER_BLOCK, 0);
        // To the end of a block of the file: pages that belong together are had together.
        let room = HELPER_BLOCK - at_most(keeper.at() % HELPER_BLOCK as u64);
        let room = at_most(most).min(room);
        loop {
            match self.0.read(&mut buffer[..room]) {
                Ok(read) => {
                    let block = std::mem::take(buffer).freeze();
                    keeper.keep(&[block.slice(..read)])?;
                    *buffer = block.try_into_mut().unwrap_or_default();
                    return Ok(read as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Ok(0),
            }
        }
    }

    fn splice(&mut self, keeper: &mut Keeper, tools: &mut Tools, most: u64) -> io::Result<u64> {
        let splicer = match tools.splicer.take() {
            Some(splicer) => splicer,
            None => Splicer::new()?,
        };
        let moved = keeper.splice(&splicer, &self.0, at_most(most).min(HELPER_BLOCK))?;
        tools.splicer = Some(splicer);
        match moved {
            Moved::Bytes(count) => Ok(count),
            Moved::Nothing => Ok(0),
            Moved::Unsupported => self.copy(keeper, &mut tools.buffer, most),
        }
    }
}

fn at_most(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
