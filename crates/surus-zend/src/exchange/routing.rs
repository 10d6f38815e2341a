//! Finds the route of a request, or an answer that needs no PHP.

use http::{header, HeaderValue, Method, Response, StatusCode};

use crate::{
    body::response_body::ResponseBody,
    exchange::{answers::refusal, request::Request, Exchange},
    router::{Match, Router, Target},
};

/// Sets the exchange's route, or returns an answer that needs no PHP. Without a router one handler takes every request.
pub(crate) fn find_route(
    router: Option<&Router>,
    exchange: &Exchange,
) -> Option<Response<ResponseBody>> {
    let (router, request) = (router?, &exchange.request);
    let found = router.find(&Target {
        method: &request.method,
        path: request.uri.path(),
        host: match router.has_conditions() {
            true => host(request),
            false => None,
        },
        headers: &request.headers,
    });
    let (index, parameters, allow) = match found {
        Match::Found {
            index,
            time_limit,
            parameters,
        } => {
            exchange.times.set_limit(time_limit);
            (index, parameters, None)
        }
        Match::NotAllowed {
            allow,
            index: Some(index),
        } if request.method != Method::OPTIONS => (index, Vec::new(), Some(allow)),
        other => return Some(refuse(request, other)),
    };
    exchange.route.set(index);
    if !parameters.is_empty() {
        *exchange.parameters.borrow_mut() = parameters;
    }
    if let Some(allow) = allow {
        exchange.add_header(b"allow", allow.as_bytes());
    }
    None
}

fn host(request: &Request) -> Option<&str> {
    match request.uri.authority() {
        Some(authority) => Some(authority.as_str()),
        None => request.headers.get(header::HOST)?.to_str().ok(),
    }
}

/// The answer to a request that no route takes.
fn refuse(request: &Request, why: Match) -> Response<ResponseBody> {
    let empty = |status| {
        let mut answer = Response::new(ResponseBody::empty());
        *answer.status_mut() = status;
        answer
    };
    let options = request.method == Method::OPTIONS;
    let (mut answer, name, value) = match why {
        Match::NotAllowed { allow, .. } if options => {
            (empty(StatusCode::NO_CONTENT), header::ALLOW, allow)
        }
        Match::NotAllowed { allow, .. } => (refusal(405, &request.headers), header::ALLOW, allow),
        Match::Redirect { mut path } => {
            if let Some(query) = request.uri.query() {
                path.push('?');
                path.push_str(query);
            }
            (
                empty(StatusCode::PERMANENT_REDIRECT),
                header::LOCATION,
                path,
            )
        }
        Match::Malformed if options && request.uri.path() == "*" => {
            return empty(StatusCode::NO_CONTENT)
        }
        Match::Malformed => return refusal(400, &request.headers),
        Match::NotFound | Match::Found { .. } => return refusal(404, &request.headers),
    };
    if let Ok(value) = HeaderValue::from_str(&value) {
        answer.headers_mut().insert(name, value);
    }
    answer
}
