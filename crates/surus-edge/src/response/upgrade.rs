//! Connections that leave HTTP (RFC 9110, 7.8): a backend that answers 101 gets the socket, with the bytes that were
//! read after the head.

use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Buf;
use http::header::UPGRADE;
use http::{Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::State;
use crate::{plain, Reply};

type Conversation = Pin<Box<dyn Future<Output = ()>>>;

/// Takes over a connection once its 101 is written. The future that it returns runs as a part of the connection, which
/// is closed when the future completes.
pub struct Upgrade(Box<dyn FnOnce(Upgraded) -> Conversation>);

impl Upgrade {
    /// The body of a 101 response that names its protocol in `Upgrade`. A client that has not asked for an upgrade gets
    /// 426 instead.
    pub fn new<F: Future<Output = ()> + 'static>(
        talk: impl FnOnce(Upgraded) -> F + 'static,
    ) -> Self {
        Upgrade(Box::new(|socket| Box::pin(talk(socket))))
    }

    pub(crate) fn begin(self, state: &Rc<State>) -> Conversation {
        (self.0)(Upgraded(Rc::clone(state)))
    }
}

impl fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upgrade")
    }
}

/// A connection that no longer speaks HTTP. Output is sent at the end of the turn, or with a flush.
#[derive(Debug)]
pub struct Upgraded(Rc<State>);

impl Upgraded {
    /// True if the server drains, and the client is to be told so. The future that has this connection is polled when
    /// that begins.
    pub fn is_ending(&self) -> bool {
        self.0.is_ending()
    }

    /// For what reads and writes without a copy.
    pub(crate) fn into_state(self) -> Rc<State> {
        self.0
    }
}

impl AsyncRead for Upgraded {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = self.0.poll_fill(cx)?;
        let mut input = self.0.buffer.borrow_mut();
        if input.is_empty() {
            return polled.map(|_| Ok(()));
        }
        let count = input.len().min(buf.remaining());
        buf.put_slice(&input[..count]);
        input.advance(count);
        drop(input);
        self.0.free_buffer();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_finish(cx)
    }
}

/// Replaces an upgrade response for a client that has not asked for one.
pub(crate) fn refuse<B>(response: &mut Response<Reply<B>>) {
    let offered = response.headers_mut().remove(UPGRADE);
    *response = plain(StatusCode::UPGRADE_REQUIRED);
    if let Some(offered) = offered {
        response.headers_mut().insert(UPGRADE, offered);
    }
}
