//! Reads the first bytes of a connection: the PROXY protocol, if it is used, then HTTP/1 or HTTP/2.

use std::future::poll_fn;
use std::io;
use std::task::{ready, Context, Poll};

use crate::client::proxy_protocol::{parse, Parsed};
use crate::connection::socket::Socket;
use crate::connection::{Command, State};
use crate::log::refusal::Refusal;
use crate::Connection;

/// The first bytes from a client that speaks HTTP/2 with prior knowledge (RFC 9113, sections 3.3 and 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// Reads as much as is needed to recognize the protocol, whose engine gets the bytes that are left. `None`: the
/// connection ends.
pub(crate) async fn open(
    socket: &mut Socket,
    state: &State,
    proxied: bool,
) -> io::Result<Option<Protocol>> {
    if proxied {
        loop {
            let parsed = parse(&socket.first());
            match parsed {
                Parsed::Complete { length, addresses } => {
                    socket.skip(length);
                    if let Some((peer, local)) = addresses {
                        let through = &state.addresses;
                        let client = Connection {
                            peer: peer.into(),
                            local,
                            ..through.clone()
                        };
                        // Set only here, once.
                        let _ = state.proxied.set(client);
                    }
                    break;
                }
                Parsed::Invalid => {
                    state.refuse(Refusal::ProxyProtocol);
                    return Ok(None);
                }
                Parsed::Incomplete => {
                    if !more(socket, state).await? {
                        return Ok(None);
                    }
                }
            }
        }
    }
    loop {
        let common = {
            let first = socket.first();
            let common = first.len().min(PREFACE.len());
            if first[..common] != PREFACE[..common] {
                return Ok(Some(Protocol::Http1));
            }
            common
        };
        if common == PREFACE.len() {
            return Ok(Some(Protocol::Http2));
        }
        if !more(socket, state).await? {
            return Ok(None);
        }
    }
}

/// Waits for more bytes. False if there will be none: the client has disconnected, or the connection was told to end.
async fn more(socket: &mut Socket, state: &State) -> io::Result<bool> {
    poll_fn(|cx| poll_more(socket, state, cx)).await
}

fn poll_more(socket: &mut Socket, state: &State, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
    let order = state.poll_order(cx);
    match order {
        Some(Command::Abort) => return Poll::Ready(Ok(false)),
        Some(Command::Finish) if !state.is_ending() => return Poll::Ready(Ok(false)),
        Some(Command::Finish | Command::Retire) | None => {}
    }
    let polled = socket.poll_first(cx);
    let retires = order == Some(Command::Retire) && state.ends();
    if retires && polled.is_pending() {
        return Poll::Ready(Ok(false));
    }
    let polled = ready!(polled);
    Poll::Ready(polled.map(|count| count > 0))
}
