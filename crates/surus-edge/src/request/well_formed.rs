//! Requirements of RFC 9112 and RFC 9113 that the engines do not check: one unambiguous host, a target that fits the
//! method, and no transfer coding but `chunked`.

use http::header::{HeaderMap, HeaderValue, COOKIE, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::uri::{Authority, Scheme};
use http::{Method, StatusCode, Version};

use crate::client::hosts::is_host;

use crate::Limits;

/// Checks a request, and puts its host into `Host`, wherever the request names it.
///
/// # Errors
/// The status to refuse the request with. Then nothing that follows on the connection may be read as a request.
pub(crate) fn check(request: &mut Parts, limits: &Limits) -> Result<(), StatusCode> {
    const BAD: StatusCode = StatusCode::BAD_REQUEST;
    // A request to a proxy, which this server is not.
    if request.method == Method::CONNECT {
        return Err(StatusCode::NOT_IMPLEMENTED);
    }
    // It would show the client what proxies have added to the request: cookies, credentials.
    if request.method == Method::TRACE {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    let uri = &request.uri;
    let path = uri.path();
    let whole_server = path == "*" && request.method == Method::OPTIONS;
    if !whole_server && !path.starts_with('/') {
        return Err(BAD);
    }
    if request.headers.len() > limits.header_count && fields(&request.headers) > limits.header_count
    {
        return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    let target = path.len() + uri.query().map_or(0, str::len);
    let authority = uri
        .authority()
        .map_or(0, |authority| authority.as_str().len());
    let line = request.method.as_str().len() + authority + target;
    let left = limits.header_bytes.saturating_sub(line);
    let host = look_through(&request.headers, left)?;
    match uri.authority() {
        None if host.is_none() && request.version == Version::HTTP_11 => return Err(BAD),
        None => {}
        Some(authority) => {
            // A request with another scheme would be for a proxy. HTTP/2 always has a scheme, which may be "https" for
            // the client of a proxy.
            let known = [&Scheme::HTTP, &Scheme::HTTPS];
            if !uri.scheme().is_some_and(|scheme| known.contains(&scheme)) {
                return Err(BAD);
            }
            let named = named(authority)?;
            match (host, request.version) {
                // RFC 9112, 3.2.2: `Host` must be there, and its value is ignored.
                (None, Version::HTTP_11) => return Err(BAD),
                // RFC 9113, 8.3.1
                (Some(host), Version::HTTP_2) if *host != named => return Err(BAD),
                _ => _ = request.headers.insert(HOST, named),
            }
        }
    }
    Ok(())
}

/// The number of headers. HTTP/2 may send each cookie in a separate field; together they count as one header (RFC 9113,
/// 8.2.3).
fn fields(headers: &HeaderMap) -> usize {
    let cookies = headers.get_all(COOKIE).iter().count();
    headers.len() - cookies.saturating_sub(1)
}

/// Returns the only host. Scans all headers once: requests have few, so this is cheaper than looking up two.
fn look_through(headers: &HeaderMap, most: usize) -> Result<Option<&HeaderValue>, StatusCode> {
    let (mut host, mut coded, mut bytes) = (None, false, 0);
    for (name, value) in headers {
        bytes += name.as_str().len() + value.len();
        if *name == HOST {
            if host.is_some() || value.is_empty() || !is_host(value.as_bytes()) {
                return Err(StatusCode::BAD_REQUEST);
            }
            host = Some(value);
        } else if *name == TRANSFER_ENCODING {
            // The engine reads only the last coding.
            if coded || !value.as_bytes().eq_ignore_ascii_case(b"chunked") {
                return Err(StatusCode::NOT_IMPLEMENTED);
            }
            coded = true;
        }
    }
    if bytes > most {
        return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    Ok(host)
}

fn named(authority: &Authority) -> Result<HeaderValue, StatusCode> {
    // No user and password: RFC 9110, 4.2.4.
    let host = authority.as_str();
    let value = HeaderValue::from_str(host).ok();
    value
        .filter(|_| !host.is_empty() && is_host(host.as_bytes()))
        .ok_or(StatusCode::BAD_REQUEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(version: Version, method: &str, target: &str, headers: &[(&str, &str)]) -> String {
        let mut request = http::Request::builder()
            .version(version)
            .method(method)
            .uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut request, ()) = request.body(()).unwrap().into_parts();
        let limits = Limits {
            header_bytes: 100,
            header_count: 3,
            ..Limits::default()
        };
        match check(&mut request, &limits) {
            Ok(()) => {
                let host = request.headers.get(HOST);
                host.map_or("-", |host| host.to_str().unwrap()).to_owned()
            }
            Err(status) => status.as_str().to_owned(),
        }
    }

    #[test]
    fn hosts() {
        for (version, target, hosts, expected) in [
            (Version::HTTP_11, "/", &["a"][..], "a"),
            (Version::HTTP_11, "/", &["[::1]:80"], "[::1]:80"),
            (Version::HTTP_11, "/", &[""], "400"),
            (Version::HTTP_10, "/", &[""], "400"),
            (Version::HTTP_11, "http://b/", &[""], "400"),
            (Version::HTTP_11, "/", &[], "400"),
            (Version::HTTP_11, "/", &["a", "a"], "400"),
            (Version::HTTP_11, "/", &["a b"], "400"),
            (Version::HTTP_11, "/", &["a/b"], "400"),
            (Version::HTTP_11, "/", &["u@b"], "400"),
            (Version::HTTP_11, "/", &["\u{e9}"], "400"),
            (Version::HTTP_10, "/", &[], "-"),
            (Version::HTTP_10, "/", &["a", "b"], "400"),
            (Version::HTTP_11, "http://b/", &["a"], "b"),
            (Version::HTTP_11, "http://b/", &[], "400"),
            (Version::HTTP_11, "http://u@b/", &["b"], "400"),
            (Version::HTTP_11, "ftp://b/", &["b"], "400"),
            (Version::HTTP_10, "http://b/", &[], "b"),
            (Version::HTTP_2, "http://b/", &[], "b"),
            (Version::HTTP_2, "http://b/", &["b"], "b"),
            (Version::HTTP_2, "http://b/", &["c"], "400"),
        ] {
            let headers: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
            let got = checked(version, "GET", target, &headers);
            assert_eq!(got, expected, "{version:?} {target} {hosts:?}");
        }
    }

    #[test]
    fn lengths() {
        for (target, length, expected) in
            [("/", 87, "a"), ("/", 95, "431"), ("/abcd?efg", 87, "431")]
        {
            let headers = [("host", "a"), ("x", &*"x".repeat(length))];
            let got = checked(Version::HTTP_11, "GET", target, &headers);
            assert_eq!(got, expected, "{target} {length}");
        }
    }

    #[test]
    fn counts() {
        for (names, expected) in [
            (&["x", "x"][..], "a"),
            (&["x", "y", "z"], "431"),
            (&["x", "cookie", "cookie", "cookie"], "a"),
            (&["x", "y", "cookie", "cookie"], "431"),
        ] {
            let mut headers = vec![("host", "a")];
            headers.extend(names.iter().map(|name| (*name, "1")));
            assert_eq!(
                checked(Version::HTTP_2, "GET", "/", &headers),
                expected,
                "{names:?}"
            );
        }
    }

    #[test]
    fn targets() {
        for (method, target, expected) in [
            ("OPTIONS", "*", "a"),
            ("GET", "*", "400"),
            ("GET", "a", "400"),
            ("GET", "a:80", "400"),
            ("CONNECT", "a:80", "501"),
            ("PROPFIND", "/a?b", "a"),
        ] {
            let got = checked(Version::HTTP_11, method, target, &[("host", "a")]);
            assert_eq!(got, expected, "{method} {target}");
        }
    }

    #[test]
    fn codings() {
        for (codings, expected) in [
            (&["chunked"][..], "a"),
            (&["Chunked"], "a"),
            (&["gzip, chunked"], "501"),
            (&["chunked, chunked"], "501"),
            (&["identity", "chunked"], "501"),
            (&[" chunked", ""], "501"),
        ] {
            let mut headers = vec![("host", "a")];
            headers.extend(codings.iter().map(|coding| ("transfer-encoding", *coding)));
            let got = checked(Version::HTTP_11, "POST", "/", &headers);
            assert_eq!(got, expected, "{codings:?}");
        }
    }
}
