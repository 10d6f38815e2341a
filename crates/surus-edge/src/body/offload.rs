//! The rest of a long body. A helper thread reads it from the client's socket and writes it to a file: through one
//! buffer that stays in the processor's cache, or with splice(2), without a copy in this process. The event loop does
//! not read from the connection meanwhile.

use std::io::{self, Read};
use std::net::TcpStream;
use std::os::fd::BorrowedFd;

use bytes::BytesMut;

use crate::body::stored::Keeper;
use crate::os::descriptors::copied;
use crate::os::splice::{Moved, Splicer};

/// Bytes that a helper thread reads at once: smaller writes cost the kernel more.
const HELPER_BLOCK: usize = 512 * 1024;

/// The buffer and the pipe of a helper thread.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    buffer: BytesMut,
    splicer: Option<Splicer>,
}

/// The socket with the rest of a body, for a helper thread.
#[derive(Debug)]
pub(crate) struct Rest(TcpStream);

impl Rest {
    /// A second descriptor of the same socket.
    ///
    /// # Errors
    /// There is none left.
    pub(crate) fn new(socket: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(Rest(copied(socket)?.into()))
    }

    /// Writes what was received, until there is no more, or `most` bytes. Returns the number of bytes. If the client
    /// has disconnected, the next wait for more reports it.
    ///
    /// # Errors
    /// Of the keeper.
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
        // Zeroed only the first time.
        buffer.resize(HELPER_BLOCK, 0);
        // Up to the end of a block of the file, so that the kernel can allocate contiguous pages together.
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
