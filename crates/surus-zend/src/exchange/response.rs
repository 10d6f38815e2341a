//! The response: the side of PHP, and the side of the server, which waits for its head.

use std::{
    ffi::c_int,
    future::poll_fn,
    rc::Rc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{header, HeaderMap, HeaderValue, StatusCode};

use super::{wake, Exchange, Stream};
use crate::{
    body::{
        event_stream::{Opening, Wanted, MOST_CHANNELS},
        pipe::{Pace, Pipe, SMALL_PIECE},
        response_body::{ResponseBody, UNCOUNTED},
        room,
        websocket::{extension, SocketClose, WebSocket},
    },
    exchange::fields,
};

/// Bytes of items of a stream that wait for each other.
const TOGETHER: usize = 64 * 1024;

/// A response that exceeds this number of bytes before PHP has ended is streamed.
const STREAM_ABOVE: usize = 256 * 1024;

/// The most bytes that are kept of what a script without a client prints.
const KEPT_OF_SCRIPT: usize = 64 * 1024;

/// The largest capacity of a header map that is reused.
const MAX_SPARE_HEADERS: usize = 64;

/// The codes of a WebSocket whose handler has returned, and of one that has failed (RFC 6455, 7.4.1).
const NORMAL: u16 = 1000;
const FAILED: u16 = 1011;

pub(super) struct Response {
    status: u16,
    headers: HeaderMap,
    buffer: Vec<u8>,
    state: State,
    /// What follows an event stream without a body.
    opening: Option<Box<Opening>>,
    /// Taken by the future that waits for the response.
    ready: Option<http::Response<ResponseBody>>,
}

enum State {
    Collecting,
    Streaming(Rc<Pipe>),
    /// The client has got 101, and talks with PHP.
    WebSocket(Rc<WebSocket>),
    /// Answered, by PHP or in its place: further output of PHP is discarded.
    Closed,
}

impl Exchange {
    // ---- the response, PHP's side

    /// Sends an interim response, if the response itself has not begun and the client understands it.
    pub(crate) fn send_interim(&self, status: c_int, lines: &[u8]) -> bool {
        let status = u16::try_from(status)
            .ok()
            .and_then(|status| StatusCode::from_u16(status).ok());
        // 100 is sent by the server itself, 101 needs another protocol.
        let Some(status) = status.filter(|status| (102..200).contains(&status.as_u16())) else {
            return false;
        };
        let begun = !matches!(self.response.borrow().state, State::Collecting);
        if begun || self.request.version < http::Version::HTTP_11 {
            return false;
        }
        let mut headers = HeaderMap::new();
        for (name, value) in lines
            .split(|&byte| byte == b'\n')
            .filter_map(fields::of_line)
        {
            headers.append(name, value);
        }
        match &self.request.interim {
            Some(interim) => (interim.0)(status, &headers),
            None => false,
        }
    }

    /// False if HTTP does not allow the name or the value.
    pub(crate) fn add_header(&self, name: &[u8], value: &[u8]) -> bool {
        if name.eq_ignore_ascii_case(b"content-type") {
            return self.add_content_type(value);
        }
        let Some((name, value)) = fields::field(name, value) else {
            return false;
        };
        // The server does the framing.
        if name != header::TRANSFER_ENCODING && name != header::CONNECTION {
            self.response.borrow_mut().headers.append(name, value);
        }
        true
    }

    /// As [`Exchange::add_header`].
    pub(crate) fn add_content_type(&self, value: &[u8]) -> bool {
        let Some(value) = content_type(value) else {
            return false;
        };
        let mut response = self.response.borrow_mut();
        response.headers.append(header::CONTENT_TYPE, value);
        true
    }

    /// Logs that a field of the response is not allowed by HTTP. With an empty `place` the script is named.
    pub(crate) fn note_left_out(&self, name: &str, place: &str) {
        let script = self.script.as_ref().map(|script| script.filename.display());
        tracing::warn!(
            target: "php",
            name,
            request = %format_args!("{} {}", self.request.method, self.request.uri.path()),
            handler = (!place.is_empty()).then_some(place),
            script = script.filter(|_| place.is_empty()).map(tracing::field::display),
            "a header of a response was left out: HTTP does not allow its name, or its value (a line break?)"
        );
    }

    pub(crate) fn set_status(&self, status: c_int) {
        self.response.borrow_mut().status = u16::try_from(status).unwrap_or(500);
    }

    /// False if the client has disconnected. The caller first parks while [`Exchange::is_full`].
    pub(crate) fn write(&self, bytes: &[u8]) -> bool {
        if self.client_left.get() {
            return false;
        }
        let mut response = self.response.borrow_mut();
        if self.is_scripts {
            let room = KEPT_OF_SCRIPT.saturating_sub(response.buffer.len());
            response
                .buffer
                .extend_from_slice(&bytes[..bytes.len().min(room)]);
            return true;
        }
        match &response.state {
            State::Collecting => {
                // Most responses are written in one call: the exact capacity, so that the buffer becomes the body as it
                // is.
                if response.buffer.is_empty() {
                    response.buffer.reserve_exact(bytes.len());
                }
                response.buffer.extend_from_slice(bytes);
                let length = response.buffer.len();
                if length > STREAM_ABOVE || (length > UNCOUNTED && room::is_short(length)) {
                    drop(response);
                    self.start_streaming();
                }
            }
            State::Streaming(pipe) => {
                self.times.note_output(bytes);
                pipe.push_slice(bytes);
            }
            // What is printed is no message.
            State::WebSocket(_) | State::Closed => {}
        }
        true
    }

    /// Sends the head and the bytes written so far; from now on the response is a stream.
    pub(crate) fn start_streaming(&self) {
        let mut response = self.response.borrow_mut();
        if self.is_scripts || !matches!(response.state, State::Collecting) {
            return;
        }
        let this = Rc::downgrade(&self.shared());
        // A script does not share its isolate.
        let pace = match self.script {
            Some(_) => Pace::Ahead,
            None => Pace::WithClient,
        };
        let pipe = Pipe::new(pace, move || {
            if let Some(exchange) = this.upgrade() {
                exchange.client_has_left();
            }
        });
        // Unused capacity would not be counted.
        response.buffer.shrink_to_fit();
        if response.has_events() {
            self.times.set_stream(Stream::Events);
        }
        self.times.note_output(&response.buffer);
        pipe.push(Bytes::from(std::mem::take(&mut response.buffer)));
        response.state = State::Streaming(pipe.clone());
        let reply = response.reply(ResponseBody::stream(pipe, None));
        response.ready = Some(reply);
        drop(response);
        wake(&self.waiter);
    }

    /// Which of the channels that the response goes on with this one is, or will be.
    pub(crate) fn place_of(&self, channel: &str) -> usize {
        let response = self.response.borrow();
        response.opening.as_ref().map_or(0, |opening| {
            let mut all = opening.channels.iter();
            let found = all.position(|one| *one.channel == *channel);
            found.unwrap_or(opening.channels.len())
        })
    }

    /// The response goes on with what is published on this channel, too, if it is an event stream without a body. How many channels
    /// it has then; `None`: it has begun.
    pub(crate) fn go_on_with(&self, wanted: Wanted, retry: Option<u32>) -> Option<usize> {
        let mut response = self.response.borrow_mut();
        if self.is_scripts || !matches!(response.state, State::Collecting) {
            return None;
        }
        let opening = response.opening.get_or_insert_with(Default::default);
        opening.retry = retry.or(opening.retry);
        let mut all = opening.channels.iter();
        // The ids of its events have a position in each place: one that is named once more keeps its own.
        match all.position(|one| one.channel == wanted.channel) {
            Some(place) => opening.channels[place] = wanted,
            None if opening.channels.len() <= MOST_CHANNELS => opening.channels.push(wanted),
            None => {}
        }
        Some(opening.channels.len())
    }

    /// The iterable of a handler is sent from now on.
    pub(crate) fn open_stream(&self) {
        self.times.set_stream(Stream::Items);
    }

    /// Adds an item of a stream to others that are sent together, as most can be. False: it was not added.
    pub(crate) fn add_item(&self, bytes: &[u8]) -> bool {
        if self.client_left.get() {
            return false;
        }
        let response = self.response.borrow();
        let State::Streaming(pipe) = &response.state else {
            return false;
        };
        let Some(now) = self.times.same_tick() else {
            return false;
        };
        let is_added = pipe.add_small(bytes, TOGETHER);
        if is_added {
            self.times.note_output_at(now, bytes);
        }
        is_added
    }

    /// Whether the last item of a stream must be sent now. Others are sent together with the next ones: when PHP waits, or
    /// was pre-empted.
    pub(crate) fn is_item_due(&self) -> bool {
        let is_much = match &self.response.borrow().state {
            State::Streaming(pipe) => pipe.backlog() > TOGETHER as u64,
            _ => true,
        };
        // Both: the second one notes the time.
        self.times.has_ticked() || is_much
    }

    /// How the response is streamed that is being sent.
    pub(crate) fn stream(&self) -> Stream {
        match self.response.borrow().state {
            State::Streaming(_) => self.times.stream(),
            _ => Stream::Bounded,
        }
    }

    /// Sends a comment to the client of a silent event stream, unless it is in the middle of an event, or its client
    /// has not read what was sent before. This tells whether the client is still there.
    pub(crate) fn beat(&self) {
        if let State::Streaming(pipe) = &self.response.borrow().state {
            if self.times.is_between_events() && pipe.backlog() == 0 {
                pipe.push_slice(b":\n\n");
            }
        }
        self.times.note_output(b"");
    }

    /// Sends a trailer field, which makes the response a stream. PHP has named it in `Trailer` before.
    pub(crate) fn add_trailer(&self, name: &[u8], value: &[u8]) -> bool {
        let Some((name, value)) = fields::field(name, value) else {
            return false;
        };
        self.start_streaming();
        if let State::Streaming(pipe) = &self.response.borrow().state {
            pipe.add_trailer(name, value);
        }
        true
    }

    pub(crate) fn is_full(&self) -> bool {
        matches!(&self.response.borrow().state, State::Streaming(pipe) if pipe.is_full())
    }

    /// The most bytes for one call of [`Exchange::write`].
    pub(crate) fn most_at_once(&self) -> usize {
        let response = self.response.borrow();
        match &response.state {
            State::Streaming(pipe) if pipe.is_short_of_room() => SMALL_PIECE,
            // A response above UNCOUNTED becomes a stream before it is complete, so that PHP waits for its client.
            State::Collecting if room::is_short(UNCOUNTED) => {
                let left = UNCOUNTED.saturating_sub(response.buffer.len());
                left.max(SMALL_PIECE)
            }
            _ => usize::MAX,
        }
    }

    pub(crate) fn poll_space(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &self.response.borrow().state {
            State::Streaming(pipe) => pipe.poll_space(cx),
            _ => Poll::Ready(()),
        }
    }

    /// The response is complete: further output of PHP is discarded.
    pub(crate) fn finish(&self) {
        let mut response = self.response.borrow_mut();
        match std::mem::replace(&mut response.state, State::Closed) {
            State::Collecting => response.ready = Some(response.whole()),
            State::Streaming(pipe) => {
                self.times.note_output(b"");
                pipe.close();
            }
            State::WebSocket(socket) => self.end_websocket(&socket, NORMAL),
            State::Closed => {}
        }
        drop(response);
        wake(&self.waiter);
    }

    /// Completes and returns the response, for a caller that has not awaited it; `otherwise` if there is none.
    pub(crate) fn conclude(
        &self,
        otherwise: impl FnOnce() -> http::Response<ResponseBody>,
    ) -> http::Response<ResponseBody> {
        let mut response = self.response.borrow_mut();
        if matches!(response.state, State::Collecting) {
            response.state = State::Closed;
            return response.whole();
        }
        drop(response);
        self.finish();
        self.take_ready().unwrap_or_else(otherwise)
    }

    /// The head of a WebSocket's response, for a caller that has not awaited it.
    pub(crate) fn conclude_head(&self) -> http::Response<ResponseBody> {
        self.take_ready()
            .unwrap_or_else(|| super::answers::plain_answer(500))
    }

    /// Answers in PHP's place unless the head was already sent: then the stream is cut off.
    pub(crate) fn answer_instead(&self, reply: impl FnOnce() -> http::Response<ResponseBody>) {
        let mut response = self.response.borrow_mut();
        match std::mem::replace(&mut response.state, State::Closed) {
            State::Collecting => response.ready = Some(reply()),
            State::Streaming(pipe) => pipe.cut_off(),
            State::WebSocket(socket) => self.end_websocket(&socket, FAILED),
            State::Closed => {}
        }
        drop(response);
        wake(&self.waiter);
    }

    /// Cuts off a stream or a WebSocket. A response with a head and nothing else becomes an error: the first item of a
    /// stream did not come about. Does nothing to another response.
    pub(crate) fn cut_off(&self) {
        let mut response = self.response.borrow_mut();
        match response.state {
            State::Collecting if response.buffer.is_empty() => response.status = 500,
            State::Collecting | State::Closed => {}
            State::Streaming(_) | State::WebSocket(_) => {
                drop(response);
                self.answer_instead(|| http::Response::new(ResponseBody::empty()));
            }
        }
    }

    /// Answers 101: the head is complete. `None`: there is an answer already, or no client.
    pub(crate) fn accept_websocket(&self, max_message: usize) -> Option<Rc<WebSocket>> {
        let mut response = self.response.borrow_mut();
        if self.is_scripts || !matches!(response.state, State::Collecting) {
            return None;
        }
        let this = Rc::downgrade(&self.shared());
        // What middleware has made of it counts.
        let agreed = response.headers.get(header::SEC_WEBSOCKET_EXTENSIONS);
        let deflate = agreed.and_then(|agreed| extension::window(agreed.to_str().ok()?));
        let socket = WebSocket::new(max_message, deflate, move || {
            if let Some(exchange) = this.upgrade() {
                // Its time begins.
                exchange.interrupt();
            }
        });
        self.times.set_stream(Stream::Items);
        response.status = StatusCode::SWITCHING_PROTOCOLS.as_u16();
        response.headers.remove(header::CONTENT_TYPE);
        response.buffer = Vec::new();
        response.state = State::WebSocket(socket.clone());
        let reply = response.reply(ResponseBody::websocket(socket.clone()));
        response.ready = Some(reply);
        drop(response);
        if self.has_client_left() {
            // Nobody takes the answer: dropping it tells the WebSocket that its client is gone.
            drop(self.take_ready());
        }
        wake(&self.waiter);
        Some(socket)
    }

    fn end_websocket(&self, socket: &WebSocket, code: u16) {
        let reason = String::new();
        socket.close(SocketClose { code, reason });
        // What PHP does after this has the time of a request.
        self.times.note_output(b"");
    }

    /// Its WebSocket, while PHP talks with the client.
    pub(crate) fn websocket(&self) -> Option<Rc<WebSocket>> {
        match &self.response.borrow().state {
            State::WebSocket(socket) => Some(socket.clone()),
            _ => None,
        }
    }

    // ---- the response, the server's side

    pub(crate) fn take_ready(&self) -> Option<http::Response<ResponseBody>> {
        self.response.borrow_mut().ready.take()
    }

    pub(crate) async fn ready(&self) -> http::Response<ResponseBody> {
        poll_fn(|cx| match self.take_ready() {
            Some(reply) => Poll::Ready(reply),
            None => {
                *self.waiter.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            }
        })
        .await
    }

    pub(crate) fn is_answered(&self) -> bool {
        matches!(self.response.borrow().state, State::Closed)
    }

    /// The output of a script without a client.
    pub(crate) fn take_output(&self) -> Bytes {
        Bytes::from(std::mem::take(&mut self.response.borrow_mut().buffer))
    }
}

impl Default for Response {
    fn default() -> Self {
        Response {
            status: 200,
            headers: HeaderMap::new(),
            buffer: Vec::new(),
            state: State::Collecting,
            opening: None,
            ready: None,
        }
    }
}

impl Response {
    /// Resets it for the next request. Its header map is swapped with `spare`, the request's, whose capacity is reused.
    pub(super) fn clear(&mut self, spare: &mut HeaderMap) {
        let Response {
            status,
            headers,
            buffer,
            state,
            opening,
            ready,
        } = self;
        *status = 200;
        if spare.capacity() <= MAX_SPARE_HEADERS {
            spare.clear();
            std::mem::swap(headers, spare);
        } else {
            headers.clear();
            *spare = HeaderMap::new();
        }
        *buffer = Vec::new();
        *state = State::Collecting;
        *opening = None;
        *ready = None;
    }

    /// Server-sent events that can be read here: not if PHP has compressed them.
    fn has_events(&self) -> bool {
        let kind = self.headers.get(header::CONTENT_TYPE);
        kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
            && !self.headers.contains_key(header::CONTENT_ENCODING)
    }

    /// The complete response, with the collected bytes as its body.
    fn whole(&mut self) -> http::Response<ResponseBody> {
        let is_bare = self.status == 200 && self.buffer.is_empty() && self.has_events();
        let body = match self.opening.take().filter(|_| is_bare) {
            Some(opening) => ResponseBody::events(*opening),
            None => ResponseBody::full(Bytes::from(std::mem::take(&mut self.buffer))),
        };
        self.reply(body)
    }

    fn reply(&mut self, body: ResponseBody) -> http::Response<ResponseBody> {
        let mut reply = http::Response::new(body);
        *reply.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        std::mem::swap(reply.headers_mut(), &mut self.headers);
        reply
    }
}

/// The types that nearly every application sends.
static CONTENT_TYPES: [HeaderValue; 4] = [
    HeaderValue::from_static("text/html; charset=UTF-8"),
    HeaderValue::from_static("application/json"),
    HeaderValue::from_static("text/plain"),
    HeaderValue::from_static("text/plain; charset=UTF-8"),
];

/// Parsed only if it is not one of the usual types.
fn content_type(text: &[u8]) -> Option<HeaderValue> {
    match CONTENT_TYPES.iter().find(|known| known.as_bytes() == text) {
        Some(known) => Some(known.clone()),
        None => HeaderValue::from_bytes(text).ok(),
    }
}
