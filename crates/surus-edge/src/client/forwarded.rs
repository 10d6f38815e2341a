//! Parses what proxies say about their clients, the nearest proxy first: `Forwarded` (RFC 7239) and `X-Forwarded-*`.

use std::net::{IpAddr, SocketAddr};

use http::header::{HeaderMap, HeaderName, FORWARDED};

pub(crate) const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub(crate) const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// One hop as a proxy describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hop {
    /// `None`: not given, or not understood.
    pub(crate) client: Option<SocketAddr>,
    pub(crate) https: Option<bool>,
    pub(crate) host: Option<String>,
}

/// All elements of a list, which may be spread over several lines, as bytes: what a client has put in front of it need
/// not be text.
fn list(headers: &HeaderMap, name: HeaderName) -> Vec<&[u8]> {
    let lines = headers.get_all(name).iter();
    lines
        .flat_map(|line| line.as_bytes().split(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii)
        .collect()
}

pub(crate) fn x_forwarded(headers: &HeaderMap) -> Vec<Hop> {
    let (clients, protocols) = (list(headers, FOR), list(headers, PROTO));
    let hops = clients.len().max(protocols.len().min(1));
    let described = (0..hops).rev().map(|hop| {
        // Either all proxies add to both lists, or one value applies to all of them.
        let protocol = match protocols.len() {
            count if count == hops => protocols.get(hop),
            _ => protocols.last(),
        };
        Hop {
            client: clients.get(hop).and_then(|text| address(text)),
            https: protocol.map(|text| text.eq_ignore_ascii_case(b"https")),
            host: None,
        }
    });
    described.collect()
}

pub(crate) fn forwarded(headers: &HeaderMap) -> Vec<Hop> {
    let lines: Vec<&[u8]> = headers
        .get_all(FORWARDED)
        .iter()
        .map(|line| line.as_bytes())
        .collect();
    let elements = lines.into_iter().rev().flat_map(from_behind);
    elements
        .map(|element| hop(element).unwrap_or_default())
        .collect()
}

/// The elements of a list in which strings may be quoted, the last one first. Parsed backwards: a quote that a client
/// opens and does not close must not swallow what its proxy adds.
fn from_behind(line: &[u8]) -> Vec<&[u8]> {
    let (mut elements, mut end, mut quoted) = (Vec::new(), line.len(), false);
    for at in (0..line.len()).rev() {
        match line[at] {
            b'"' if !is_escaped(line, at) => quoted = !quoted,
            b',' if !quoted => {
                elements.push(line[at + 1..end].trim_ascii());
                end = at;
            }
            _ => {}
        }
    }
    elements.push(line[..end].trim_ascii());
    elements
}

fn is_escaped(line: &[u8], at: usize) -> bool {
    let before = line[..at].iter().rev();
    before.take_while(|&&byte| byte == b'\\').count() % 2 == 1
}

/// `None`: it is malformed, or has a parameter twice.
fn hop(element: &[u8]) -> Option<Hop> {
    let text = std::str::from_utf8(element).ok()?;
    let mut hop = Hop::default();
    let (mut has_for, mut quoted) = (false, false);
    let pairs = text.split(move |each| {
        quoted ^= each == '"';
        each == ';' && !quoted
    });
    for pair in pairs {
        let (name, value) = pair.split_once('=')?;
        let value = unquoted(value.trim())?;
        match name.trim().to_ascii_lowercase().as_str() {
            "for" if std::mem::replace(&mut has_for, true) => return None,
            "for" => hop.client = address(value.as_bytes()),
            "proto" if hop.https.is_some() => return None,
            "proto" => hop.https = Some(value.eq_ignore_ascii_case("https")),
            "host" if hop.host.is_some() => return None,
            "host" => hop.host = Some(value.to_owned()),
            _ => {}
        }
    }
    Some(hop)
}

/// `None` for a value with escapes, which is not an address, scheme or host.
fn unquoted(value: &str) -> Option<&str> {
    let inner = match value.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"')?,
        None => value,
    };
    (!inner.contains(['"', '\\'])).then_some(inner)
}

/// Parses `192.0.2.1`, `192.0.2.1:80`, `[2001:db8::1]:80`, `[2001:db8::1]`, `2001:db8::1`. Port 0 if none is given.
/// IPv4-mapped IPv6 addresses become IPv4.
fn address(text: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let found = text.parse().ok().or_else(|| {
        let bare = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'))
            .unwrap_or(text);
        bare.parse().ok().map(|ip: IpAddr| SocketAddr::new(ip, 0))
    })?;
    Some(SocketAddr::new(found.ip().to_canonical(), found.port()))
}
