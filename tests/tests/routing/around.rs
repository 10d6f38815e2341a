//! Middleware: which routes it stands around, and what becomes of results and trailers on their way through.

use surus_tests::fixture;
use surus_tests::http::{Connection, Request};
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;

use super::{ask, server};

#[test]
fn results_are_the_same_through_middleware() {
    let server = server();
    for prefix in ["", "/through"] {
        let get = |what: &str| ask(&server, &format!("GET {prefix}/returns/{what}"));
        for (what, status, content_type, body) in [
            ("string", 200, Some("text/html; charset=UTF-8"), "<p>"),
            ("array", 200, Some("application/json"), r#"{"a":1}"#),
            ("object", 200, Some("application/json"), r#"{"ä":"/"}"#),
            ("json", 200, Some("application/json"), r#""own""#),
            ("int", 418, None, ""),
            ("null", 204, None, ""),
            (
                "echo-null",
                200,
                Some("text/html; charset=UTF-8"),
                "printed",
            ),
            ("generator", 200, Some("text/html; charset=UTF-8"), "ab"),
            ("response", 203, Some("text/html; charset=UTF-8"), "body"),
            ("psr7", 201, Some("text/html; charset=UTF-8"), "psr"),
            (
                "float",
                500,
                Some("application/problem+json"),
                r#"{"title":"Internal Server Error","status":500}"#,
            ),
            (
                "status",
                500,
                Some("application/problem+json"),
                r#"{"title":"Internal Server Error","status":500}"#,
            ),
        ] {
            let response = get(what);
            let through = response.header("x-through").is_some();
            assert_eq!(through, prefix == "/through", "{prefix} {what}");
            assert_eq!(
                (
                    response.status,
                    response.header("content-type"),
                    response.text().as_str()
                ),
                (status, content_type, body),
                "{prefix} {what}"
            );
        }
        let cookies: Vec<String> = get("response")
            .all("set-cookie")
            .map(str::to_owned)
            .collect();
        assert_eq!(cookies, ["a=1", "b=2"]);
    }
}

/// PSR-7 knows nothing of trailers: they go with the response that has them, and not with another in its place.
#[test]
fn trailers_stay_with_their_response_through_psr_15_middleware() {
    let server = server();
    let get = |path: &str| {
        let mut connection = Connection::open(server.address()).expect("a connection");
        let head = format!(
            "GET /other/{path} HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: close\r\n\r\n"
        );
        connection.write(head.as_bytes()).expect("a request");
        let bytes = connection.rest().expect("an answer");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    for path in ["trailers", "trailers/streamed"] {
        let answer = get(path);
        assert!(answer.contains("trailer: x-sum\r\n"), "{path}: {answer}");
        assert!(answer.contains("x-mark: psr:200\r\n"), "{path}: {answer}");
        assert!(
            answer.ends_with("xt\r\n0\r\nx-sum: a sum\r\n\r\n"),
            "{path}: {answer}"
        );
    }
    let replaced = get("trailers/replaced");
    assert!(!replaced.contains("x-sum"), "{replaced}");
    assert!(replaced.ends_with("another"), "{replaced}");
}

#[test]
fn middleware_runs_on_every_kind_of_route() {
    let server = Surus::serve(&fixture("routing/walk.php")).start();
    for (line, status, seen) in [
        ("GET /get", 200, ""),
        ("HEAD /get", 200, ""),
        ("POST /post", 200, ""),
        ("PUT /put", 200, ""),
        ("PATCH /patch", 200, ""),
        ("DELETE /delete", 200, ""),
        ("OPTIONS /options", 200, ""),
        ("BREW /any", 200, ""),
        ("PURGE /map", 200, ""),
        ("GET /parameter/1", 200, ""),
        ("GET /parameter/1/2", 200, ""),
        ("GET /rest/a/b", 200, ""),
        ("GET /route", 200, "route "),
        ("GET /group/route", 200, "group route "),
        ("GET /group/inner/route", 200, "group inner route "),
        ("GET /resource", 200, "resource "),
        ("GET /mounted/route", 200, "mounted "),
        ("GET /annotated", 200, ""),
        ("GET /from-file", 200, ""),
        ("GET /api", 200, ""),
        ("GET /api/users/1", 200, ""),
        ("GET /throws", 418, "inner "),
        ("POST /get", 405, ""),
        ("GET /nothing", 404, ""),
    ] {
        let response = ask(&server, line);
        assert_eq!(
            (
                response.status,
                response.header("x-seen").map(str::trim_end)
            ),
            (status, Some(format!("first second {seen}").trim_end())),
            "{line}"
        );
    }
    let address = server.address();
    for request in [
        Request::get("/host").header("Host", "a.example.com"),
        Request::get("/header").header("X-Key", "1"),
    ] {
        let response = request.send(address).expect(200);
        assert_eq!(
            response.header("x-seen").map(str::trim_end),
            Some("first second")
        );
    }
    assert_eq!(
        ask(&server, "POST /get").header("allow"),
        Some("GET, HEAD, OPTIONS")
    );
}

#[test]
fn middleware_of_the_application_stands_around_what_no_route_takes() {
    let folder = TempDir::new("around");
    let script = folder.file(
        "app.php",
        "<?php $app = new Surus\\App(); $app->get('/get', fn () => 'got');
        return $app->use(fn ($request, $next) => $next($request)->withHeader('x-around', 'yes'));",
    );
    let server = Surus::serve(&script).start();
    for (line, status) in [("GET /get", 200), ("GET /nothing", 404), ("PUT /get", 405)] {
        let answer = ask(&server, line);
        assert_eq!(
            (answer.status, answer.header("x-around")),
            (status, Some("yes")),
            "{line}"
        );
        assert_eq!(answer.header("allow").is_some(), status == 405, "{line}");
    }
}
