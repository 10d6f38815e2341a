//! Requests that are refused, whatever becomes of them at the backend.

use http::header::{HeaderValue, CONNECTION};
use http::{Response, StatusCode};

use crate::connection::State;
use crate::request_body::Verdict;
use crate::{plain, Reply};

/// A request whose body has failed is refused, whatever the backend has made of it.
pub(crate) fn judge<B>(
    response: &mut Response<Reply<B>>,
    verdict: Option<&Verdict>,
    state: &State,
) {
    if let Some(error) = verdict.and_then(|verdict| verdict.get()) {
        *response = refuse(state, error.status());
    }
}

/// An answer to a request whose body stays unread.
pub(crate) fn refuse<B>(state: &State, status: StatusCode) -> Response<Reply<B>> {
    state.linger.set(true);
    let mut response = plain(status);
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
