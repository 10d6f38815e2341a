//! Parsers of this module for the fuzzer (`fuzz/`) and its replay in the tests: no input causes a panic, and the
//! assertions hold for every input.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

use super::{path, Declared, Match, Router, Target, TimeLimit};

const PATTERNS: [&str; 12] = [
    "/",
    "/a/b",
    "/users/{id:int}",
    "/users/{id:int}/posts/{post:uuid}",
    "/{lang:[a-z]{2}}/{page?}",
    "/files/{rest*}",
    "/files/{rest*:[a-z/]+}",
    "/{name}.{extension}",
    "/x/{a}/{b}/{c}",
    "/x/{a:slug}/{b}/{c}/",
    "/{a}/{b}/{c?}/{d?}",
    "/é/{f}",
];

thread_local! {
    static ROUTER: Router = {
        let patterns = PATTERNS.iter().enumerate();
        let mut routes: Vec<_> = patterns.map(|(index, pattern)| declared(index, pattern, "", "")).collect();
        routes.push(declared(20, "/{of}", "{tenant}.example.com", ""));
        routes.push(declared(21, "/{of}/x", "", "accept: text/html"));
        Router::new(&routes).expect("patterns of the test")
    };
}

fn declared(index: usize, pattern: &str, host: &str, headers: &str) -> Declared {
    Declared {
        methods: if index % 3 == 0 { "GET,POST" } else { "*" }.to_owned(),
        pattern: pattern.to_owned(),
        host: host.to_owned(),
        headers: headers.to_owned(),
        about: String::new(),
        origin: format!("fuzz:{index}"),
        index: i64::try_from(index).unwrap_or(0),
        time_limit: TimeLimit::Configured,
    }
}

/// Patterns, one per line; the last one is also used as a path.
pub(crate) fn patterns(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let routes: Vec<_> = text
        .lines()
        .take(8)
        .enumerate()
        .map(|(index, line)| declared(index, line, "", ""))
        .collect();
    match Router::new(&routes) {
        Ok(router) => find(
            &router,
            text.lines().last().unwrap_or("/"),
            None,
            &HeaderMap::new(),
        ),
        Err(error) => assert!(error.contains("route"), "{error}"),
    }
}

/// A path, a host and a header, one per line.
pub(crate) fn paths(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut lines = text.split('\n');
    let path = lines.next().unwrap_or("/");
    let host = lines.next();
    let mut headers = HeaderMap::new();
    if let Some(Ok(value)) = lines.next().map(HeaderValue::from_str) {
        headers.insert(HeaderName::from_static("accept"), value);
    }
    ROUTER.with(|router| find(router, path, host, &headers));
}

/// The pattern of a host, conditions on headers, a host and the value of a header, one per line.
pub(crate) fn conditions(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or("");
    let (pattern, condition, host) = (next(), next().replace('|', "\n"), next());
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_str(next()) {
        headers.insert(HeaderName::from_static("accept"), value);
    }
    let routes = [declared(0, "/a/{b}", pattern, &condition)];
    if let Ok(router) = Router::new(&routes) {
        find(&router, "/a/b", Some(host), &headers);
    }
}

fn find(router: &Router, path: &str, host: Option<&str>, headers: &HeaderMap) {
    // As in a request that the edge has accepted.
    let Ok(uri) = path.parse::<Uri>() else { return };
    if host.is_some_and(|host| host.bytes().any(|byte| !byte.is_ascii_graphic())) {
        return;
    }
    let path = uri.path();
    for method in [Method::GET, Method::HEAD, Method::DELETE] {
        let target = Target {
            method: &method,
            path,
            host,
            headers,
        };
        match router.find(&target) {
            Match::Found { parameters, .. } => {
                for (_, value) in parameters {
                    assert!(std::str::from_utf8(&value).is_ok() && !value.contains(&0));
                }
            }
            Match::Redirect { path } => {
                assert!(path.starts_with('/') && !path.starts_with("//"), "{path}");
                assert!(!path.starts_with("/\\"), "{path}");
            }
            Match::NotAllowed { allow, .. } => assert!(allow.contains("OPTIONS")),
            Match::Malformed => assert!(path::segments(path).is_none()),
            Match::NotFound => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use surus_replay::replay;

    #[test]
    fn seeds_and_mutations() {
        replay("patterns", super::patterns);
        replay("paths", super::paths);
        replay("conditions", super::conditions);
    }
}
