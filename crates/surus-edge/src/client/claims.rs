//! Headers that claim who the client is, and which scheme and host it has used. Frameworks and plugins trust one or the
//! other of them, so each is set to what the server has found out, or removed.

use std::net::IpAddr;

use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::client::hosts::is_host;
use crate::client::proxies::ProxyHeader;
use crate::Connection;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    Forwarded,
    /// The client's address.
    Client,
    /// `https` or `http`.
    Scheme,
    /// The scheme as `on` or `off`.
    Switch,
    Host,
    Port,
    Prefix,
    /// The path, or another name of the host. There is nothing to compare it with.
    Other,
}

fn claim(name: &HeaderName) -> Option<Claim> {
    Some(match name.as_str() {
        "forwarded" => Claim::Forwarded,
        "x-forwarded-for"
        | "x-forwarded"
        | "forwarded-for"
        | "x-real-ip"
        | "client-ip"
        | "x-client-ip"
        | "x-cluster-client-ip"
        | "x-original-forwarded-for"
        | "true-client-ip"
        | "cf-connecting-ip"
        | "cf-connecting-ipv6"
        | "fastly-client-ip" => Claim::Client,
        "x-forwarded-proto" | "x-forwarded-protocol" | "x-forwarded-scheme" | "x-url-scheme" => {
            Claim::Scheme
        }
        "x-forwarded-ssl" | "front-end-https" => Claim::Switch,
        "x-forwarded-host" => Claim::Host,
        "x-forwarded-port" => Claim::Port,
        "x-forwarded-prefix" => Claim::Prefix,
        "x-forwarded-server"
        | "x-original-host"
        | "x-host"
        | "x-http-host-override"
        | "x-original-url"
        | "x-rewrite-url" => Claim::Other,
        _ => return None,
    })
}

fn claims(headers: &HeaderMap) -> Vec<(HeaderName, Claim)> {
    let claims = headers.keys();
    let claims = claims.filter_map(|name| Some((name.clone(), claim(name)?)));
    claims.collect()
}

/// Removes all claims: the peer is not trusted.
pub(crate) fn remove(headers: &mut HeaderMap) {
    for (name, _) in claims(headers) {
        headers.remove(name);
    }
}

/// Corrects the claims in a request of a trusted proxy, which uses this header. `host`: from `Forwarded`.
pub(crate) fn correct(
    headers: &mut HeaderMap,
    by: ProxyHeader,
    client: &Connection,
    host: Option<&str>,
) {
    for (name, claim) in claims(headers) {
        let value = match (by, claim) {
            (ProxyHeader::Forwarded, Claim::Forwarded) => forwarded(client, host),
            (ProxyHeader::Forwarded, _) | (_, Claim::Forwarded) => None,
            (_, Claim::Client) => client
                .peer
                .ip()
                .and_then(|ip| HeaderValue::from_str(&ip.to_string()).ok()),
            (_, Claim::Scheme) if client.https => Some(HeaderValue::from_static("https")),
            (_, Claim::Scheme) => Some(HeaderValue::from_static("http")),
            (_, Claim::Switch) if client.https => Some(HeaderValue::from_static("on")),
            (_, Claim::Switch) => Some(HeaderValue::from_static("off")),
            (_, Claim::Host) => last(headers, &name, |host| !host.is_empty() && is_host(host)),
            (_, Claim::Port) => last(headers, &name, is_port),
            (_, Claim::Prefix) => last(headers, &name, is_prefix),
            (_, Claim::Other) => last(headers, &name, |_| true),
        };
        match value {
            Some(value) => _ = headers.insert(name, value),
            None => _ = headers.remove(name),
        }
    }
}

fn forwarded(client: &Connection, host: Option<&str>) -> Option<HeaderValue> {
    let mut value = match client.peer.ip() {
        Some(IpAddr::V6(ip)) => format!("for=\"[{ip}]\""),
        Some(IpAddr::V4(ip)) => format!("for={ip}"),
        None => "for=unknown".to_owned(),
    };
    value.push_str(if client.https {
        ";proto=https"
    } else {
        ";proto=http"
    });
    if let Some(host) = host.filter(|host| !host.is_empty() && is_host(host.as_bytes())) {
        let is_token = host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-');
        value.push_str(&match is_token {
            true => format!(";host={host}"),
            false => format!(";host=\"{host}\""),
        });
    }
    HeaderValue::from_str(&value).ok()
}

/// The claim of the nearest proxy: the last element of a list.
fn last(
    headers: &HeaderMap,
    name: &HeaderName,
    is_right: impl Fn(&[u8]) -> bool,
) -> Option<HeaderValue> {
    let line = headers.get_all(name).iter().next_back()?.as_bytes();
    let said = line.rsplit(|&byte| byte == b',').next()?.trim_ascii();
    HeaderValue::from_bytes(said)
        .ok()
        .filter(|_| is_right(said))
}

/// The port that the client has connected to, if [`correct`]ed headers name it.
pub(crate) fn port(headers: &HeaderMap, by: ProxyHeader, host: Option<&str>) -> Option<u16> {
    const PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
    const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let (port, host) = match by {
        ProxyHeader::Forwarded => (None, host),
        ProxyHeader::XForwarded | ProxyHeader::None => (text(PORT), text(HOST)),
    };
    let of_host = host.filter(|host| is_host(host.as_bytes()));
    let of_host = of_host.and_then(|host| host.rsplit_once(':'));
    let number = |text: &str| text.parse().ok().filter(|&port: &u16| port > 0);
    port.and_then(number).or_else(|| number(of_host?.1))
}

fn is_port(text: &[u8]) -> bool {
    let text = std::str::from_utf8(text).unwrap_or_default();
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// Whether this is a path: `//host` would be on another server.
fn is_prefix(text: &[u8]) -> bool {
    text.starts_with(b"/") && !text.starts_with(b"//") && text.iter().all(u8::is_ascii_graphic)
}
