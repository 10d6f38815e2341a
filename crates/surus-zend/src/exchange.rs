//! One HTTP request and its response, as PHP sees them.
//!
//! An exchange is shared by the future that waits for the response, the driver that resumes PHP, and PHP's callbacks.
//! All on one thread, never at the same time: callbacks run only while the driver is inside a resume.

use std::{
    cell::{Cell, OnceCell, RefCell},
    ffi::c_int,
    future::poll_fn,
    path::Path,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use http::{header, HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::{
    blocking::hand_over::Passing,
    ffi, fields,
    inputs::Inputs,
    pipe::{Pace, Pipe, SMALL_PIECE},
    request::{Request, RequestBody, Script},
    router::Declared,
    server_variables::{CStrings, ServerVariables},
    ResponseBody,
};

/// A response that grows over this before PHP has ended is streamed.
const STREAM_ABOVE: usize = 256 * 1024;

/// Exchanges that are kept for the next requests: as many as connections usually bring at once.
const MAX_IDLE: usize = 64;

/// Room for headers that is kept for the next response.
const MAX_SPARE_HEADERS: usize = 64;

/// No kernel's clock ticks more slowly.
const COARSE_TICK: Duration = Duration::from_millis(10);

thread_local! {
    static IDLE: RefCell<Vec<Rc<Exchange>>> = const { RefCell::new(Vec::new()) };
}

pub(crate) struct Exchange {
    pub(crate) request: Request,
    pub(crate) script: Option<Script>,
    pub(crate) route: Cell<i64>,
    pub(crate) parameters: RefCell<Vec<(Rc<str>, Vec<u8>)>>,
    /// Routes that the application declares while it boots.
    pub(crate) routes: RefCell<Vec<Declared>>,
    /// What its route takes as input; empty for most.
    pub(crate) inputs: OnceCell<Box<Inputs>>,
    /// On the coarse clock.
    started: Cell<Duration>,
    pub(crate) dev: bool,
    strings: OnceCell<Box<CStrings>>,
    variables: OnceCell<Box<ServerVariables>>,
    body: RefCell<RequestBody>,
    unread: RefCell<Bytes>,
    pub(crate) body_failed: Cell<bool>,
    response: RefCell<Response>,
    client_left: Cell<bool>,
    /// The future that waits for the response.
    waiter: RefCell<Option<Waker>>,
    /// The driver, while PHP is parked.
    pub(crate) driver: RefCell<Option<Waker>>,
}

/// Why a body was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyError {
    TooLarge,
    BrokenOff,
}

struct Response {
    status: u16,
    headers: HeaderMap,
    buffer: Vec<u8>,
    state: State,
    /// To be picked up by the future that waits.
    ready: Option<http::Response<ResponseBody>>,
}

enum State {
    Collecting,
    Streaming(Rc<Pipe>),
    /// Answered, by PHP or in its place: what PHP still writes goes nowhere.
    Closed,
}

impl Exchange {
    pub(crate) fn new(mut request: Request, script: Option<Script>, dev: bool) -> Rc<Exchange> {
        let mut exchange = IDLE.with_borrow_mut(Vec::pop).unwrap_or_default();
        let fresh = Rc::get_mut(&mut exchange).expect("what is recycled has no other owner");
        *fresh.body.get_mut() = std::mem::replace(&mut request.body, RequestBody::Empty);
        fresh.request = request;
        fresh.script = script;
        fresh.dev = dev;
        fresh.started.set(coarse_now());
        exchange
    }

    /// Takes back an exchange that was answered. Nobody else may have kept it.
    pub(crate) fn recycle(mut exchange: Rc<Exchange>) {
        let Some(used) = Rc::get_mut(&mut exchange) else {
            return;
        };
        used.clear();
        IDLE.with_borrow_mut(|idle| {
            if idle.len() < MAX_IDLE {
                idle.push(exchange);
            }
        });
    }

    /// Forgets the request; at once, since its headers and target are slices of the connection's buffer.
    fn clear(&mut self) {
        // No field is left out.
        let Exchange {
            request,
            script,
            route,
            parameters,
            routes,
            inputs,
            started: _,
            dev: _,
            strings,
            variables,
            body,
            unread,
            body_failed,
            response,
            client_left,
            waiter,
            driver,
        } = self;
        request.uri = http::Uri::default();
        request.interim = None;
        request.trailers = None;
        response.get_mut().clear(&mut request.headers);
        *script = None;
        route.set(-1);
        parameters.get_mut().clear();
        routes.get_mut().clear();
        inputs.take();
        strings.take();
        variables.take();
        *body.get_mut() = RequestBody::Empty;
        *unread.get_mut() = Bytes::new();
        body_failed.set(false);
        client_left.set(false);
        *waiter.get_mut() = None;
        *driver.get_mut() = None;
    }

    /// The exchange of a script that runs without a request: at boot and from the command line.
    pub(crate) fn for_script(script: &Path, dev: bool) -> Rc<Exchange> {
        let script = Script {
            filename: script.to_path_buf(),
            script_name: script.to_string_lossy().into_owned(),
            path_info: None,
            document_root: script.parent().map(Path::to_path_buf).unwrap_or_default(),
        };
        Exchange::new(Request::nobodys(http::Uri::default()), Some(script), dev)
    }

    /// Another owner of this exchange.
    fn shared(&self) -> Rc<Exchange> {
        // SAFETY: an exchange is made in an `Rc` only, by `new`; the caller's reference keeps it alive meanwhile.
        unsafe {
            Rc::increment_strong_count(self);
            Rc::from_raw(self)
        }
    }

    pub(crate) fn raw(&self) -> *mut std::ffi::c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    /// When the request came, or up to one tick of the coarse clock later: a deadline is never early.
    pub(crate) fn started(&self) -> Instant {
        let now = Instant::now();
        let past = coarse_now().saturating_sub(self.started.get() + COARSE_TICK);
        now.checked_sub(past).unwrap_or(now)
    }

    pub(crate) fn strings(&self) -> &CStrings {
        self.strings
            .get_or_init(|| Box::new(CStrings::new(&self.request, self.script.as_ref())))
    }

    pub(crate) fn variables(&self) -> &ServerVariables {
        self.variables
            .get_or_init(|| Box::new(ServerVariables::new(&self.request, self.script.as_ref())))
    }

    // ---- the request body

    /// Copies body bytes into `buffer`; pending while none has come, 0 at the end.
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
                    // It stays: PHP may come for files in it.
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

    /// True once for each block of a body that is all there: reading it never waits, so others get a turn in between.
    pub(crate) fn is_at_block(&self) -> bool {
        self.unread.borrow().is_empty() && matches!(*self.body.borrow(), RequestBody::Kept(_))
    }

    /// True where more of a body is asked for that comes from a client.
    pub(crate) fn is_at_stream(&self) -> bool {
        self.unread.borrow().is_empty() && matches!(*self.body.borrow(), RequestBody::Stream(_))
    }

    /// Reading the body will give marks in the place of files that the server has kept apart.
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

    /// How long the body is, if it is all in one file and unread. It counts as read then, and is there by position.
    pub(crate) fn take_body_file(&self) -> Option<u64> {
        match &mut *self.body.borrow_mut() {
            RequestBody::Kept(kept) => kept.take_whole(),
            _ => None,
        }
    }

    /// Whether others are to have their turn before more of that is read.
    pub(crate) fn ends_turn(&self) -> bool {
        match &mut *self.body.borrow_mut() {
            RequestBody::Kept(kept) => kept.ends_turn(),
            _ => false,
        }
    }

    /// Bytes of such a body; 0 at its end, and where it cannot be read.
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

    /// Whether [`Exchange::whole_body`] has nothing to wait for.
    pub(crate) fn has_whole_body(&self) -> bool {
        matches!(
            *self.body.borrow(),
            RequestBody::Empty | RequestBody::Full(_)
        )
    }

    /// Reads all of the body, which PHP finds unread afterwards. `Err` if it has more than `limit` bytes, or breaks off.
    pub(crate) async fn whole_body(&self, limit: usize) -> Result<Bytes, BodyError> {
        if let RequestBody::Full(bytes) = &*self.body.borrow() {
            return if bytes.len() > limit {
                Err(BodyError::TooLarge)
            } else {
                Ok(bytes.clone())
            };
        }
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

    /// What has followed the body; nothing before its end was read.
    pub(crate) fn trailer(&self, i: usize) -> Option<(&HeaderName, &HeaderValue)> {
        self.request.trailers.as_ref()?.get()?.iter().nth(i)
    }

    // ---- the response, PHP's side

    /// Sends an interim response, if none other has begun and the client understands it.
    pub(crate) fn send_interim(&self, status: c_int, lines: &[u8]) -> bool {
        let status = u16::try_from(status)
            .ok()
            .and_then(|status| StatusCode::from_u16(status).ok());
        // 100 is the server's own, 101 needs another protocol.
        let Some(status) = status.filter(|status| (102..200).contains(&status.as_u16())) else {
            return false;
        };
        let begun = !matches!(self.response.borrow().state, State::Collecting);
        if begun || self.request.version != http::Version::HTTP_11 {
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
        // Framing is the server's.
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

    /// Logs that a field of the response is none that HTTP allows. Without a place it is the script's.
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

    /// False when nobody wants the bytes any more. The caller parks before as long as it [`Exchange::is_full`].
    pub(crate) fn write(&self, bytes: &[u8]) -> bool {
        if self.client_left.get() {
            return false;
        }
        let mut response = self.response.borrow_mut();
        match &response.state {
            State::Collecting => {
                // Most responses are written at once: room for just that, which becomes the body as it is.
                if response.buffer.is_empty() {
                    response.buffer.reserve_exact(bytes.len());
                }
                response.buffer.extend_from_slice(bytes);
                if response.buffer.len() > STREAM_ABOVE {
                    drop(response);
                    self.start_streaming();
                }
            }
            State::Streaming(pipe) => pipe.push(Bytes::copy_from_slice(bytes)),
            State::Closed => {}
        }
        true
    }

    /// Sends what there is, head included, as it is.
    pub(crate) fn start_streaming(&self) {
        let mut response = self.response.borrow_mut();
        if !matches!(response.state, State::Collecting) {
            return;
        }
        let this = Rc::downgrade(&self.shared());
        // A script has its isolate to itself.
        let pace = match self.script {
            Some(_) => Pace::Ahead,
            None => Pace::WithClient,
        };
        let pipe = Pipe::new(pace, move || {
            if let Some(exchange) = this.upgrade() {
                exchange.client_has_left();
            }
        });
        pipe.push(Bytes::from(std::mem::take(&mut response.buffer)));
        response.state = State::Streaming(pipe.clone());
        let reply = response.reply(ResponseBody::stream(pipe, None));
        response.ready = Some(reply);
        drop(response);
        wake(&self.waiter);
    }

    /// Sends a field behind the body, which is a stream then. PHP has named it in `Trailer` before.
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

    /// Bytes that may be written at once.
    pub(crate) fn most_at_once(&self) -> usize {
        match &self.response.borrow().state {
            State::Streaming(pipe) if pipe.is_short_of_room() => SMALL_PIECE,
            _ => usize::MAX,
        }
    }

    pub(crate) fn poll_space(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &self.response.borrow().state {
            State::Streaming(pipe) => pipe.poll_space(cx),
            _ => Poll::Ready(()),
        }
    }

    /// The response is complete: what PHP writes from now on goes nowhere.
    pub(crate) fn finish(&self) {
        let mut response = self.response.borrow_mut();
        match std::mem::replace(&mut response.state, State::Closed) {
            State::Collecting => response.ready = Some(response.whole()),
            State::Streaming(pipe) => pipe.close(),
            State::Closed => {}
        }
        drop(response);
        wake(&self.waiter);
    }

    /// The response, complete now, for who has waited for nothing else; `otherwise` if there is none.
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

    /// Answers in PHP's place unless its head is already on the way; a stream is cut off.
    pub(crate) fn answer_instead(&self, reply: impl FnOnce() -> http::Response<ResponseBody>) {
        let mut response = self.response.borrow_mut();
        match std::mem::replace(&mut response.state, State::Closed) {
            State::Collecting => response.ready = Some(reply()),
            State::Streaming(pipe) => pipe.cut_off(),
            State::Closed => {}
        }
        drop(response);
        wake(&self.waiter);
    }

    /// A stream is cut off; anything else stays as it is.
    pub(crate) fn cut_off(&self) {
        if matches!(self.response.borrow().state, State::Streaming(_)) {
            self.answer_instead(|| http::Response::new(ResponseBody::empty()));
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

    /// What a script without a client has printed.
    pub(crate) fn take_output(&self) -> Bytes {
        Bytes::from(std::mem::take(&mut self.response.borrow_mut().buffer))
    }

    pub(crate) fn client_has_left(&self) {
        if !self.is_answered() {
            self.client_left.set(true);
            wake(&self.driver);
        }
    }

    pub(crate) fn has_client_left(&self) -> bool {
        self.client_left.get()
    }

    /// The exchange behind a pointer that C hands back.
    ///
    /// # Safety
    /// `raw` is from [`Exchange::raw`] of an exchange that the running driver holds.
    pub(crate) unsafe fn from_raw<'a>(raw: *mut std::ffi::c_void) -> &'a Exchange {
        // SAFETY: the driver keeps the exchange alive while PHP can see the pointer.
        unsafe { &*raw.cast::<Exchange>() }
    }

    pub(crate) fn info(&self) -> ffi::RequestInfo {
        self.strings().info(&self.request)
    }
}

impl Default for Exchange {
    /// That of nobody's request.
    fn default() -> Self {
        Exchange {
            request: Request::nobodys(http::Uri::default()),
            script: None,
            route: Cell::new(-1),
            parameters: RefCell::default(),
            routes: RefCell::default(),
            inputs: OnceCell::new(),
            started: Cell::default(),
            dev: false,
            strings: OnceCell::new(),
            variables: OnceCell::new(),
            body: RefCell::new(RequestBody::Empty),
            unread: RefCell::default(),
            body_failed: Cell::new(false),
            response: RefCell::default(),
            client_left: Cell::new(false),
            waiter: RefCell::default(),
            driver: RefCell::default(),
        }
    }
}

impl Default for Response {
    fn default() -> Self {
        Response {
            status: 200,
            headers: HeaderMap::new(),
            buffer: Vec::new(),
            state: State::Collecting,
            ready: None,
        }
    }
}

impl Response {
    /// As for the next request. Its headers go where those of this request were.
    fn clear(&mut self, spare: &mut HeaderMap) {
        let Response {
            status,
            headers,
            buffer,
            state,
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
        *ready = None;
    }

    /// All of it, with what was collected as its body.
    fn whole(&mut self) -> http::Response<ResponseBody> {
        let body = ResponseBody::full(Bytes::from(std::mem::take(&mut self.buffer)));
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

/// The next bytes of a body in a file; none at its end.
fn read_block(file: &mut dyn std::io::Read) -> std::io::Result<Bytes> {
    const BLOCK: usize = 256 * 1024;
    let mut block = vec![0; BLOCK];
    let size = loop {
        match file.read(&mut block) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            result => break result?,
        }
    };
    block.truncate(size);
    Ok(Bytes::from(block))
}

/// Time on a clock that ticks every few milliseconds and costs next to nothing to read.
fn coarse_now() -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock exists on every Linux, and `now` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut now) };
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

fn wake(slot: &RefCell<Option<Waker>>) {
    let waker = slot.borrow_mut().take();
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The types that nearly every application sends.
static CONTENT_TYPES: [HeaderValue; 4] = [
    HeaderValue::from_static("text/html; charset=UTF-8"),
    HeaderValue::from_static("application/json"),
    HeaderValue::from_static("text/plain"),
    HeaderValue::from_static("text/plain; charset=UTF-8"),
];

/// Parsed only where it is none of the usual ones.
fn content_type(text: &[u8]) -> Option<HeaderValue> {
    match CONTENT_TYPES.iter().find(|known| known.as_bytes() == text) {
        Some(known) => Some(known.clone()),
        None => HeaderValue::from_bytes(text).ok(),
    }
}
