//! PHP as the edge's backend: one file per mode, and what they share.

mod classic;
mod coroutine;

use http_body_util::BodyExt;
use surus_edge::{Backend, BodyError, BoxError, Connection, RequestBody};
use surus_zend::Limits;

use crate::config::App;

pub(crate) use classic::Classic;
pub(crate) use coroutine::Coroutine;

/// A backend that may have work left when no client waits for it any more: PHP finishes what it has begun.
pub(crate) trait Php: Backend {
    /// Requests that PHP has not finished.
    fn unfinished(&self) -> usize;
}

/// Bodies up to this many bytes are read before PHP is entered: a slow client then occupies a buffer, not a fiber.
const BUFFERED: u64 = 256 * 1024;

fn limits(app: &App) -> Limits {
    Limits {
        request_timeout: app.request_timeout,
        slow_log: app.slow_log,
        preempt_after: app.preempt_after,
        preempt_fibers: app.preempt_fibers,
        max_in_flight: app.max_requests_in_flight,
        max_queue: app.max_queue,
        queue_timeout: app.queue_timeout,
        memory_limit: app.memory_limit.clone(),
    }
}

/// The engine's form of a request. Fails if the client broke off its body.
async fn request(
    request: http::Request<RequestBody>,
    connection: &Connection,
) -> Result<surus_zend::Request, BoxError> {
    let (head, body) = request.into_parts();
    let body = if body.is_empty() {
        surus_zend::RequestBody::Empty
    } else if body.len().is_some_and(|length| length <= BUFFERED) {
        surus_zend::RequestBody::Full(body.collect().await?.to_bytes())
    } else {
        surus_zend::RequestBody::Stream(Box::pin(body))
    };
    Ok(surus_zend::Request {
        method: head.method,
        uri: head.uri,
        version: head.version,
        headers: head.headers,
        peer: connection.peer,
        local: connection.local,
        https: false,
        body,
    })
}

/// The status of a request whose body could not be read.
fn unreadable(error: &BoxError) -> http::StatusCode {
    error
        .downcast_ref::<BodyError>()
        .map_or(http::StatusCode::BAD_REQUEST, |error| error.status())
}
