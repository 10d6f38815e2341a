//! A stream of HTTP/2 that is a connection of its own: a WebSocket asked for with an extended CONNECT (RFC 8441).
//!
//! For the backend it is a request for an upgrade, as HTTP/1.1 has it; the client gets 200 in place of 101. What follows reads and
//! writes the stream's data as it would a socket.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::future::Future;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{ready, Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use h2::ext::Protocol;
use h2::{Reason, RecvStream, SendStream};
use http::header::{
    HeaderName, HeaderValue, CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE,
};
use http::request::Parts;
use http::{Method, Response, StatusCode};

use super::head;
use super::respond::Respond;
use super::OUTPUT;
use crate::connection::transport::Transport;
use crate::connection::State;
use crate::limits::allowance::{Allowance, ClientTimeout};
use crate::limits::connections_per_address::CountedConnection;
use crate::request::in_flight::Outgoing;
use crate::Reply;

/// HTTP/2 needs no proof that the server has read the request: any key will do.
const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAA==";

/// Makes a request for a WebSocket of what asks for one. False: it is another request.
pub(super) fn is_asked_for(head: &mut Parts) -> bool {
    let protocol = head.extensions.get::<Protocol>();
    let is_websocket = protocol.is_some_and(|protocol| protocol.as_str() == "websocket");
    if head.method != Method::CONNECT || !is_websocket {
        return false;
    }
    head.method = Method::GET;
    let lines: [(HeaderName, &str); 3] = [
        (UPGRADE, "websocket"),
        (CONNECTION, "upgrade"),
        (SEC_WEBSOCKET_KEY, KEY),
    ];
    for (name, value) in lines {
        head.headers.insert(name, HeaderValue::from_static(value));
    }
    true
}

/// The data of a stream, in both directions.
#[derive(Debug)]
struct Data {
    send: RefCell<SendStream<Bytes>>,
    receive: RefCell<RecvStream>,
    /// What was received and not read.
    rest: RefCell<Bytes>,
    /// Bytes that were sent.
    sent: Rc<Cell<u64>>,
}

fn broken(error: h2::Error) -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, error)
}

impl Transport for Data {
    fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        if !ready!(self.poll_arrival(cx))? {
            return Poll::Ready(Ok(0));
        }
        let mut rest = self.rest.borrow_mut();
        let count = rest.len().min(most);
        buffer.extend_from_slice(&rest[..count]);
        rest.advance(count);
        // The window opens as the backend reads. Fails for a stream that is closed.
        let mut receive = self.receive.borrow_mut();
        let _ = receive.flow_control().release_capacity(count);
        Poll::Ready(Ok(count))
    }

    fn poll_arrival(&self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut rest = self.rest.borrow_mut();
        let mut receive = self.receive.borrow_mut();
        while rest.is_empty() {
            match ready!(receive.poll_data(cx)) {
                Some(data) => *rest = data.map_err(broken)?,
                None => return Poll::Ready(Ok(false)),
            }
        }
        Poll::Ready(Ok(true))
    }

    fn try_write(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut send = self.send.borrow_mut();
        let wanted: usize = bytes.iter().map(|piece| piece.len()).sum();
        send.reserve_capacity(wanted.min(OUTPUT));
        let count = wanted.min(send.capacity());
        if count == 0 && wanted > 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut data = BytesMut::with_capacity(count);
        for piece in bytes {
            let left = count - data.len();
            data.extend_from_slice(&piece[..piece.len().min(left)]);
        }
        send.send_data(data.freeze(), false).map_err(broken)?;
        self.sent.set(self.sent.get() + count as u64);
        Ok(count)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut send = self.send.borrow_mut();
        while send.capacity() == 0 {
            match ready!(send.poll_capacity(cx)) {
                Some(room) => room.map_err(broken)?,
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            };
        }
        Poll::Ready(Ok(()))
    }

    fn has_ended(&self) -> bool {
        self.receive.borrow().is_end_stream()
    }

    fn finish(&self) -> io::Result<()> {
        let mut send = self.send.borrow_mut();
        send.send_data(Bytes::new(), true).map_err(broken)
    }

    fn reset(&self) {
        self.send.borrow_mut().send_reset(Reason::CANCEL);
    }

    fn kernel(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn try_send_file(&self, _: &File, _: u64, _: usize) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

thread_local! {
    static OPEN: Cell<usize> = const { Cell::new(0) };
}

/// One of all of a worker, as long as this exists: a connection may have many, so that it is not enough to count connections.
pub(super) struct Counted {
    _of_address: Option<CountedConnection>,
}

impl Counted {
    /// `None`: there are so many already, of all clients or of this one's address.
    pub(super) fn begin(
        most: usize,
        admit: impl FnOnce() -> Result<Option<CountedConnection>, ()>,
    ) -> Option<Self> {
        let open = OPEN.get();
        if open >= most {
            return None;
        }
        let _of_address = admit().ok()?;
        OPEN.set(open + 1);
        Some(Counted { _of_address })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        OPEN.set(OPEN.get() - 1);
    }
}

/// Those of a connection, which are told when it ends.
#[derive(Debug, Default)]
pub(super) struct Tunnels(RefCell<Vec<Weak<State>>>, Cell<u32>);

impl Tunnels {
    fn add(&self, state: &Rc<State>) {
        let mut all = self.0.borrow_mut();
        all.retain(|other| other.strong_count() > 0);
        all.push(Rc::downgrade(state));
    }

    /// How many there are.
    pub(super) fn open(&self) -> u32 {
        self.1.get()
    }

    /// No other stream is accepted.
    pub(super) fn finish(&self) {
        for state in self.0.borrow().iter().filter_map(Weak::upgrade) {
            state.ends();
            state.wake();
        }
    }
}

/// A stream for which no response has been sent yet.
pub(crate) struct Tunnel {
    pub(super) receive: RecvStream,
    /// The connection that it is a part of.
    pub(super) connection: Rc<State>,
    pub(super) allowance: Allowance,
    pub(super) all: Rc<Tunnels>,
    pub(super) counted: Counted,
}

/// The conversation on a stream. Dropping it tells the backend that the client is gone.
pub(crate) struct Talk {
    state: Rc<State>,
    conversation: Option<Pin<Box<dyn Future<Output = ()>>>>,
    sent: Rc<Cell<u64>>,
    allowance: Allowance,
    /// The client does not take what is sent.
    patience: Option<(u64, ClientTimeout)>,
    _counted: Counted,
    all: Rc<Tunnels>,
    /// The request's end is the conversation's.
    _request: Box<dyn std::any::Any>,
}

impl Tunnel {
    /// Accepts it. `None`: the client is gone, or the backend has not upgraded it after all.
    pub(super) fn begin<B: 'static>(
        self,
        respond: &Respond,
        response: Response<Outgoing<B>>,
    ) -> Option<Talk> {
        let (mut parts, mut outgoing) = response.into_parts();
        let Reply::Upgrade(upgrade) = std::mem::replace(&mut outgoing.reply, Reply::Empty) else {
            return None;
        };
        parts.status = StatusCode::OK;
        parts.headers.remove(SEC_WEBSOCKET_ACCEPT);
        head::complete(&mut parts.headers, None, std::time::Instant::now());
        let send = respond.send(Response::from_parts(parts, ()), false)?;
        outgoing.complete();
        let sent = Rc::new(Cell::new(0));
        let data = Data {
            send: RefCell::new(send),
            receive: RefCell::new(self.receive),
            rest: RefCell::default(),
            sent: Rc::clone(&sent),
        };
        let client = self.connection.client().clone();
        let state = State::new(client, Box::new(data), self.connection.progress.clock());
        self.all.add(&state);
        self.all.1.set(self.all.1.get() + 1);
        if self.connection.is_ending() {
            state.ends();
        }
        Some(Talk {
            conversation: Some(upgrade.begin(&state)),
            state,
            sent,
            allowance: self.allowance,
            patience: None,
            _counted: self.counted,
            all: self.all,
            _request: Box::new(outgoing),
        })
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        self.all.1.set(self.all.1.get() - 1);
    }
}

impl Future for Talk {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        // To be woken when the connection ends.
        let _ = this.state.poll_order(cx);
        if let Some(conversation) = &mut this.conversation {
            if conversation.as_mut().poll(cx).is_ready() {
                this.conversation = None;
            }
        }
        let flushed = match this.conversation {
            Some(_) => this.state.poll_flush(cx),
            None => this.state.poll_finish(cx),
        };
        match flushed {
            Poll::Ready(Err(_)) => return Poll::Ready(()),
            Poll::Ready(Ok(())) => this.patience = None,
            Poll::Pending => {
                let allowance = this.allowance;
                let sent = this.sent.get();
                let begin = || (sent, ClientTimeout::new(allowance));
                let (before, patience) = this.patience.get_or_insert_with(begin);
                if *before != sent {
                    patience.moved(sent - *before);
                    *before = sent;
                }
                if patience.poll_end(cx).is_ready() {
                    this.state.reset();
                    return Poll::Ready(());
                }
            }
        }
        match this.conversation {
            Some(_) => Poll::Pending,
            None => flushed.map(|_| ()),
        }
    }
}
