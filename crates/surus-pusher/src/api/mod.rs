//! The HTTP API: what servers publish, and what they ask about.
//!
//! - [`request`]: whose request it is; [`publish`]: events; [`channels`]: who is there

mod channels;
mod publish;
mod request;
#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::{json, Value};

use crate::front::Front;

/// Bytes of the largest request, beside its events.
const HEAD: usize = 32 * 1024;

/// Events of one request.
const BATCH: usize = 10;

/// A request of a server.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// In upper case.
    pub method: &'a str,
    /// As it was sent.
    pub path: &'a str,
    /// As it was sent.
    pub query: &'a str,
    /// All of it.
    pub body: &'a [u8],
    /// Seconds since 1970.
    pub now: u64,
}

/// The response: JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Of HTTP.
    pub status: u16,
    /// The body.
    pub body: Value,
}

/// Why a request is refused.
#[derive(Debug)]
struct Refusal(u16, String);

impl Refusal {
    fn new(status: u16, why: impl fmt::Display) -> Self {
        Refusal(status, why.to_string())
    }
}

type Answer = Result<Value, Refusal>;

/// The path of a request of the HTTP API: the id of an application, and what follows it.
fn split(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("/apps/")?.split_once('/')
}

/// Whether this is a request of the HTTP API, and not the application's own: it has what is signed in its query.
#[must_use]
pub fn is_own(front: &Front, path: &str, query: &str) -> bool {
    let Some((id, rest)) = split(path) else {
        return false;
    };
    let known = ["events", "batch_events", "channels", "users"];
    let first = rest.split('/').next().unwrap_or_default();
    let has = |name: &str| {
        let mut names = query.split('&').filter_map(|pair| pair.split_once('='));
        names.any(|(own, _)| own.eq_ignore_ascii_case(name))
    };
    known.contains(&first)
        && (has("auth_signature") || has("auth_key") && front.by_id(id).is_some())
}

/// Looks at the signature of a request before its body is read: nobody else's takes memory. `request` has no body yet.
/// Returns the bytes of the largest one that it may have.
///
/// # Errors
/// The response to a request that is refused.
pub fn admit(front: &Front, request: &Request<'_>) -> Result<usize, Response> {
    let admitted = application(front, request.path).and_then(|(app, _)| {
        let app = front.app(app);
        request::signed(app, request)?;
        Ok(HEAD + BATCH * 2 * app.max_event)
    });
    admitted.map_err(refused)
}

/// Answers a request of the HTTP API.
pub async fn answer(front: &Front, request: &Request<'_>) -> Response {
    match dispatch(front, request).await {
        Ok(body) => Response { status: 200, body },
        Err(refusal) => refused(refusal),
    }
}

fn refused(Refusal(status, why): Refusal) -> Response {
    Response {
        status,
        body: json!({"error": why}),
    }
}

/// The number of the application, and the rest of the path.
fn application<'a>(front: &Front, path: &'a str) -> Result<(usize, &'a str), Refusal> {
    let (id, rest) = split(path).ok_or_else(|| Refusal::new(404, "There is no such path"))?;
    let app = front
        .by_id(id)
        .ok_or_else(|| Refusal::new(404, format!("There is no application with the id {id}")))?;
    Ok((app, rest))
}

async fn dispatch(front: &Front, request: &Request<'_>) -> Answer {
    let (app, rest) = application(front, request.path)?;
    let parameters = request::authenticated(front.app(app), request)?;
    let decoded: Vec<String> = rest.split('/').map(request::decoded).collect();
    let parts: Vec<&str> = decoded.iter().map(String::as_str).collect();
    match (request.method, &parts[..]) {
        ("POST", ["events"]) => publish::one(front, app, request.body).await,
        ("POST", ["batch_events"]) => publish::batch(front, app, request.body).await,
        ("GET", ["channels"]) => channels::all(front, app, &parameters),
        ("GET", ["channels", name]) => channels::one(front, app, name, &parameters),
        ("GET", ["channels", name, "users"]) => channels::users(front, app, name),
        ("POST", ["users", user, "terminate_connections"]) => {
            let ended = front.terminate(app, user).await;
            ended.map_err(|refused| Refusal::new(503, refused))?;
            Ok(json!({}))
        }
        _ => Err(Refusal::new(404, "There is no such method and path")),
    }
}
