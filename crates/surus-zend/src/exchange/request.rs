//! One request, as the server passes it to PHP.

use std::{cell::OnceCell, fmt, net::SocketAddr, path::PathBuf, pin::Pin, rc::Rc, time::Duration};

use bytes::Bytes;

use crate::body::{kept_body::KeptBody, response_body::BoxError};

/// One HTTP request.
#[derive(Debug)]
pub struct Request {
    /// As the client has sent it.
    pub method: http::Method,
    /// Path and query string.
    pub uri: http::Uri,
    /// The HTTP version of the client.
    pub version: http::Version,
    /// All header fields, also those that become no variables.
    pub headers: http::HeaderMap,
    /// `REMOTE_ADDR` and `REMOTE_PORT`. `None`: it arrived on a Unix socket.
    pub peer: Option<SocketAddr>,
    /// `SERVER_ADDR` and `SERVER_PORT`.
    pub local: SocketAddr,
    /// Whether the connection between the client and the first proxy uses HTTPS.
    pub https: bool,
    /// `None`: the client does not understand interim responses.
    pub interim: Option<Interim>,
    /// What the client sends.
    pub body: RequestBody,
    /// The trailers, which are set when the end of the body is read. `None`: there are none.
    pub trailers: Option<Rc<OnceCell<http::HeaderMap>>>,
}

impl Request {
    /// A request without a client: for a boot, a command, a check.
    pub(crate) fn nobodys(uri: http::Uri) -> Self {
        let nobody = SocketAddr::from(([127, 0, 0, 1], 0));
        Request {
            method: http::Method::GET,
            uri,
            version: http::Version::HTTP_11,
            headers: http::HeaderMap::new(),
            peer: Some(nobody),
            local: nobody,
            https: false,
            interim: None,
            body: RequestBody::Empty,
            trailers: None,
        }
    }

    /// What runs a job of a queue, which the log names.
    pub(crate) fn of_queue(queue: &str) -> Self {
        let uri = format!("/{queue}").parse();
        let method = http::Method::from_bytes(b"JOB").unwrap_or(http::Method::PUT);
        Request {
            method,
            peer: None,
            ..Request::nobodys(uri.unwrap_or_else(|_| http::Uri::from_static("/")))
        }
    }

    /// Its target is no part of a longer buffer any more, which would last as long as the request.
    pub(crate) fn keep_apart(&mut self) {
        let text = Bytes::from(self.uri.to_string());
        if let Ok(uri) = http::Uri::from_maybe_shared(text) {
            self.uri = uri;
        }
    }

    /// Whether it has no client: a client's port is never 0.
    pub(crate) fn is_nobodys(&self) -> bool {
        self.peer.is_some_and(|peer| peer.port() == 0)
    }
}

type SendInterim = dyn Fn(http::StatusCode, &http::HeaderMap) -> bool;

/// Sends an interim response (1xx) to the client; false if that cannot be done now.
#[derive(Clone)]
pub struct Interim(pub Rc<SendInterim>);

impl fmt::Debug for Interim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interim")
    }
}

/// The body of a request. PHP parks while it waits for a streamed one.
pub enum RequestBody {
    /// None.
    Empty,
    /// All of it, in memory.
    Full(Bytes),
    /// Complete, in files: reading does not wait for the client.
    Kept(Box<KeptBody>),
    /// Streamed as it arrives.
    Stream(Pin<Box<dyn http_body::Body<Data = Bytes, Error = BoxError>>>),
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestBody::Empty => f.write_str("Empty"),
            RequestBody::Full(bytes) => write!(f, "Full({} bytes)", bytes.len()),
            RequestBody::Kept(body) => body.fmt(f),
            RequestBody::Stream(_) => f.write_str("Stream"),
        }
    }
}

/// The PHP file that a classic request runs, as the server resolved it.
#[derive(Debug, Clone)]
pub struct Script {
    /// `SCRIPT_FILENAME`.
    pub filename: PathBuf,
    /// `SCRIPT_NAME`: its path below the root.
    pub script_name: String,
    /// `PATH_INFO`: what follows its name in the path.
    pub path_info: Option<String>,
    /// `DOCUMENT_ROOT`.
    pub document_root: PathBuf,
}

/// Bounds for one application.
#[derive(Debug, Clone)]
pub struct AppLimits {
    /// From the start of the request to its end; then it is cancelled, with 504 if no response has begun.
    pub request_timeout: Option<Duration>,
    /// The longest time without output of a handler's iterable; then it is cancelled and its response cut off. Event
    /// streams have `heartbeat` instead.
    pub stream_timeout: Option<Duration>,
    /// The longest time without output of an event stream; then its client is sent a comment.
    pub heartbeat: Option<Duration>,
    /// From the end of the response to the end of what the request has deferred; then that is cancelled.
    pub defer_timeout: Option<Duration>,
    /// For one run of a timer; then it is cancelled.
    pub timer_timeout: Option<Duration>,
    /// The same for what runs in the background.
    pub background_timeout: Option<Duration>,
    /// Cancel a request as soon as its client disconnects. Otherwise it continues until it sends output, which is PHP's own
    /// behaviour.
    pub cancel_on_disconnect: bool,
    /// The time for a version of the application to boot; then the boot is cancelled.
    pub boot_timeout: Option<Duration>,
    /// Log a PHP backtrace of a request that takes longer.
    pub slow_log: Option<Duration>,
    /// CPU time after which a computing isolate is pre-empted.
    pub preempt_after: Duration,
    /// Whether a computing fiber may be pre-empted for others of its isolate.
    pub preempt_fibers: bool,
    /// The most requests in flight.
    pub max_in_flight: usize,
    /// The most requests in the admission queue; more are refused with 503.
    pub max_queue: usize,
    /// The longest time in the admission queue; then 503.
    pub queue_timeout: Duration,
    /// `memory_limit` of each isolate, in php.ini's notation; `None` keeps php.ini's.
    pub memory_limit: Option<String>,
}

impl AppLimits {
    /// The longest time in the admission queue; at most the request's own time limit, which runs meanwhile.
    #[must_use]
    pub fn wait(&self) -> Duration {
        self.request_timeout
            .map_or(self.queue_timeout, |limit| limit.min(self.queue_timeout))
    }
}

impl Default for AppLimits {
    fn default() -> Self {
        AppLimits {
            request_timeout: Some(Duration::from_secs(30)),
            stream_timeout: Some(Duration::from_secs(60)),
            heartbeat: Some(Duration::from_secs(15)),
            defer_timeout: Some(Duration::from_secs(30)),
            timer_timeout: Some(Duration::from_secs(3600)),
            background_timeout: None,
            cancel_on_disconnect: true,
            boot_timeout: None,
            slow_log: None,
            preempt_after: Duration::from_millis(10),
            preempt_fibers: false,
            max_in_flight: 1024,
            max_queue: 1024,
            queue_timeout: Duration::from_secs(10),
            memory_limit: None,
        }
    }
}
