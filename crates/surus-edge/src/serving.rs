//! What becomes of a connection that was accepted: its protocol, its turns, its end.

use std::future::{poll_fn, Future};
use std::pin::{pin, Pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::connection::{Command, State};
use crate::crowd::Place;
use crate::flush::Flusher;
use crate::http2::Serving;
use crate::lane;
use crate::opening::{self, Protocol};
use crate::refused::{Refusal, Refused};
use crate::server::{Edge, OVERLOADED};
use crate::service::Service;
use crate::socket::Socket;
use crate::{Backend, Connection};

/// How long a connection that is done may take to hand over what waits and to read what the client still sends.
const LINGER: Duration = Duration::from_secs(5);

/// Takes its place in the table now and leaves it when dropped, so that a panic in a backend does not leak a connection.
struct Seat<B> {
    edge: Rc<Edge<B>>,
    key: usize,
    /// Among the connections of its address.
    place: Option<Place>,
}

impl<B> Drop for Seat<B> {
    fn drop(&mut self) {
        self.edge.table.remove(self.key);
    }
}

/// Serves a connection, which has its place from now on.
pub(crate) fn run<B: Backend>(
    edge: Rc<Edge<B>>,
    stream: TcpStream,
    addresses: Connection,
    place: Option<Place>,
    draining: bool,
) -> impl Future<Output = ()> {
    let (input, output) = stream.into_split();
    let state = State::new(addresses, output, edge.table.clock());
    let mut seat = Seat {
        key: edge.table.insert(Rc::clone(&state)),
        edge,
        place,
    };
    async move {
        let mut socket = Socket::new(input, Rc::clone(&state), seat.edge.limits.header_bytes);
        let settings = &seat.edge.settings;
        if settings.access_log.is_some() {
            state.notes_first();
        }
        let from = state.addresses.peer.ip();
        let opened = if settings.proxy_protocol
            && !settings.proxies.is_empty()
            && !settings.proxies.trusts(from)
        {
            state.refuse(|_| Refusal::ProxyProtocol);
            Ok(None)
        } else {
            opening::open(&mut socket, &state, settings.proxy_protocol).await
        };
        let opened = match (opened, state.proxied.get()) {
            (Ok(Some(protocol)), Some(client)) => match seat.edge.admit(client.peer.ip()) {
                Ok(place) => {
                    seat.place = place;
                    Ok(Some(protocol))
                }
                Err(()) => {
                    state.turn_away(Refusal::Crowd, OVERLOADED);
                    Ok(None)
                }
            },
            (opened, _) => opened,
        };
        let service = Service::new(Rc::clone(&seat.edge), Rc::clone(&state));
        let end = match opened {
            // What comes is not what was expected, or nothing does; a 408 may be waiting.
            Ok(None) | Err(_) => End::Closed,
            Ok(Some(Protocol::Http1)) => serve_http1(&seat.edge, socket, service, draining).await,
            Ok(Some(Protocol::Http2)) => Box::pin(serve_http2(&seat.edge, socket, service)).await,
        };
        if let Some((why, first)) = state.refused() {
            seat.edge.refused(&Refused {
                client: state.client().peer.ip(),
                why,
                first: &first,
            });
        }
        if end == End::Closed {
            // What a client that does not read its response misses is its own affair.
            let _ = tokio::time::timeout(LINGER, state.close()).await;
        }
        drop(seat);
    }
}

/// The fast lane as far as it goes, then hyper: until the connection rests, or for one request. `draining`: the first
/// request is the last one.
async fn serve_http1<B: Backend>(
    edge: &Rc<Edge<B>>,
    mut socket: Socket,
    mut service: Service<B>,
    draining: bool,
) -> End {
    let state = Rc::clone(service.state());
    loop {
        if !draining {
            let lane = pin!(lane::run(&mut socket, &service));
            match drive(lane, &state, &edge.flusher, |_| {}).await {
                Some(Ok(lane::End::Hyper)) => {}
                Some(Ok(lane::End::Closed) | Err(_)) => return End::Closed,
                None => return End::Aborted,
            }
        }
        // On the heap: most connections never have this state, and all would have room for it.
        state.note_hyper(true);
        let served = Box::pin(serve_by_hyper(edge, socket, service, draining)).await;
        state.note_hyper(false);
        match served {
            Ok(left) => (socket, service) = left,
            Err(end) => return end,
        }
    }
}

/// What hyper serves of a connection: all of it, or until it gives it back.
async fn serve_by_hyper<B: Backend>(
    edge: &Rc<Edge<B>>,
    socket: Socket,
    service: Service<B>,
    draining: bool,
) -> Result<(Socket, Service<B>), End> {
    let state = Rc::clone(service.state());
    // Not by `Finish`, which would close it before its next request is read.
    let is_last = state.finishing.replace(state.finishing.get() || draining) || draining;
    let mut connection = edge
        .http
        .clone()
        .keep_alive(!is_last)
        .serve_connection(TokioIo::new(socket), service);
    let stay = pin!(Stay {
        connection: &mut connection,
        state: &state,
    });
    let finish = |stay: Pin<&mut Stay<'_, B>>| {
        Pin::new(&mut *stay.get_mut().connection).graceful_shutdown();
    };
    match drive(stay, &state, &edge.flusher, finish).await {
        None => Err(End::Aborted),
        Some(Some(result)) => Err(End::of(Some(result), &state)),
        Some(None) => {
            let parts = connection.into_parts();
            let mut socket = parts.io.into_inner();
            socket.give_back(&parts.read_buf);
            Ok((socket, parts.service))
        }
    }
}

/// What hyper does with a connection: to its end, or (`None`) until it has answered what it was lent the connection for.
struct Stay<'a, B: Backend> {
    connection: &'a mut http1::Connection<TokioIo<Socket>, Service<B>>,
    state: &'a State,
}

impl<B: Backend> Future for Stay<'_, B> {
    type Output = Option<hyper::Result<()>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match Pin::new(&mut *self.connection).poll(cx) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending if self.state.takes_back() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// All requests of an HTTP/2 connection.
async fn serve_http2<B: Backend>(
    edge: &Rc<Edge<B>>,
    mut socket: Socket,
    service: Service<B>,
) -> End {
    let state = Rc::clone(service.state());
    socket.speaks_http2();
    let handshake = pin!(edge.http2.handshake(socket));
    let connection = match drive(handshake, &state, &edge.flusher, |_| {}).await {
        None => return End::Aborted,
        Some(Err(error)) => {
            note_error(&state, &error);
            return End::Closed;
        }
        Some(Ok(connection)) => connection,
    };
    let mut serving = Serving::new(connection, service);
    if state.finishing.get() {
        serving.finish();
    }
    let finish = |serving: Pin<&mut Serving<B>>| serving.get_mut().finish();
    match drive(pin!(serving), &state, &edge.flusher, finish).await {
        None => End::Aborted,
        Some(Ok(())) => End::Closed,
        // The client has been told.
        Some(Err(error)) => {
            note_error(&state, &error);
            End::Closed
        }
    }
}

/// The client has broken the rules of HTTP/2, and is disconnected. Streams that are reset for it are not seen here.
fn note_error(state: &State, error: &h2::Error) {
    if error.is_library() {
        state.refuse(|_| Refusal::Http2);
    }
}

#[derive(PartialEq, Eq)]
enum End {
    /// All is answered. Output may be waiting.
    Closed,
    /// Ordered, or the client has gone.
    Aborted,
}

impl End {
    fn of(done: Option<hyper::Result<()>>, state: &State) -> Self {
        let Some(result) = done else {
            return End::Aborted;
        };
        // hyper has answered what it could not parse (400, 431), and left the rest of it unread.
        if let Err(error) = result {
            if error.is_parse() {
                state.refuse(|first| Refusal::of_hyper(&error, first));
                state.linger.set(true);
            }
        }
        End::Closed
    }
}

/// Polls a connection to its end, and sends what each turn has produced. `None`: it is aborted. By reference: the future
/// would have room for what it is given and for what it pins.
async fn drive<C: Future>(
    mut connection: Pin<&mut C>,
    state: &Rc<State>,
    flusher: &Flusher,
    finish: impl Fn(Pin<&mut C>),
) -> Option<C::Output> {
    poll_fn(|cx| {
        match state.poll_order(cx) {
            Some(Command::Abort) => return Poll::Ready(None),
            Some(Command::Finish) if !state.finishing.replace(true) => finish(connection.as_mut()),
            Some(Command::Retire) if !state.finishing.get() => {
                let polled = connection.as_mut().poll(cx);
                state.finishing.set(true);
                if let Poll::Ready(output) = polled {
                    return Poll::Ready(Some(output));
                }
                finish(connection.as_mut());
            }
            Some(Command::Finish | Command::Retire) | None => {}
        }
        match connection.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => match state.poll_send(cx, flusher) {
                Poll::Ready(Err(_)) => Poll::Ready(None),
                Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
            },
        }
    })
    .await
}
