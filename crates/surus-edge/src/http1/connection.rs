//! The requests of one connection, one after the other.

use std::future::{poll_fn, Future};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::request::Parts;
use http::{HeaderMap, Request, Response, Uri};

use super::body::{Decoder, Incoming, Receiving};
use super::encode::{self, Framing};
use super::head::{self, Asked, Head, Length};
use super::send::{self, Sending};
use crate::connection::buffers;
use crate::connection::output::LARGE;
use crate::connection::socket::Socket;
use crate::connection::State;
use crate::request::in_flight::{Outgoing, Responding};
use crate::request::service::{Begun, Service};
use crate::{Backend, Refusal, Reply, RequestBody};

/// Time for a client to read the end of a response and to send another request.
const LAST_REQUEST: Duration = Duration::from_secs(2);

/// What happens next on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// More has to be read.
    Read,
    Close,
}

/// How far a request has been answered.
enum Answered<B: Backend> {
    /// The whole response is written. Whether another request may follow.
    Whole(bool),
    /// The response is not ready yet.
    Waiting(Asked, Responding<B>),
    /// Its head is written.
    Head(Sending<B::Body>),
    /// The same, and what follows is not HTTP.
    Upgrade(Outgoing<B::Body>),
}

/// What follows a request whose response was waited for.
enum Finished {
    /// Its response is written. Whether another request may follow.
    Whole(bool),
    /// What follows is not HTTP. Kept apart: it may last for long, and needs little memory.
    Upgrade(Talk),
}

/// Takes the connection until it ends.
type Talk = Pin<Box<dyn Future<Output = ()>>>;

/// Answers requests until the connection is to be closed.
///
/// # Errors
/// The client has disconnected, or its response was cut off.
pub(crate) async fn serve<B: Backend>(socket: &mut Socket, service: &Service<B>) -> io::Result<()> {
    let state = service.state();
    // Bytes that were already examined and are not a complete head.
    let mut seen = 0;
    loop {
        let is_worth_it = {
            let first = socket.first();
            seen == 0 || first.len() >= service.limits().header_bytes || head::may_end(&first, seen)
        };
        if is_worth_it && work(socket, service).await? == Next::Close {
            if !socket.first().is_empty() || service.is_draining() && has_come(socket).await {
                state.discard_input();
            }
            return Ok(());
        }
        seen = socket.first().len();
        let is_between = seen == 0;
        if !is_between {
            state.progress.has_read();
        }
        let read = poll_fn(|cx| {
            if is_between && state.is_ending() {
                return Poll::Ready(Ok(Some(0)));
            }
            if is_between && state.is_promised() {
                return Poll::Ready(Ok(None));
            }
            socket.poll_first(cx).map_ok(Some)
        });
        let count = match read.await? {
            Some(count) => count,
            // Rare, and therefore boxed: the future of a connection has room for everything that it may wait for.
            None => Box::pin(last(socket)).await?,
        };
        if count == 0 {
            return Ok(());
        }
    }
}

/// Waits a moment for the request of a client that may send one, according to the head of a response that was already
/// begun. The time begins when that response is sent. If the connection were closed right after it, that request would
/// be lost, and a proxy does not repeat a request that is not idempotent.
async fn last(socket: &mut Socket) -> io::Result<usize> {
    let state = Rc::clone(socket.state());
    poll_fn(|cx| state.poll_flush(cx)).await?;
    let read = poll_fn(|cx| socket.poll_first(cx));
    tokio::time::timeout(LAST_REQUEST, read)
        .await
        .unwrap_or(Ok(0))
}

/// Whether the client has sent something. Closing with unread input would reset the connection, and the client would
/// lose what it has not read of its response.
async fn has_come(socket: &mut Socket) -> bool {
    poll_fn(|cx| Poll::Ready(matches!(socket.poll_first(cx), Poll::Ready(Ok(1..))))).await
}

/// Answers the requests in the buffer.
async fn work<B: Backend>(socket: &mut Socket, service: &Service<B>) -> io::Result<Next> {
    let state = service.state();
    let mut block = socket.take_first();
    let mut head = nothing();
    head.headers = buffers::take_headers();
    let mut next = Next::Read;
    while !block.is_empty() && next == Next::Read {
        if state.turn.is_over() {
            service.count();
            state.turn.pass().await;
        }
        poll_fn(|cx| {
            let room = state.poll_room(cx);
            if room.is_pending() {
                service.count();
            }
            room
        })
        .await?;
        let (length, asked) = match head::read(&block, service.limits().header_count, &mut head) {
            Head::Complete(length, asked) => (length, asked),
            Head::Incomplete if block.len() < service.limits().header_bytes => {
                socket.give_back(&block);
                break;
            }
            Head::Incomplete => {
                refuse(state, &block, Refusal::Head);
                next = Next::Close;
                break;
            }
            Head::Refused(why) => {
                refuse(state, &block, why);
                next = Next::Close;
                break;
            }
        };
        let (answered, receiving) = answer(service, &mut head, &mut block, length, asked);
        let rest = match answered {
            Answered::Whole(stays) => {
                buffers::note_kept(false);
                if !stays {
                    next = Next::Close;
                } else if block.is_empty() && asked.body != Length::Known(0) {
                    // What was received after a body.
                    block = socket.take_first();
                }
                continue;
            }
            rest => rest,
        };
        buffers::note_kept(true);
        socket.give_back(&std::mem::take(&mut block));
        service.count();
        let finished = Box::pin(finish(socket, service, rest, receiving)).await?;
        // The backend may have left headers in the map.
        head.headers.clear();
        match finished {
            Finished::Whole(true) => {}
            Finished::Whole(false) => next = Next::Close,
            Finished::Upgrade(talk) => {
                buffers::give_headers(std::mem::take(&mut head.headers));
                head.uri = Uri::default();
                talk.await;
                next = Next::Close;
            }
        }
        block = socket.take_first();
    }
    if next == Next::Close {
        socket.give_back(&block);
    }
    service.count();
    buffers::give_headers(head.headers);
    Ok(next)
}

/// A head to be filled in.
pub(super) fn nothing() -> Parts {
    Request::new(()).into_parts().0
}

/// Refuses input that is not a request. Nothing that follows it is read as a request either.
#[cold]
fn refuse(state: &State, block: &Bytes, why: Refusal) {
    state.refuse_input(block, why);
    state.discard_input();
    state.respond(|output| encode::write_refusal(output, why.status()));
}

/// Begins a request, whose head is the first `length` bytes of the block, and answers it if that is possible at once.
/// Removes the request from the block.
#[inline(always)]
fn answer<B: Backend>(
    service: &Service<B>,
    head: &mut Parts,
    block: &mut Bytes,
    length: usize,
    asked: Asked,
) -> (Answered<B>, Option<Rc<Receiving>>) {
    let state = service.state();
    block.advance(length);
    let mut receiving = None;
    let (body, verdict) = match asked.body {
        Length::Known(0) => (None, None),
        Length::Known(length) if length <= block.len() as u64 => {
            let whole = block.split_to(length as usize);
            (Some(RequestBody::whole(whole)), None)
        }
        _ => {
            state.buffer.borrow_mut().extend_from_slice(block);
            block.clear();
            let decoder = Decoder::new(&asked, service.limits());
            let (incoming, shared) = Incoming::new(state, decoder);
            receiving = Some(shared);
            let (body, verdict) = RequestBody::watched(incoming, service.limits());
            (Some(body), Some(verdict))
        }
    };
    let (mut noted, begun) = service.begin(state.client(), head, body, verdict);
    noted.may_upgrade = asked.upgrades;
    let Begun::Now(answer) = begun else {
        return (
            Answered::Waiting(asked, service.respond(noted, begun)),
            receiving,
        );
    };
    let answer = noted.complete(answer);
    let outgoing = noted.outgoing(answer);
    let mut answered = write(state, &asked, outgoing, &mut head.headers);
    if let (Answered::Whole(stays), Some(receiving)) = (&mut answered, &receiving) {
        receiving.leave();
        *stays &= state.may_follow();
    }
    (answered, receiving)
}

/// Writes a response, or only its head if the rest is not ready. `headers` gets an empty map for the next request.
#[inline(always)]
fn write<B: Backend>(
    state: &State,
    asked: &Asked,
    response: Response<Outgoing<B::Body>>,
    headers: &mut HeaderMap,
) -> Answered<B> {
    let (mut parts, mut outgoing) = response.into_parts();
    let length = outgoing.length();
    let mut stays = asked.stays && state.stays();
    let now = state.client().arrived();
    let framing = state.respond(|output| {
        let (status, headers) = (parts.status, &parts.headers);
        let framing = encode::write_head(output, asked, status, headers, length, &mut stays, now);
        if let (Framing::Length(1..), Reply::Bytes(bytes)) = (&framing, &outgoing.reply) {
            if bytes.len() < LARGE {
                output.extend_from_slice(bytes);
            }
        }
        framing
    });
    std::mem::swap(headers, &mut parts.headers);
    headers.clear();
    match (&framing, &mut outgoing.reply) {
        (_, Reply::Upgrade(_)) => return Answered::Upgrade(outgoing),
        (Framing::Length(0), _) => outgoing.sent(0),
        (Framing::Length(_), Reply::Bytes(bytes)) => {
            let count = bytes.len();
            if count >= LARGE {
                state.respond_body(std::mem::take(bytes));
            }
            outgoing.sent(count);
        }
        (Framing::Length(_), Reply::File(file)) if send::copy_short(state, file) => {
            let count = file.remaining();
            outgoing.sent(count as usize);
        }
        _ => {
            return Answered::Head(Sending {
                outgoing,
                framing,
                stays,
            })
        }
    }
    Answered::Whole(stays)
}

/// Waits for the rest of a response, and writes it. Returns whether another request may follow.
async fn finish<B: Backend>(
    socket: &mut Socket,
    service: &Service<B>,
    answered: Answered<B>,
    receiving: Option<Rc<Receiving>>,
) -> io::Result<Finished> {
    let state = service.state();
    let answered = match answered {
        Answered::Waiting(asked, mut responding) => {
            let answer = poll_fn(|cx| {
                if let Poll::Ready(Ok(response)) = Pin::new(&mut responding).poll(cx) {
                    return Poll::Ready(Ok(response));
                }
                let gone = socket.poll_gone(cx);
                gone.map(|()| Err(io::Error::from(io::ErrorKind::ConnectionAborted)))
            });
            write(state, &asked, answer.await?, &mut HeaderMap::new())
        }
        answered => answered,
    };
    let stays = match answered {
        Answered::Head(sending) => {
            state.progress.begin_answer();
            send::send(socket, service, sending).await?
        }
        Answered::Upgrade(outgoing) => {
            return Ok(Finished::Upgrade(talk(state, outgoing, receiving)))
        }
        Answered::Whole(stays) => stays,
        Answered::Waiting(..) => false,
    };
    // What was received of a body that nobody has read is skipped: the next head begins after it.
    if let Some(receiving) = receiving {
        receiving.leave();
    }
    Ok(Finished::Whole(stays && state.may_follow()))
}

/// Lets the backend have the connection until it ends.
fn talk<B: 'static>(
    state: &Rc<State>,
    mut outgoing: Outgoing<B>,
    receiving: Option<Rc<Receiving>>,
) -> Talk {
    state.progress.is_upgraded();
    let reply = std::mem::replace(&mut outgoing.reply, Reply::Empty);
    outgoing.complete();
    let conversation = match reply {
        Reply::Upgrade(upgrade) => Some(upgrade.begin(state)),
        _ => None,
    };
    Box::pin(async move {
        if let Some(conversation) = conversation {
            conversation.await;
        }
        drop(outgoing);
        if let Some(receiving) = receiving {
            receiving.leave();
        }
    })
}
