//! The transport of a connection's bytes: the only interface below the protocol engines. Bytes are read directly into
//! the reader's buffer and written from where they are, so a connection that waits has no buffer.

use std::cell::RefCell;
use std::fmt::Debug;
use std::fs::File;
use std::future::Future;
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::pin;
use std::task::{ready, Context, Poll, Waker};
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use rustix::fs::sendfile;
use rustix::net::{recv, RecvFlags};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::{tcp, unix, TcpStream, UnixStream};

/// A connection's bytes. One task reads at a time and one writes: each is woken for its own direction.
pub(crate) trait Transport: Debug {
    /// Appends received bytes, at most `most`. Returns how many; zero at the end.
    fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
        most: usize,
    ) -> Poll<io::Result<usize>>;

    /// The same for long input: a short read does not mean that the socket is empty, so the next call tries to read
    /// again.
    fn poll_read_long(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        self.poll_read(cx, buffer, most)
    }

    /// Ready with whether there is something to read, also where others have read from the same socket; false at the
    /// end.
    fn poll_arrival(&self, cx: &mut Context<'_>) -> Poll<io::Result<bool>>;

    /// Writes as much as the socket takes now.
    ///
    /// # Errors
    /// `WouldBlock` if it takes nothing: see [`Transport::poll_writable`].
    fn try_write(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Ready when a write is worth trying.
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// True if the other side has closed its sending direction, whether or not all that it has sent was read.
    fn has_ended(&self) -> bool;

    /// Tells the other side that nothing more will come.
    fn finish(&self) -> io::Result<()>;

    /// Makes the kernel discard unsent bytes on close.
    fn reset(&self);

    /// The socket, if its bytes are the same as those read and written here: then the kernel can send files and splice.
    /// `None` if they are not, as under TLS.
    fn kernel(&self) -> Option<BorrowedFd<'_>>;

    /// Lets the kernel send up to `most` bytes of a file; zero at the file's end. Not for use where
    /// [`Transport::kernel`] is `None`.
    ///
    /// # Errors
    /// As [`Transport::try_write`].
    fn try_send_file(&self, file: &File, offset: u64, most: usize) -> io::Result<usize>;
}

/// A socket of one address family: tokio's types for both have the same methods.
macro_rules! family {
    ($name:ident, $stream:ty, $read:ty, $write:ty) => {
        #[derive(Debug)]
        pub(crate) struct $name {
            read: RefCell<$read>,
            write: $write,
        }

        impl From<$stream> for $name {
            fn from(stream: $stream) -> Self {
                let (read, write) = stream.into_split();
                $name {
                    read: RefCell::new(read),
                    write,
                }
            }
        }

        impl Transport for $name {
            fn poll_read(
                &self,
                cx: &mut Context<'_>,
                buffer: &mut BytesMut,
                most: usize,
            ) -> Poll<io::Result<usize>> {
                // Unlike `try_read_buf` of the stream, this takes a short read to mean that the socket is empty.
                let mut read = self.read.borrow_mut();
                pin!(read.read_buf(&mut buffer.limit(most))).poll(cx)
            }

            fn poll_read_long(
                &self,
                cx: &mut Context<'_>,
                buffer: &mut BytesMut,
                most: usize,
            ) -> Poll<io::Result<usize>> {
                let stream: &$stream = self.write.as_ref();
                loop {
                    match stream.try_read_buf(&mut (&mut *buffer).limit(most)) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            ready!(stream.poll_read_ready(cx))?;
                        }
                        read => return Poll::Ready(read),
                    }
                }
            }

            fn poll_arrival(&self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
                // Only the socket knows: a helper thread reads from it without the event loop.
                let stream: &$stream = self.write.as_ref();
                let peek = || Ok(recv(stream, &mut [0_u8; 1], RecvFlags::PEEK)?.0);
                loop {
                    ready!(stream.poll_read_ready(cx))?;
                    match stream.try_io(Interest::READABLE, peek) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        peeked => return Poll::Ready(peeked.map(|count| count > 0)),
                    }
                }
            }

            fn try_write(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
                match bytes {
                    [one] => self.write.try_write(one),
                    several => self.write.try_write_vectored(several),
                }
            }

            fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                let stream: &$stream = self.write.as_ref();
                stream.poll_write_ready(cx)
            }

            fn has_ended(&self) -> bool {
                let ready = pin!(self.write.ready(Interest::READABLE));
                let polled = ready.poll(&mut Context::from_waker(Waker::noop()));
                matches!(polled, Poll::Ready(Ok(ready)) if ready.is_read_closed())
            }

            fn finish(&self) -> io::Result<()> {
                let stream: &$stream = self.write.as_ref();
                SockRef::from(stream).shutdown(Shutdown::Write)
            }

            fn reset(&self) {
                let stream: &$stream = self.write.as_ref();
                let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
            }

            fn kernel(&self) -> Option<BorrowedFd<'_>> {
                let stream: &$stream = self.write.as_ref();
                Some(stream.as_fd())
            }

            fn try_send_file(
                &self,
                file: &File,
                mut offset: u64,
                most: usize,
            ) -> io::Result<usize> {
                let stream: &$stream = self.write.as_ref();
                stream.try_io(Interest::WRITABLE, || {
                    Ok(sendfile(stream, file, Some(&mut offset), most)?)
                })
            }
        }
    };
}

family!(Tcp, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf);
family!(Unix, UnixStream, unix::OwnedReadHalf, unix::OwnedWriteHalf);

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn read(transport: &dyn Transport, most: usize) -> io::Result<BytesMut> {
        let mut buffer = BytesMut::with_capacity(most);
        poll_fn(|cx| transport.poll_read(cx, &mut buffer, most)).await?;
        Ok(buffer)
    }

    #[test]
    fn a_unix_socket_is_read_written_and_sent_files_on() -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let (one, other) = UnixStream::pair()?;
            let (one, other) = (Unix::from(one), Unix::from(other));
            let pieces = [b"one ".as_slice(), b"two"].map(IoSlice::new);
            poll_fn(|cx| one.poll_writable(cx)).await?;
            assert_eq!(one.try_write(&pieces)?, 7);
            assert!(poll_fn(|cx| other.poll_arrival(cx)).await?);
            assert_eq!(&read(&other, 4).await?[..], b"one ");
            assert_eq!(&read(&other, 9).await?[..], b"two");

            let file = tempfile::tempfile()?;
            std::os::unix::fs::FileExt::write_all_at(&file, b"a file", 0)?;
            assert!(one.kernel().is_some());
            assert_eq!(one.try_send_file(&file, 2, 100)?, 4);
            assert_eq!(&read(&other, 9).await?[..], b"file");

            assert!(!other.has_ended());
            one.finish()?;
            assert!(!poll_fn(|cx| other.poll_arrival(cx)).await?);
            assert!(other.has_ended());
            assert!(read(&other, 9).await?.is_empty());
            Ok(())
        })
    }
}
