//! Refuses requests, whatever the backend has answered.

use http::header::{HeaderValue, ALLOW, CONNECTION};
use http::{Response, StatusCode};

use crate::body::request_body::Verdict;
use crate::connection::State;
use crate::{plain, Reply};

/// The methods that backends get: TRACE is refused before.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Refuses a request whose body has failed, whatever the backend has answered.
pub(crate) fn judge<B>(
    response: &mut Response<Reply<B>>,
    verdict: Option<&Verdict>,
    state: &State,
) {
    if let Some(error) = verdict.and_then(|verdict| verdict.get()) {
        *response = refuse(state, error.status());
    }
}

/// A response to a request whose body is not read.
pub(crate) fn refuse<B>(state: &State, status: StatusCode) -> Response<Reply<B>> {
    state.discard_input();
    let mut response = plain(status);
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static(METHODS));
    }
    response
}
