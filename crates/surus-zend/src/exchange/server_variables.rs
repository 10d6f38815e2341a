//! `$_SERVER` as under php-fpm behind nginx, with the variables that other servers add; and the request strings that
//! PHP needs NUL-terminated.

use std::{net::SocketAddr, ops::Range, os::unix::ffi::OsStrExt};

use http::{header, HeaderMap, Version};

use crate::{
    engine::process::server_name,
    exchange::request::{Request, Script},
    ffi::{RequestInfo, Str},
};

/// NUL-terminated strings one after another.
#[derive(Default)]
struct Arena(Vec<u8>);

impl Arena {
    fn add(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.0.len();
        self.0.extend_from_slice(bytes);
        let range = start..self.0.len();
        self.0.push(0);
        range
    }

    fn str(&self, range: &Range<usize>) -> Str {
        Str::new(&self.0[range.clone()])
    }
}

/// The strings that SG(request_info) points to.
pub(crate) struct CStrings {
    arena: Arena,
    method: Range<usize>,
    uri: Range<usize>,
    path: Range<usize>,
    query: Range<usize>,
    content_type: Option<Range<usize>>,
    cookie: Option<Range<usize>>,
    authorization: Option<Range<usize>>,
    script: Range<usize>,
    content_length: i64,
}

impl CStrings {
    pub(crate) fn new(request: &Request, headers: &HeaderMap, script: Option<&Script>) -> CStrings {
        let mut arena = Arena(Vec::with_capacity(512));
        let text = |name: header::HeaderName| headers.get(name).map(http::HeaderValue::as_bytes);
        let uri = request.uri.path_and_query().map_or("/", |p| p.as_str());
        let cookies: Vec<&[u8]> = headers
            .get_all(header::COOKIE)
            .iter()
            .map(http::HeaderValue::as_bytes)
            .collect();
        CStrings {
            method: arena.add(request.method.as_str().as_bytes()),
            uri: arena.add(uri.as_bytes()),
            path: arena.add(request.uri.path().as_bytes()),
            query: arena.add(request.uri.query().unwrap_or("").as_bytes()),
            content_type: text(header::CONTENT_TYPE).map(|v| arena.add(v)),
            cookie: if cookies.is_empty() {
                None
            } else {
                Some(arena.add(&cookies.join(&b"; "[..])))
            },
            authorization: text(header::AUTHORIZATION).map(|v| arena.add(v)),
            script: arena.add(script.map_or(&b""[..], |s| s.filename.as_os_str().as_bytes())),
            content_length: text(header::CONTENT_LENGTH)
                .and_then(|v| std::str::from_utf8(v).ok())
                .and_then(|v| v.parse().ok())
                .unwrap_or(-1),
            arena,
        }
    }

    pub(crate) fn info(&self, request: &Request) -> RequestInfo {
        let optional = |range: &Option<Range<usize>>| {
            range.as_ref().map_or(
                Str {
                    ptr: std::ptr::null(),
                    len: 0,
                },
                |range| self.arena.str(range),
            )
        };
        RequestInfo {
            method: self.arena.str(&self.method),
            uri: self.arena.str(&self.uri),
            path: self.arena.str(&self.path),
            query: self.arena.str(&self.query),
            content_type: optional(&self.content_type),
            cookie: optional(&self.cookie),
            authorization: optional(&self.authorization),
            script: self.arena.str(&self.script),
            content_length: self.content_length,
            proto_num: match request.version {
                Version::HTTP_10 => 1000,
                Version::HTTP_2 => 2000,
                _ => 1001,
            },
        }
    }
}

/// Name and value pairs in one allocation.
pub(crate) struct ServerVariables {
    arena: Arena,
    pairs: Vec<(Range<usize>, Range<usize>)>,
}

impl ServerVariables {
    pub(crate) fn new(
        request: &Request,
        headers: &HeaderMap,
        script: Option<&Script>,
    ) -> ServerVariables {
        let mut all = ServerVariables {
            arena: Arena(Vec::with_capacity(2048)),
            pairs: Vec::with_capacity(48),
        };
        all.add_headers(headers);
        all.add_request(request, headers);
        if let Some(script) = script {
            all.add_script(script);
        }
        all
    }

    pub(crate) fn get(&self, i: usize) -> Option<(Str, Str)> {
        self.pairs
            .get(i)
            .map(|(name, value)| (self.arena.str(name), self.arena.str(value)))
    }

    fn add(&mut self, name: &str, value: &[u8]) {
        let pair = (self.arena.add(name.as_bytes()), self.arena.add(value));
        self.pairs.push(pair);
    }

    fn add_headers(&mut self, headers: &HeaderMap) {
        for name in headers.keys() {
            // Programs would take HTTP_PROXY from a client for the environment variable (httpoxy).
            if name == "proxy" || !names_a_variable(name.as_str()) {
                continue;
            }
            let separator: &[u8] = if name == header::COOKIE { b"; " } else { b", " };
            let values: Vec<&[u8]> = headers
                .get_all(name)
                .iter()
                .map(http::HeaderValue::as_bytes)
                .collect();
            let value = values.join(separator);
            if name == header::CONTENT_TYPE || name == header::CONTENT_LENGTH {
                let plain = name.as_str().to_ascii_uppercase().replace('-', "_");
                self.add(&plain, &value);
            }
            let mut variable = String::with_capacity(name.as_str().len() + 5);
            variable.push_str("HTTP_");
            variable.extend(name.as_str().chars().map(|c| {
                if c == '-' {
                    '_'
                } else {
                    c.to_ascii_uppercase()
                }
            }));
            self.add(&variable, &value);
        }
    }

    fn add_request(&mut self, request: &Request, headers: &HeaderMap) {
        let local_ip = request.local.ip().to_string();
        let protocol = match request.version {
            Version::HTTP_10 => "HTTP/1.0",
            Version::HTTP_2 => "HTTP/2.0",
            _ => "HTTP/1.1",
        };
        self.add("GATEWAY_INTERFACE", b"CGI/1.1");
        self.add(
            "SERVER_SOFTWARE",
            concat!("surus/", env!("CARGO_PKG_VERSION")).as_bytes(),
        );
        self.add("SERVER_PROTOCOL", protocol.as_bytes());
        let name = server_name().unwrap_or(&local_ip);
        self.add("SERVER_NAME", name.as_bytes());
        self.add("SERVER_ADDR", local_ip.as_bytes());
        self.add("SERVER_PORT", request.local.port().to_string().as_bytes());
        // A Unix socket has neither address nor port; nginx calls it `unix:`, too.
        let ip = |peer: SocketAddr| peer.ip().to_string();
        let peer_ip = request.peer.map_or_else(|| "unix:".to_owned(), ip);
        self.add("REMOTE_ADDR", peer_ip.as_bytes());
        // No name or identity lookups, as with Caddy; nginx leaves these variables out.
        self.add("REMOTE_HOST", peer_ip.as_bytes());
        self.add("REMOTE_IDENT", b"");
        self.add("AUTH_TYPE", b"");
        let port = |peer: SocketAddr| peer.port().to_string();
        let peer_port = request.peer.map_or_else(String::new, port);
        self.add("REMOTE_PORT", peer_port.as_bytes());
        self.add("REQUEST_METHOD", request.method.as_str().as_bytes());
        self.add(
            "REQUEST_SCHEME",
            if request.https { b"https" } else { b"http" },
        );
        if request.https {
            self.add("HTTPS", b"on");
        }
        self.add(
            "REQUEST_URI",
            request
                .uri
                .path_and_query()
                .map_or("/", |p| p.as_str())
                .as_bytes(),
        );
        self.add("QUERY_STRING", request.uri.query().unwrap_or("").as_bytes());
        self.add("REDIRECT_STATUS", b"200");
        if !headers.contains_key(header::CONTENT_TYPE) {
            self.add("CONTENT_TYPE", b"");
        }
        if !headers.contains_key(header::CONTENT_LENGTH) {
            self.add("CONTENT_LENGTH", b"");
        }
    }

    fn add_script(&mut self, script: &Script) {
        let root = script.document_root.as_os_str().as_bytes();
        let info = script.path_info.as_deref().unwrap_or("");
        let path = format!("{}{info}", script.script_name);
        self.add("DOCUMENT_ROOT", root);
        self.add("DOCUMENT_URI", script.script_name.as_bytes());
        self.add("SCRIPT_FILENAME", script.filename.as_os_str().as_bytes());
        self.add("SCRIPT_NAME", script.script_name.as_bytes());
        self.add("PHP_SELF", path.as_bytes());
        // Empty rather than missing, as with Debian's fastcgi.conf and its snippet.
        self.add("PATH_INFO", info.as_bytes());
        if !info.is_empty() {
            self.add("PATH_TRANSLATED", &[root, info.as_bytes()].concat());
        }
    }
}

/// Names without underscores only, as with nginx and Apache: `X_Forwarded_For` would set the variable of
/// `X-Forwarded-For`, which is another header.
fn names_a_variable(header: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    header.bytes().all(allowed)
}
