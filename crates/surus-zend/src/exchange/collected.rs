//! A long body that PHP requests as a whole is first received into a file: bodies that very many clients send slowly
//! fill neither the memory of their shared isolate nor the server's.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame};

use super::Exchange;
use crate::{
    body::{response_body::BoxError, spill::Spill},
    exchange::request::RequestBody,
};

/// Bytes that are read from the file at a time.
const BLOCK: usize = 64 * 1024;

/// The received part of a body, and the rest, which files have no room for.
struct Collected {
    file: Spill,
    rest: RequestBody,
}

impl Body for Collected {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if !self.file.is_empty() {
            let read = self.file.read(BLOCK);
            return Poll::Ready(Some(read.map(Frame::data).map_err(Into::into)));
        }
        match &mut self.rest {
            RequestBody::Stream(stream) => stream.as_mut().poll_frame(cx),
            _ => Poll::Ready(None),
        }
    }
}

/// Receives the rest of the exchange's body if it is streamed from a client. The body is still unread afterwards.
pub(crate) async fn collect(exchange: &Exchange) {
    if !matches!(*exchange.body.borrow(), RequestBody::Stream(_)) {
        return;
    }
    // If this future is dropped before its end, the received bytes are lost.
    exchange.body_failed.set(true);
    let mut file = Spill::of_body();
    let taken = poll_fn(|cx| poll_into(exchange, &mut file, cx)).await;
    if let Err(error) = taken {
        tracing::debug!(%error, "request body ended early");
        *exchange.body.borrow_mut() = RequestBody::Empty;
        return;
    }
    exchange.body_failed.set(false);
    let mut body = exchange.body.borrow_mut();
    let rest = std::mem::replace(&mut *body, RequestBody::Empty);
    *body = RequestBody::Stream(Box::pin(Collected { file, rest }));
}

/// Ready at the end of the body, or when files have no room for more.
fn poll_into(
    exchange: &Exchange,
    file: &mut Spill,
    cx: &mut Context<'_>,
) -> Poll<Result<(), BoxError>> {
    let mut body = exchange.body.borrow_mut();
    while file.has_room() {
        let RequestBody::Stream(stream) = &mut *body else {
            break;
        };
        match stream.as_mut().poll_frame(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Some(Ok(frame))) => {
                // Trailers are stored elsewhere: see `Request::trailers`.
                if let Ok(data) = frame.into_data() {
                    file.write(&data)?;
                }
            }
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
            Poll::Ready(None) => *body = RequestBody::Empty,
        }
    }
    Poll::Ready(Ok(()))
}
