//! One request's response, from the wait for it until `h2` has its last byte. `h2` gets no more than it has room for:
//! until then the response has not ended, and the timeout for its client applies, whatever else the client does.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{ready, Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use h2::{Reason, SendStream};
use http::Response;
use http_body::Body;

use super::head;
use super::respond::Respond;
use super::tunnel::{Talk, Tunnel};
use super::OUTPUT;
use crate::limits::allowance::{Allowance, ClientTimeout};
use crate::request::in_flight::{Outgoing, Responding};
use crate::{Backend, Limits, Reply};

/// Completes with the stream. Dropping it cancels the request.
pub(crate) enum Answering<B: Backend> {
    Waiting {
        respond: Rc<Respond>,
        responding: Responding<B>,
        /// If the client has asked for a WebSocket.
        tunnel: Option<Box<Tunnel>>,
        is_head: bool,
        allowance: Allowance,
    },
    Talking(Box<Talk>),
    Sending(Sending<Outgoing<B::Body>>),
}

impl<B: Backend> Answering<B> {
    pub(crate) fn new(
        respond: Rc<Respond>,
        responding: Responding<B>,
        tunnel: Option<Tunnel>,
        is_head: bool,
        limits: &Limits,
    ) -> Self {
        Answering::Waiting {
            respond,
            responding,
            tunnel: tunnel.map(Box::new),
            is_head,
            allowance: limits.to_take(),
        }
    }
}

impl<B: Backend> Future for Answering<B> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut *self {
                Answering::Waiting {
                    respond,
                    responding,
                    tunnel,
                    is_head,
                    allowance,
                } => {
                    let Poll::Ready(Ok(response)) = Pin::new(responding).poll(cx) else {
                        return respond.poll_gone(cx);
                    };
                    if matches!(response.body().reply, Reply::Upgrade(_)) {
                        let tunnel = tunnel.take();
                        let talk = tunnel.and_then(|tunnel| tunnel.begin(respond, response));
                        let Some(talk) = talk else {
                            return Poll::Ready(());
                        };
                        *self = Answering::Talking(Box::new(talk));
                        continue;
                    }
                    let Some(sending) = begin(respond, response, *is_head, *allowance) else {
                        return Poll::Ready(());
                    };
                    *self = Answering::Sending(sending);
                }
                Answering::Talking(talk) => return Pin::new(talk).poll(cx),
                Answering::Sending(sending) => return sending.poll(cx),
            }
        }
    }
}

/// Sends a response's head. `None`: nothing follows it.
fn begin<R: Body<Data = Bytes>>(
    respond: &Respond,
    response: Response<R>,
    is_head: bool,
    allowance: Allowance,
) -> Option<Sending<R>> {
    let (mut head, body) = response.into_parts();
    let is_empty = body.is_end_stream();
    let length = body.size_hint().exact();
    let length = length.filter(|_| !is_empty);
    head::complete(&mut head.headers, length, Instant::now());
    let left = head::announced(&head.headers);
    let is_all = is_empty || is_head;
    let stream = respond.send(Response::from_parts(head, ()), is_all)?;
    (!is_all).then_some(Sending {
        stream,
        body,
        chunk: None,
        left,
        allowance,
        patience: None,
    })
}

/// A body that is being sent, one chunk at a time: the next one is polled when the last one has gone to `h2`.
pub(crate) struct Sending<R> {
    stream: SendStream<Bytes>,
    body: R,
    /// A chunk, or its rest, that `h2` had no room for yet.
    chunk: Option<Chunk>,
    /// Announced bytes that are still to be sent. If there were more or fewer, the client would take that for an error
    /// of the connection.
    left: Option<u64>,
    allowance: Allowance,
    /// Created when the client's window is full for the first time.
    patience: Option<ClientTimeout>,
}

struct Chunk {
    bytes: Bytes,
    is_last: bool,
}

impl<R: Body<Data = Bytes> + Unpin> Sending<R> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            // Ready if the client has reset the stream, or disconnected.
            if self.stream.poll_reset(cx).is_ready() {
                return Poll::Ready(());
            }
            let Poll::Ready(part) = self.poll_part(cx) else {
                let allowance = self.allowance;
                let patience = self
                    .patience
                    .get_or_insert_with(|| ClientTimeout::new(allowance));
                ready!(patience.poll_end(cx));
                self.stream.send_reset(Reason::CANCEL);
                return Poll::Ready(());
            };
            if let Some(part) = part {
                if let Some(patience) = &mut self.patience {
                    patience.moved(part.bytes.len() as u64);
                }
                let is_sent = self.stream.send_data(part.bytes, part.is_last).is_ok();
                if part.is_last || !is_sent {
                    return Poll::Ready(());
                }
            }
            if let Some(rest) = &self.chunk {
                self.stream.reserve_capacity(rest.bytes.len().min(OUTPUT));
                continue;
            }
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(_)) => return self.break_off(),
                None if self.owes() => return self.break_off(),
                None => {
                    // Fails only if the stream has ended otherwise meanwhile.
                    let _ = self.stream.send_data(Bytes::new(), true);
                    return Poll::Ready(());
                }
            };
            let bytes = match frame.into_data() {
                Ok(bytes) => bytes,
                Err(frame) => {
                    let Ok(trailers) = frame.into_trailers() else {
                        continue;
                    };
                    self.stream.reserve_capacity(0);
                    if self.owes() || self.stream.send_trailers(trailers).is_err() {
                        return self.break_off();
                    }
                    return Poll::Ready(());
                }
            };
            self.take(bytes);
        }
    }

    /// The part of the waiting chunk that `h2` has room for. `None`: there is no chunk.
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        let Some(chunk) = &mut self.chunk else {
            return Poll::Ready(None);
        };
        while !chunk.bytes.is_empty() && self.stream.capacity() == 0 {
            match ready!(self.stream.poll_capacity(cx)) {
                Some(Ok(_)) => {}
                // Sending it will return the error.
                Some(Err(_)) | None => return Poll::Ready(self.chunk.take()),
            }
        }
        let room = self.stream.capacity();
        if room >= chunk.bytes.len() {
            return Poll::Ready(self.chunk.take());
        }
        let bytes = chunk.bytes.split_to(room);
        Poll::Ready(Some(Chunk {
            bytes,
            is_last: false,
        }))
    }

    /// Stores the next chunk to be sent, cut off at the announced length.
    fn take(&mut self, mut bytes: Bytes) {
        let mut is_last = false;
        if let Some(left) = &mut self.left {
            let most = usize::try_from(*left).unwrap_or(usize::MAX);
            is_last = bytes.len() > most;
            bytes.truncate(most);
            *left -= bytes.len() as u64;
        }
        is_last |= self.body.is_end_stream() && !self.owes();
        if bytes.is_empty() && !is_last {
            return;
        }
        // More would reserve a part of the connection's window that other streams could use.
        self.stream.reserve_capacity(bytes.len().min(OUTPUT));
        self.chunk = Some(Chunk { bytes, is_last });
    }

    /// The body is shorter than announced, so far.
    fn owes(&self) -> bool {
        self.left.is_some_and(|left| left > 0)
    }

    /// Resets the stream, so that the client does not take a part of a response for the whole.
    fn break_off(&mut self) -> Poll<()> {
        self.stream.send_reset(Reason::INTERNAL_ERROR);
        Poll::Ready(())
    }
}
