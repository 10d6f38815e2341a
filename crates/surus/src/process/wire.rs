//! Frames: one byte for the kind, four for the length of the payload (little endian). The same in both directions.
//!
//! ```text
//! HEAD  DATA…  END       complete; trailers are in the last frame
//! HEAD  DATA…  BROKEN    the sender could not get the rest
//! PROCESS                before the response to a job: the process has taken it
//! ```
//!
//! A closed connection means that the client has disconnected, or that the process has died.
//!
//! Not FastCGI: both ends are the same binary, and a request arrives in the engine's form, without conversion.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::net::unix::OwnedReadHalf;

pub(crate) const HEAD: u8 = 1;
pub(crate) const DATA: u8 = 2;
pub(crate) const END: u8 = 3;
pub(crate) const BROKEN: u8 = 4;
/// The id of the process, in four bytes.
pub(crate) const PROCESS: u8 = 5;

/// Kind and length.
const PREFIX: usize = 5;

pub(crate) fn put(out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    out.put_u8(kind);
    out.put_u32_le(u32::try_from(payload.len()).expect("pieces of a body are small"));
    out.put_slice(payload);
}

/// The frames that arrive on a connection.
pub(crate) struct Frames {
    stream: OwnedReadHalf,
    buffer: BytesMut,
}

impl Frames {
    pub(crate) fn new(stream: OwnedReadHalf) -> Self {
        Frames {
            stream,
            buffer: BytesMut::with_capacity(8 * 1024),
        }
    }

    /// The next frame; `UnexpectedEof` when the other side has closed the connection. Cancel-safe.
    pub(crate) async fn next(&mut self) -> io::Result<(u8, Bytes)> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(u8, Bytes)>> {
        loop {
            if let Some(frame) = self.parsed() {
                return Poll::Ready(Ok(frame));
            }
            self.buffer.reserve(8 * 1024);
            match self.stream.try_read_buf(&mut self.buffer) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Registers the waker. If it is ready although there was nothing to read, the readiness was stale:
                    // try again.
                    match self.stream.as_ref().poll_read_ready(cx) {
                        Poll::Ready(Ok(())) => {}
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                        Poll::Pending => return Poll::Pending,
                    }
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn parsed(&mut self) -> Option<(u8, Bytes)> {
        let prefix = self.buffer.get(..PREFIX)?;
        let kind = prefix[0];
        let length = u32::from_le_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
        if self.buffer.len() < PREFIX + length {
            return None;
        }
        self.buffer.advance(PREFIX);
        Some((kind, self.buffer.split_to(length).freeze()))
    }

    /// False if the other side has closed the connection, as far as is known now.
    pub(crate) fn is_open(&mut self) -> bool {
        !matches!(self.stream.try_read_buf(&mut self.buffer), Ok(0))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::UnixStream;

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn frames_arrive_whole_however_they_are_cut() {
        let (theirs, ours) = UnixStream::pair().unwrap();
        let (_, mut theirs) = theirs.into_split();
        let mut frames = Frames::new(ours.into_split().0);
        let mut sent = Vec::new();
        put(&mut sent, HEAD, b"head");
        put(&mut sent, DATA, &vec![b'x'; 100_000]);
        put(&mut sent, END, b"");
        let writer = tokio::spawn(async move {
            for piece in sent.chunks(3333) {
                theirs.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        assert_eq!(
            frames.next().await.unwrap(),
            (HEAD, Bytes::from_static(b"head"))
        );
        assert_eq!(frames.next().await.unwrap().1.len(), 100_000);
        assert_eq!(frames.next().await.unwrap(), (END, Bytes::new()));
        writer.await.unwrap();
        let gone = frames.next().await.unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::UnexpectedEof);
        assert!(!frames.is_open());
    }
}
