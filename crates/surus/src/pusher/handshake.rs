//! From a request to a WebSocket (RFC 6455, 4.2).

use std::rc::Rc;

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use http::header::{
    HeaderMap, HeaderName, HeaderValue, CONNECTION, ORIGIN, SEC_WEBSOCKET_ACCEPT,
    SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use sha1::{Digest, Sha1};
use surus_edge::{plain, Reply};

use super::{origin, talk, Served};

/// RFC 6455, 1.3.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The response to a client that connects; `None`: the request is not for this protocol.
pub(super) fn answer<B>(served: &Rc<Served>, head: &Parts) -> Option<Response<Reply<B>>> {
    let key = head.uri.path().strip_prefix("/app/")?;
    let key = key.strip_suffix('/').unwrap_or(key);
    if key.contains('/') {
        return None;
    }
    let app = served.front.by_key(key);
    let asks = head.method == Method::GET
        && lists(&head.headers, &UPGRADE, "websocket")
        && lists(&head.headers, &CONNECTION, "upgrade");
    let protocol = parameter(head, "protocol");
    if !asks || (app.is_none() && protocol.is_none()) {
        // Without the key of an application, it may be a path of PHP's.
        return app.map(|_| upgrade_required());
    }
    if one(&head.headers, &SEC_WEBSOCKET_VERSION) != Some("13") {
        return Some(upgrade_required());
    }
    let sent = one(&head.headers, &SEC_WEBSOCKET_KEY).unwrap_or_default();
    if STANDARD.decode(sent).map_or(0, |bytes| bytes.len()) != 16 {
        return Some(plain(StatusCode::BAD_REQUEST));
    }
    let may = app.is_some_and(|app| {
        let allowed = &served.pushers[app].allowed_origins;
        // One that is no text is nobody's, but it is there.
        let origin = head.headers.get(&ORIGIN);
        let origin = origin.map(|origin| origin.to_str().unwrap_or("null"));
        origin::may(allowed, origin, host(head))
    });
    let connected = served.front.connect(key, protocol.as_deref(), may);
    let Ok(connection) = connected else {
        return Some(plain(StatusCode::SERVICE_UNAVAILABLE));
    };
    let accept = STANDARD.encode(Sha1::digest(format!("{sent}{GUID}")));
    let offers = one(&head.headers, &SEC_WEBSOCKET_EXTENSIONS).filter(|_| served.compression);
    let agreed = offers.and_then(surus_zend::agree_on_compression);
    let mut response = Response::new(talk::upgrade(
        connection,
        served,
        agreed.as_deref().and_then(surus_zend::compression_window),
    ));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    let added = [
        (SEC_WEBSOCKET_ACCEPT, Some(accept)),
        (SEC_WEBSOCKET_EXTENSIONS, agreed),
    ];
    for (name, value) in added {
        if let Some(Ok(value)) = value.map(|text| HeaderValue::from_str(&text)) {
            headers.insert(name, value);
        }
    }
    Some(response)
}

fn upgrade_required<B>() -> Response<Reply<B>> {
    let mut response = plain(StatusCode::UPGRADE_REQUIRED);
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    response
}

/// The authority that the request is for.
fn host(head: &Parts) -> Option<&str> {
    let named = one(&head.headers, &http::header::HOST);
    named.or_else(|| head.uri.authority().map(http::uri::Authority::as_str))
}

fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whether a header with a list has this item.
fn lists(headers: &HeaderMap, name: &HeaderName, item: &str) -> bool {
    let values = headers.get_all(name).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    texts
        .flat_map(|text| text.split(','))
        .any(|each| each.trim().eq_ignore_ascii_case(item))
}

/// A parameter of the query. Those of this protocol are numbers.
fn parameter(head: &Parts, name: &str) -> Option<String> {
    let pairs = head.uri.query()?.split('&');
    let mut found = pairs.filter_map(|pair| pair.split_once('='));
    found
        .find(|(own, _)| *own == name)
        .map(|(_, value)| value.to_owned())
}
