//! Finds the route of a request, or an answer that needs no PHP.

use http::{header, HeaderMap, HeaderValue, Method, Response, StatusCode};

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
    let headers = exchange.headers.get();
    let found = router.find(&Target {
        method: &request.method,
        path: request.uri.path(),
        host: match router.has_conditions() {
            true => host(request, &headers),
            false => None,
        },
        headers: &headers,
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
        other => return Some(refuse(request, &headers, other)),
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

fn host<'a>(request: &'a Request, headers: &'a HeaderMap) -> Option<&'a str> {
    match request.uri.authority() {
        Some(authority) => Some(authority.as_str()),
        None => headers.get(header::HOST)?.to_str().ok(),
    }
}

/// The answer to a request that no route takes.
fn refuse(request: &Request, headers: &HeaderMap, why: Match) -> Response<ResponseBody> {
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
        Match::NotAllowed { allow, .. } => (refusal(405, headers), header::ALLOW, allow),
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
        Match::Malformed => return refusal(400, headers),
        Match::NotFound | Match::Found { .. } => return refusal(404, headers),
    };
    if let Ok(value) = HeaderValue::from_str(&value) {
        answer.headers_mut().insert(name, value);
    }
    answer
}
