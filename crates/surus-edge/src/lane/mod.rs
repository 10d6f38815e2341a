//! The fast lane: plain requests that are answered at once, without hyper.
//!
//! A worker that answers in a microsecond spends most of it on what HTTP/1 could ask for and this request does not:
//! bodies that come later, upgrades, trailers, responses that are not there yet. So each connection begins here. A request
//! of HTTP/1.1 that has come whole and asks for nothing unusual ([`head`]) goes to the backend; if the answer is there at
//! once and is whole, it is written ([`response`]), and the next request is looked at. Whatever else comes, the connection
//! goes on with hyper, from the first byte of the request that was not for the lane; if that has been begun, hyper finds
//! the answer when it has read the request again. It comes back when it has rested for a second or two: the lane needs
//! less memory for it. The lane refuses nothing and never waits for a backend: what is wrong or slow is hyper's.
//!
//! A file goes out of the lane, too, without being copied on its way ([`mod@file`]).
//!
//! A long body is read from the socket where it is wanted ([`crate::direct`]). Its response is hyper's to write, which gets
//! a head without a body to answer, and gives the connection back.
//!
//! ```text
//! bytes ──► head ──► Service ──► response ──► output
//!             │         │            │
//!             │     not there yet    │ a stream, `connection: close`
//!             └─────────┴────────────┴──► hyper
//! ```

mod file;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod head;
mod response;

use std::future::poll_fn;
use std::io;
use std::mem::{swap, take};
use std::task::Poll;

use bytes::{Buf, Bytes};
use http::request::Parts;
use http::Request;

use crate::buffers;
use crate::connection::{Phase, Reader};
use crate::direct::Direct;
use crate::service::{Begun, Service};
use crate::socket::Socket;
use crate::{Backend, Reply, RequestBody};
use head::Head;

/// What hyper reads in place of a head whose request has been begun, and whose body it is not to read.
const STAND_IN: &[u8] = b"POST / HTTP/1.1\r\nhost: a\r\n\r\n";

/// The same in place of a head that is to be refused.
const MALFORMED: &[u8] = b"\0\r\n\r\n";

/// How the lane ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing is left to do on this connection.
    Closed,
    /// The connection goes on with hyper; the socket gives what the lane has read and not answered.
    Hyper,
}

/// Answers the requests that come, as long as they are for the lane.
pub(crate) async fn run<B: Backend>(socket: &mut Socket, service: &Service<B>) -> io::Result<End> {
    let state = service.state();
    loop {
        if !work(socket, service).await? {
            return Ok(End::Hyper);
        }
        let is_between = socket.first().is_empty();
        if !is_between && state.phase.get().is_between() {
            state.enter(Phase::Head);
        }
        let read = poll_fn(|cx| {
            if state.finishing.get() {
                return Poll::Ready(Ok(None));
            }
            socket.poll_first(cx).map_ok(Some)
        });
        match read.await? {
            None if !is_between => return Ok(End::Hyper),
            None | Some(0) => return Ok(End::Closed),
            Some(_) => {}
        }
    }
}

/// Answers what has come. False: the first request that is left is not for the lane.
async fn work<B: Backend>(socket: &mut Socket, service: &Service<B>) -> io::Result<bool> {
    let mut block = socket.take_first();
    let mut head = nothing();
    head.headers = buffers::take_headers();
    let most = service.limits().header_count;
    let mut is_for_lane = true;
    while !block.is_empty() {
        if service.state().turn.is_over() {
            service.count();
            service.state().turn.pass().await;
        }
        poll_fn(|cx| {
            let room = service.state().poll_room(cx);
            if room.is_pending() {
                service.count();
            }
            room
        })
        .await?;
        match head::read(&block, most, &mut head) {
            Head::Complete { head: length, body } => {
                let end = length + body;
                match answer(service, &mut head, block.slice(length..end)) {
                    Answered::Whole => block.advance(end),
                    Answered::Head(rest) => {
                        block.advance(end);
                        service.count();
                        Box::pin(file::send(service.state(), *rest)).await?;
                    }
                    Answered::ByHyper => {
                        is_for_lane = false;
                        socket.give_back(&block);
                        break;
                    }
                }
            }
            Head::Long {
                head: length,
                body,
                expects,
            } => {
                let state = service.state();
                let direct = Direct::new(state, block.slice(length..), body, expects);
                begin(service, &mut head, direct);
                socket.give_back(STAND_IN);
                is_for_lane = false;
                break;
            }
            Head::Ambiguous => {
                socket.give_back(MALFORMED);
                is_for_lane = false;
                break;
            }
            rest => {
                is_for_lane = rest == Head::Incomplete;
                socket.give_back(&block);
                break;
            }
        }
    }
    service.count();
    buffers::give_headers(head.headers);
    Ok(is_for_lane)
}

/// What has been written of an answer.
enum Answered {
    Whole,
    /// A file is to follow.
    Head(Box<file::Rest>),
    /// Nothing: it is left to hyper.
    ByHyper,
}

#[inline(always)]
fn answer<B: Backend>(service: &Service<B>, head: &mut Parts, body: Bytes) -> Answered {
    let body = (!body.is_empty()).then(|| RequestBody::whole(body));
    let (mut noted, begun) = service.begin(service.state().client(), head, body, None);
    let Begun::Now(answer) = begun else {
        service.leave_to_hyper(service.respond(noted, begun));
        return Answered::ByHyper;
    };
    let mut answer = noted.complete(answer);
    let body = match answer.body_mut() {
        Reply::Empty => Bytes::new(),
        Reply::Bytes(bytes) => take(bytes),
        Reply::File(_) => {
            head.headers.clear();
            return file::answer(service, noted, answer);
        }
        Reply::Compressed(_) | Reply::Backend(_) => {
            service.leave_to_hyper(noted.responding(answer));
            return Answered::ByHyper;
        }
    };
    let arrived = service.state().client().arrived();
    let written = service.state().respond(|output| {
        response::write(output, answer.status(), answer.headers(), &body, arrived)
    });
    if !written {
        *answer.body_mut() = Reply::Bytes(body);
        service.leave_to_hyper(noted.responding(answer));
        return Answered::ByHyper;
    }
    noted.sending(body.len());
    noted.sent();
    // Room for the headers of the next request.
    swap(&mut head.headers, answer.headers_mut());
    head.headers.clear();
    Answered::Whole
}

/// Begins a request whose body is read from the socket. The answer is left to hyper, which gets another head in place of
/// this one, without a body.
#[cold]
#[inline(never)]
fn begin<B: Backend>(service: &Service<B>, head: &mut Parts, body: Direct) {
    let state = service.state();
    let (body, verdict) = RequestBody::direct(body, service.limits(), state);
    let (noted, begun) = service.begin(state.client(), head, Some(body), Some(verdict));
    service.leave_to_hyper(service.respond(noted, begun));
    state.lend();
    if state.reader() == Reader::Nobody {
        // Not by the order that was given: hyper would close before it has read a request.
        state.finishing.set(true);
    }
}

/// A head to be filled in.
fn nothing() -> Parts {
    Request::new(()).into_parts().0
}
