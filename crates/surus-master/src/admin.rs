//! The admin listener: metrics (`metrics.rs`), the status as JSON, and a page for people, over plain HTTP.
//!
//! The master serves it from its own loop, like the control socket. It changes nothing, answers one request per
//! connection, and never waits for a client.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags};
use serde_json::Value;

use crate::clients::{ClientId, Clients, Heard};
use crate::listen;

const LONGEST_REQUEST: usize = 8192;
const PATIENCE: Duration = Duration::from_secs(5);

const DASHBOARD: &str = include_str!("dashboard.html");

/// The pages that need answers of the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    Status,
    Metrics,
}

/// The address and the token of the admin listener.
#[derive(Clone, Debug)]
pub struct Desk {
    /// The address it listens on.
    pub address: SocketAddr,
    /// The token that clients must send. Without one anybody has access, so only requests to this machine are answered.
    pub token: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Admin {
    listener: TcpListener,
    token: Option<String>,
    clients: Clients<TcpStream, Page>,
}

impl Admin {
    /// Binds. A successor (`upgrade`) does so while its predecessor serves.
    pub(crate) fn bind(desk: &Desk, upgrade: bool) -> io::Result<Self> {
        if !upgrade {
            listen::probe(desk.address)?;
        }
        let listener = listen::listen(desk.address)?;
        listener.set_nonblocking(true)?;
        Ok(Admin {
            listener,
            token: desk.token.clone(),
            clients: Clients::new(LONGEST_REQUEST, PATIENCE, true),
        })
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = PollFd<'_>> {
        let listener = PollFd::new(self.listener.as_fd(), PollFlags::POLLIN);
        std::iter::once(listener).chain(self.clients.descriptors())
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.clients.due()
    }

    /// Accepts and reads; answers what it can, and returns requests that need the workers.
    pub(crate) fn read(&mut self) -> Vec<(ClientId, Page)> {
        while let Ok((stream, peer)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_ok() {
                self.clients.add(stream, Some(peer.ip()));
            }
        }
        let token = self.token.as_deref();
        self.clients.serve(|received| hear(received, token))
    }

    pub(crate) fn answer(&mut self, id: ClientId, content_type: &str, body: &str) {
        let answer = answer("200 OK", content_type, "", body);
        self.clients.answer(id, &answer, true);
    }
}

fn hear(received: &[u8], token: Option<&str>) -> Heard<Page> {
    let Some(request) = Asking::of(received) else {
        return Heard::Part;
    };
    let plain = |status, more, body| Heard::Answered(answer(status, "text/plain", more, body));
    match token {
        Some(token) if !request.shows(token) => {
            // A browser asks its user; any user name is accepted, with the token as the password.
            let how = "www-authenticate: Basic realm=\"surus\", charset=\"UTF-8\"\r\n";
            return plain("401 Unauthorized", how, "admin_token is missing\n");
        }
        None if !request.is_to_this_machine() => {
            return plain("403 Forbidden", "", NOT_THIS_MACHINE);
        }
        _ => {}
    }
    match request.path() {
        "/status" => Heard::Asked(Page::Status),
        "/metrics" => Heard::Asked(Page::Metrics),
        "/" => {
            let page = answer("200 OK", "text/html; charset=utf-8", "", DASHBOARD);
            Heard::Answered(page)
        }
        _ => plain("404 Not Found", "", "Not Found\n"),
    }
}

const NOT_THIS_MACHINE: &str =
    "Without admin_token only requests to localhost or to an IP address are answered: a \
    page from elsewhere may have a name of its own that leads here.\n";

fn answer(status: &str, content_type: &str, more: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n{more}\
         cache-control: no-store\r\nx-content-type-options: nosniff\r\nx-frame-options: DENY\r\n\
         connection: close\r\n\r\n"
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// The head of a complete request.
#[derive(Debug)]
pub(crate) struct Asking<'a> {
    /// Empty if the method is not GET.
    target: &'a str,
    headers: Vec<(&'a str, &'a str)>,
}

impl<'a> Asking<'a> {
    pub(crate) fn of(received: &'a [u8]) -> Option<Self> {
        let head = std::str::from_utf8(received).ok()?;
        let (head, _) = head.split_once("\r\n\r\n")?;
        let mut lines = head.lines();
        let mut words = lines.next()?.split(' ');
        let target = match words.next()? {
            "GET" => words.next()?,
            _ => "",
        };
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name, value.trim())).collect();
        Some(Asking { target, headers })
    }

    pub(crate) fn path(&self) -> &'a str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The header of this name, if there is exactly one.
    fn header(&self, name: &str) -> Option<&'a str> {
        let mut all = self.headers.iter();
        let mut all = all
            .by_ref()
            .filter(|(own, _)| own.eq_ignore_ascii_case(name));
        let (_, value) = all.next()?;
        all.next().is_none().then_some(value)
    }

    /// Whether the request has the token, as a bearer token or as a password.
    pub(crate) fn shows(&self, token: &str) -> bool {
        let Some((scheme, given)) = self
            .header("authorization")
            .and_then(|value| value.split_once(' '))
        else {
            return false;
        };
        let given = given.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return is_same(given.as_bytes(), token.as_bytes());
        }
        let password = || {
            let decoded = base64(given)?;
            let at = decoded.iter().position(|&byte| byte == b':')?;
            Some(decoded[at + 1..].to_vec())
        };
        scheme.eq_ignore_ascii_case("basic")
            && password().is_some_and(|password| is_same(&password, token.as_bytes()))
    }

    /// A malicious page in a browser on this machine may let its own host name resolve to 127.0.0.1 and send requests
    /// here ("DNS rebinding"). Then `Host` has that name.
    pub(crate) fn is_to_this_machine(&self) -> bool {
        let Some(host) = self.header("host") else {
            // Without `Host` it is not a browser; but two of them are refused.
            return !self
                .headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case("host"));
        };
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.parse::<u16>().is_ok() => name,
            _ => host,
        };
        let bare = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        name.eq_ignore_ascii_case("localhost") || bare.unwrap_or(name).parse::<IpAddr>().is_ok()
    }
}

/// Compares in a time that does not depend on where they differ.
fn is_same(given: &[u8], token: &[u8]) -> bool {
    let differences = given.iter().zip(token).map(|(a, b)| a ^ b);
    given.len() == token.len() && differences.fold(0, |all, one| all | one) == 0
}

/// Decodes Base64, with or without padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    Some(bytes)
}

/// Removes the queries from a status, for others than the owner: they contain tokens, names and searches.
pub(crate) fn without_queries(status: &mut Value) {
    let workers = status["workers"].as_array_mut().into_iter().flatten();
    for worker in workers {
        let requests = worker["requests_in_flight"].as_array_mut();
        for request in requests.into_iter().flatten() {
            let Some(uri) = request["uri"].as_str() else {
                continue;
            };
            if let Some((path, _)) = uri.split_once('?') {
                request["uri"] = format!("{path}?…").into();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(headers: &str) -> String {
        format!("GET /status?x=1 HTTP/1.1\r\n{headers}\r\n")
    }

    #[test]
    fn names_from_elsewhere_are_not_this_machine() {
        let is_ours = |headers: &str| {
            let text = asking(headers);
            let asking = Asking::of(text.as_bytes()).unwrap();
            assert_eq!(asking.path(), "/status");
            asking.is_to_this_machine()
        };
        for host in [
            "127.0.0.1:9090",
            "localhost:9090",
            "LOCALHOST",
            "[::1]:9090",
            "[::1]",
            "10.1.2.3",
        ] {
            assert!(is_ours(&format!("Host: {host}\r\n")), "{host}");
        }
        assert!(is_ours(""));
        for host in [
            "evil.example",
            "evil.example:9090",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "",
            "127.0.0.1@evil.example",
            "evil.example:127.0.0.1",
        ] {
            assert!(!is_ours(&format!("Host: {host}\r\n")), "{host}");
        }
        assert!(!is_ours("Host: localhost\r\nhost: evil.example\r\n"));
    }

    #[test]
    fn a_token_is_a_bearers_or_a_password() {
        let shows = |authorization: &str| {
            let text = asking(&format!("authorization: {authorization}\r\n"));
            Asking::of(text.as_bytes()).unwrap().shows("s3cret:of-mine")
        };
        assert!(shows("Bearer s3cret:of-mine"));
        assert!(shows("bearer  s3cret:of-mine"));
        // Any user name.
        assert!(shows("Basic bWU6czNjcmV0Om9mLW1pbmU="));
        assert!(shows("Basic OnMzY3JldDpvZi1taW5l"));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer s3cret",
            "Bearer s3cret:of-minE",
            "Basic s3cret:of-mine",
            "Basic bWU6czNjcmV0",
            "Basic ????",
            "Digest s3cret:of-mine",
        ] {
            assert!(!shows(wrong), "{wrong}");
        }
        let twice = asking("authorization: Bearer a\r\nauthorization: Bearer s3cret:of-mine\r\n");
        assert!(!Asking::of(twice.as_bytes())
            .unwrap()
            .shows("s3cret:of-mine"));
    }

    #[test]
    fn queries_are_hidden() {
        let mut status = serde_json::json!({"workers": [
            {"requests_in_flight": [{"uri": "/reset?token=1?2"}, {"uri": "/plain"}]},
            {"state": "waiting"},
        ]});
        without_queries(&mut status);
        let requests = &status["workers"][0]["requests_in_flight"];
        assert_eq!(requests[0]["uri"], "/reset?…");
        assert_eq!(requests[1]["uri"], "/plain");
    }
}
