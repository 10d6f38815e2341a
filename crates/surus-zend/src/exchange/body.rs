//! The body of a request, as PHP reads it.

use std::{
    future::poll_fn,
    rc::Rc,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use http::{HeaderName, HeaderValue};

use super::{collected::collect, Exchange};
use crate::{body::hand_over::Passing, exchange::request::RequestBody};

/// Why a body was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyError {
    TooLarge,
    BrokenOff,
}

impl Exchange {
    /// Copies body bytes into `buffer`; pending until bytes arrive, 0 at the end.
    pub(crate) fn poll_body(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<usize> {
        loop {
            let mut unread = self.unread.borrow_mut();
            if !unread.is_empty() {
                let size = unread.len().min(buffer.len());
                buffer[..size].copy_from_slice(&unread.split_to(size));
                return Poll::Ready(size);
            }
            let mut body = self.body.borrow_mut();
            match &mut *body {
                RequestBody::Empty => return Poll::Ready(0),
                RequestBody::Full(bytes) => {
                    *unread = std::mem::take(bytes);
                    *body = RequestBody::Empty;
                }
                RequestBody::Kept(kept) => match read_block(kept) {
                    // The body is kept: PHP may still take files from it.
                    Ok(block) if block.is_empty() => return Poll::Ready(0),
                    Ok(block) => *unread = block,
                    Err(error) => {
                        tracing::error!(%error, "a kept request body cannot be read");
                        self.body_failed.set(true);
                        *body = RequestBody::Empty;
                    }
                },
                RequestBody::Stream(stream) => match stream.as_mut().poll_frame(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Some(Ok(frame))) => {
                        if let Ok(data) = frame.into_data() {
                            *unread = data;
                        }
                    }
                    Poll::Ready(Some(Err(error))) => {
                        tracing::debug!(%error, "request body ended early");
                        self.body_failed.set(true);
                        *body = RequestBody::Empty;
                    }
                    Poll::Ready(None) => *body = RequestBody::Empty,
                },
            }
        }
    }

    /// True once for each block of a complete body: reading it never waits, so other tasks get a turn in between.
    pub(crate) fn is_at_block(&self) -> bool {
        self.unread.borrow().is_empty() && matches!(*self.body.borrow(), RequestBody::Kept(_))
    }

    /// True if the next bytes of the body must be received from the client.
    pub(crate) fn is_at_stream(&self) -> bool {
        self.unread.borrow().is_empty() && matches!(*self.body.borrow(), RequestBody::Stream(_))
    }

    /// From now on the body has marks in the place of files that the server has stored separately.
    pub(crate) fn mark_files(&self) {
        if let RequestBody::Kept(kept) = &mut *self.body.borrow_mut() {
            kept.mark_files();
        }
    }

    pub(crate) fn take_marked_file(&self, mark: &[u8]) -> Option<Passing> {
        match &mut *self.body.borrow_mut() {
            RequestBody::Kept(kept) => {
                let (file, length) = kept.take_marked(mark)?;
                Some(Passing {
                    file,
                    length,
                    lent: Rc::clone(kept.lent()),
                })
            }
            _ => None,
        }
    }

    /// The length of the body, if it is in one file and unread. Then it counts as read, and is read by position.
    pub(crate) fn take_body_file(&self) -> Option<u64> {
        match &mut *self.body.borrow_mut() {
            RequestBody::Kept(kept) => kept.take_whole(),
            _ => None,
        }
    }

    /// Whether other tasks must get a turn before more of such a body is read.
    pub(crate) fn ends_turn(&self) -> bool {
        match &mut *self.body.borrow_mut() {
            RequestBody::Kept(kept) => kept.ends_turn(),
            _ => false,
        }
    }

    /// Reads such a body at a position; 0 at its end, and on an error.
    pub(crate) fn read_body_at(&self, position: u64, buffer: &mut [u8]) -> usize {
        let RequestBody::Kept(kept) = &mut *self.body.borrow_mut() else {
            return 0;
        };
        kept.read_at(position, buffer).unwrap_or_else(|error| {
            tracing::error!(%error, "a kept request body cannot be read");
            self.body_failed.set(true);
            0
        })
    }

    /// Whether [`Exchange::whole_body`] returns without waiting.
    pub(crate) fn has_whole_body(&self) -> bool {
        matches!(
            *self.body.borrow(),
            RequestBody::Empty | RequestBody::Full(_)
        )
    }

    /// Reads the whole body; it is still unread for PHP. `Err` if it has more than `limit` bytes, or ends early.
    pub(crate) async fn whole_body(&self, limit: usize) -> Result<Bytes, BodyError> {
        if let RequestBody::Full(bytes) = &*self.body.borrow() {
            return if bytes.len() > limit {
                Err(BodyError::TooLarge)
            } else {
                Ok(bytes.clone())
            };
        }
        collect(self).await;
        let mut all = BytesMut::new();
        let mut block = vec![0; 16 * 1024];
        loop {
            let size = poll_fn(|cx| self.poll_body(cx, &mut block)).await;
            if size == 0 {
                break;
            }
            if all.len() + size > limit {
                return Err(BodyError::TooLarge);
            }
            all.extend_from_slice(&block[..size]);
        }
        if self.body_failed.get() {
            return Err(BodyError::BrokenOff);
        }
        let all = all.freeze();
        *self.body.borrow_mut() = RequestBody::Full(all.clone());
        Ok(all)
    }

    /// A trailer of the request; `None` before the end of the body was read.
    pub(crate) fn trailer(&self, i: usize) -> Option<(&HeaderName, &HeaderValue)> {
        self.request.trailers.as_ref()?.get()?.iter().nth(i)
    }
}

/// The next bytes of a body in a file; none at its end.
fn read_block(file: &mut dyn std::io::Read) -> std::io::Result<Bytes> {
    const BLOCK: usize = 256 * 1024;
    let mut block = vec![0; BLOCK];
    let size = file.read(&mut block)?;
    block.truncate(size);
    Ok(Bytes::from(block))
}
