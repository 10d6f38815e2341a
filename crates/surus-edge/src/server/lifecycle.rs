//! The life of an accepted connection: its protocol, its turns, its end.

use std::future::{poll_fn, Future};
use std::pin::{pin, Pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use crate::connection::flusher::Flusher;
use crate::connection::socket::Socket;
use crate::connection::transport::Transport;
use crate::connection::{Command, State};
use crate::http1;
use crate::http2::{self, Serving};
use crate::limits::connections_per_address::CountedConnection;
use crate::log::refusal::{Refusal, Refused};
use crate::request::edge::Edge;
use crate::request::service::Service;
use crate::server::listener::OVERLOADED;
use crate::server::opening::{self, Protocol};
use crate::{Backend, Connection};

/// How long a finished connection may take to send its output and to read what the client still sends.
const LINGER: Duration = Duration::from_secs(5);

/// A connection's slot in the table, freed when this is dropped, so that a panic in a backend does not leak the
/// connection.
struct Seat<B> {
    edge: Rc<Edge<B>>,
    key: usize,
    /// Counts it among the connections of its address.
    counted: Option<CountedConnection>,
}

impl<B> Drop for Seat<B> {
    fn drop(&mut self) {
        self.edge.table.remove(self.key);
    }
}

/// Serves a connection, which has a slot in the table from now on.
pub(crate) fn run<B: Backend>(
    edge: Rc<Edge<B>>,
    transport: Box<dyn Transport>,
    addresses: Connection,
    counted: Option<CountedConnection>,
    draining: bool,
) -> impl Future<Output = ()> {
    let state = State::new(addresses, transport, edge.table.clock());
    let mut seat = Seat {
        key: edge.table.insert(Rc::clone(&state)),
        edge,
        counted,
    };
    async move {
        let mut socket = Socket::new(Rc::clone(&state));
        let settings = &seat.edge.settings;
        if settings.access_log.is_some() {
            state.notes_first();
        }
        let from = state.addresses.peer;
        let opened = if settings.proxy_protocol
            && !settings.proxies.is_empty()
            && !settings.proxies.trusts(from)
        {
            state.refuse(Refusal::ProxyProtocol);
            Ok(None)
        } else {
            opening::open(&mut socket, &state, settings.proxy_protocol).await
        };
        let opened = match (opened, state.proxied.get()) {
            (Ok(Some(protocol)), Some(client)) => match seat.edge.admit(client.peer) {
                Ok(counted) => {
                    seat.counted = counted;
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
            // The input is invalid, or there is none; a 408 response may be in the output.
            Ok(None) | Err(_) => End::Closed,
            Ok(Some(Protocol::Http1)) => serve_http1(&seat.edge, socket, service, draining).await,
            Ok(Some(Protocol::Http2)) => Box::pin(serve_http2(&seat.edge, socket, service)).await,
        };
        if let Some((why, first)) = state.refused() {
            seat.edge.refused(&Refused {
                client: state.client().peer,
                why,
                first: &first,
            });
        }
        if end == End::Closed {
            // If the client does not read its response in time, the rest is lost.
            let _ = tokio::time::timeout(LINGER, state.close()).await;
        }
        drop(seat);
    }
}

/// Serves all requests of an HTTP/1 connection. `draining`: only one.
async fn serve_http1<B: Backend>(
    edge: &Rc<Edge<B>>,
    mut socket: Socket,
    service: Service<B>,
    draining: bool,
) -> End {
    let state = Rc::clone(service.state());
    if draining {
        state.is_last_request();
    }
    let serving = pin!(http1::serve(&mut socket, &service));
    // HTTP/1 checks by itself whether it is to end.
    match drive(serving, &state, &edge.flusher, |_| {}).await {
        Some(Ok(()) | Err(_)) => End::Closed,
        None => End::Aborted,
    }
}

/// Serves all requests of an HTTP/2 connection.
async fn serve_http2<B: Backend>(edge: &Rc<Edge<B>>, socket: Socket, service: Service<B>) -> End {
    let state = Rc::clone(service.state());
    let builder = http2::builder(&edge.limits);
    let handshake = pin!(builder.handshake(http2::Stream::new(socket)));
    let connection = match drive(handshake, &state, &edge.flusher, |_| {}).await {
        None => return End::Aborted,
        Some(Err(error)) => {
            note_error(&state, &error);
            return End::Closed;
        }
        Some(Ok(connection)) => connection,
    };
    let mut serving = Serving::new(connection, service);
    if state.is_ending() {
        serving.finish();
    }
    let finish = |serving: Pin<&mut Serving<B>>| serving.get_mut().finish();
    match drive(pin!(serving), &state, &edge.flusher, finish).await {
        None => End::Aborted,
        Some(Ok(())) => End::Closed,
        // The client has been informed.
        Some(Err(error)) => {
            note_error(&state, &error);
            End::Closed
        }
    }
}

/// Notes that the client has violated HTTP/2 and is disconnected. Errors that only reset a stream are not seen here.
fn note_error(state: &State, error: &h2::Error) {
    if error.is_library() {
        state.refuse(Refusal::Http2);
    }
}

#[derive(PartialEq, Eq)]
enum End {
    /// All requests are answered. There may be output left.
    Closed,
    /// By a command, or because the client has disconnected.
    Aborted,
}

/// Polls a connection to its end, and sends the output of each turn. `None`: it is aborted. Takes a reference: with a
/// value, this future would have room for it twice, as an argument and pinned.
async fn drive<C: Future>(
    mut connection: Pin<&mut C>,
    state: &Rc<State>,
    flusher: &Flusher,
    finish: impl Fn(Pin<&mut C>),
) -> Option<C::Output> {
    poll_fn(|cx| {
        match state.poll_order(cx) {
            Some(Command::Abort) => return Poll::Ready(None),
            Some(Command::Finish) if state.ends() => finish(connection.as_mut()),
            Some(Command::Retire) if !state.is_ending() => {
                let polled = connection.as_mut().poll(cx);
                state.ends();
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
