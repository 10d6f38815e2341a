//! PHP as the edge's backend: one file per mode (`remote` for process mode), and what they share.

mod classic;
mod coroutine;
mod counted;
mod files;
mod kept;
mod remote;
mod websocket;
mod worker;

use std::future::Future;
use std::io;
use std::mem::take;
use std::path::{Path, PathBuf};

use http::header::{HeaderValue, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use surus_edge::{
    plain, Backend, BodyError, BoxError, Connection, Reply, RequestBody, Scanner, Spool, Spooled,
    Trailers,
};
use surus_zend::{AppLimits, ClassicConfig, Interim, ResponseBody};

use crate::config::App;

pub(crate) use classic::{Classic, Isolates, Scripts};
pub(crate) use coroutine::{boot, Coroutine};
pub(crate) use counted::Counted;
pub(crate) use files::Files;
pub(crate) use remote::Remote;
pub(crate) use worker::Worker;

/// A backend that may have work left when no client waits any more: PHP finishes requests that it has begun.
pub(crate) trait Php: Backend {
    /// A version of the application that has booted and does not serve yet.
    type Next: 'static;

    /// Whether PHP runs in this process, not in processes of its own.
    fn has_isolates(&self) -> bool {
        true
    }

    /// Requests that PHP has not finished.
    fn unfinished(&self) -> usize;

    /// Boots the application as it is on disk now. Must be run to its end.
    fn prepare(&self) -> impl Future<Output = Result<Self::Next, String>>;

    /// Switches to this version; the old one finishes its requests.
    fn commit(&self, next: Self::Next);

    /// The application's timers begin to run, if it has some.
    fn start_timers(&self) {}

    /// No timer begins any more: the worker ends, and another one may lead.
    fn stop_timers(&self) {
        surus_zend::lead_no_more();
    }

    /// Numbers for `surus status`.
    fn status(&self) -> Value;

    /// Files that a development server watches. None for applications whose files are read for each request.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// Resolves the symbolic links of a file or folder, as they are now.
fn source_file(source: &Path) -> io::Result<PathBuf> {
    source
        .canonicalize()
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", source.display())))
}

/// A script that a path was resolved to, as PHP sees it.
fn script_of(site: &surus_edge::Site, found: surus_edge::ScriptPath) -> surus_zend::Script {
    let text = |bytes| {
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into())
    };
    surus_zend::Script {
        filename: found.filename,
        script_name: text(found.name),
        path_info: found.path_info.map(text),
        document_root: site.root().to_owned(),
    }
}

pub(crate) fn limits(app: &App) -> AppLimits {
    AppLimits {
        request_timeout: app.request_timeout,
        stream_timeout: app.stream_timeout,
        heartbeat: app.heartbeat,
        defer_timeout: app.defer_timeout,
        timer_timeout: app.timer_timeout,
        background_timeout: app.background_timeout,
        cancel_on_disconnect: app.cancel_on_disconnect,
        boot_timeout: Some(app.boot_timeout),
        slow_log: app.slow_log,
        preempt_after: app.preempt_after,
        preempt_fibers: app.preempt_fibers,
        max_in_flight: app.max_requests_in_flight,
        max_queue: app.max_queue,
        queue_timeout: app.queue_timeout,
        memory_limit: app.memory_limit.clone(),
    }
}

/// The isolates of a mode in which each has one request at a time.
fn isolates(app: &App) -> ClassicConfig {
    ClassicConfig {
        limits: limits(app),
        min_isolates: app.min_isolates,
        max_isolates: app.max_isolates,
        memory: app.isolate_memory,
        idle: app.isolate_idle,
        recycle: app.isolate_limits,
    }
}

/// A complete body can be sent without polling it.
#[inline(always)]
fn whole(body: ResponseBody) -> Reply<ResponseBody> {
    match body.into_whole() {
        Ok(bytes) => Reply::Bytes(bytes),
        Err(stream) => Reply::Backend(stream),
    }
}

/// Which bodies PHP can read before they are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Streamed {
    /// None: PHP would occupy an isolate while it waits.
    None,
    /// Long ones, except forms with files, which PHP reads to their end anyway.
    Long,
}

/// Converts a request with this body to the engine's type.
#[inline]
fn request_with(
    head: &mut http::request::Parts,
    connection: &Connection,
    body: surus_zend::RequestBody,
    trailers: Option<Trailers>,
) -> surus_zend::Request {
    surus_zend::Request {
        method: take(&mut head.method),
        uri: take(&mut head.uri),
        version: head.version,
        headers: take(&mut head.headers),
        peer: connection.peer.tcp(),
        local: connection.local,
        https: connection.https,
        interim: connection.interim().cloned().map(Interim),
        body,
        trailers,
    }
}

/// The spool for request bodies. Those that the engine writes to files count against the same quota.
fn spool(app: &App) -> Spool {
    Spool::new(app.spool.clone()).counted_by(surus_zend::bodies_on_disk())
}

/// Converts a request to the engine's type. Fails if its body cannot be read to the end.
async fn request(
    mut head: http::request::Parts,
    body: Option<RequestBody>,
    connection: &Connection,
    spool: &Spool,
    streamed: Streamed,
) -> Result<surus_zend::Request, BoxError> {
    let Some(body) = body else {
        let none = surus_zend::RequestBody::Empty;
        return Ok(request_with(&mut head, connection, none, None));
    };
    let trailers = body.trailers();
    let body = if streamed == Streamed::Long && !spool.holds(&body) && !has_files(&head.headers) {
        surus_zend::RequestBody::Stream(Box::pin(body))
    } else {
        let form = head.headers.get(CONTENT_TYPE);
        let form = form.and_then(|content_type| Scanner::new(content_type.as_bytes()));
        let (length, body) = match spool.read(body, form).await? {
            Spooled::Memory(bytes) => (bytes.len() as u64, surus_zend::RequestBody::Full(bytes)),
            Spooled::File(file) => (file.length, surus_zend::RequestBody::Kept(kept::body(file))),
        };
        // For a chunked body the length is known now, as for php-fpm behind nginx.
        head.headers
            .entry(CONTENT_LENGTH)
            .or_insert_with(|| length.into());
        body
    };
    Ok(request_with(&mut head, connection, body, trailers))
}

fn has_files(headers: &HeaderMap) -> bool {
    const TYPE: &[u8] = b"multipart/form-data";
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.as_bytes().get(..TYPE.len()))
        .is_some_and(|start| start.eq_ignore_ascii_case(TYPE))
}

/// The response to a request whose body could not be read.
fn unreadable<B>(error: &BoxError) -> http::Response<Reply<B>> {
    let status = error
        .downcast_ref::<BodyError>()
        .map_or(StatusCode::BAD_REQUEST, |error| error.status());
    let mut response = plain(status);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
