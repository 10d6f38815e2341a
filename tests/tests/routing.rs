//! Routes, arguments, results, errors and middleware of coroutine applications.
#![forbid(unsafe_code)]

#[path = "routing/mistakes.rs"]
mod mistakes;

use surus_tests::fixture;
use surus_tests::http::{Connection, Request, Response};
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;

fn server() -> Surus {
    Surus::serve(&fixture("routing/app.php")).start()
}

fn ask(server: &Surus, line: &str) -> Response {
    let (method, target) = line.split_once(' ').expect("a method and a target");
    Request::new(method, target).send(server.address())
}

/// Each row: a request line, the status, and the body.
fn expect(server: &Surus, rows: &[(&str, u16, &str)]) {
    for (line, status, body) in rows {
        let response = ask(server, line);
        assert_eq!(
            (response.status, response.text().as_str()),
            (*status, *body),
            "{line}"
        );
    }
}

const PROBLEM: &str = r#"{"title":"Not Found","status":404}"#;

#[test]
fn paths_and_methods() {
    let server = server();
    expect(
        &server,
        &[
            ("GET /", 200, "home"),
            ("HEAD /", 200, ""),
            ("POST /things", 201, ""),
            ("PUT /things/a", 200, "put a"),
            ("PATCH /things/a", 200, "patch a"),
            ("DELETE /things/a", 204, ""),
            ("OPTIONS /asked", 200, "own answer"),
            ("BREW /anything", 200, "BREW"),
            ("REPORT /report", 200, "REPORT"),
            ("GET /text/a%20b%2Fc", 200, "a b/c"),
            ("GET /text/%C3%A4+b", 200, "ä+b"),
            (
                "GET /uuid/0b31d2c8-5d5c-4e0a-9a3e-0123456789ab",
                200,
                "0b31d2c8-5d5c-4e0a-9a3e-0123456789ab",
            ),
            ("GET /uuid/0b31d2c8", 404, PROBLEM),
            ("GET /slug/a-b", 200, "a-b"),
            ("GET /slug/A", 404, PROBLEM),
            ("GET /code/DE42", 200, "DE42"),
            ("GET /code/DEX", 404, PROBLEM),
            ("GET /where/c", 404, PROBLEM),
            ("GET /where/b", 200, "b"),
            ("GET /files/a/b%20c", 200, "a/b c"),
            ("GET /files/a/%2e%2e/etc", 404, PROBLEM),
            ("GET /archive", 200, "[2000,null]"),
            ("GET /archive/1999", 200, "[1999,null]"),
            ("GET /archive/1999/12", 200, "[1999,12]"),
            ("GET /page/a.b.html", 200, "a as b.html"),
            (
                "GET /text/%ff",
                400,
                r#"{"title":"Bad Request","status":400}"#,
            ),
            (
                "GET /text/%00",
                400,
                r#"{"title":"Bad Request","status":400}"#,
            ),
            (
                "GET /text/%4",
                400,
                r#"{"title":"Bad Request","status":400}"#,
            ),
        ],
    );
    for (method, path, status, page) in [
        ("GET", "/nowhere", 404, "<h1>404 Not Found</h1>"),
        ("DELETE", "/things", 405, "<h1>405 Method Not Allowed</h1>"),
        ("GET", "/text/%ff", 400, "<h1>400 Bad Request</h1>"),
    ] {
        let browser = Request::new(method, path).header("Accept", "text/html,*/*;q=0.8");
        let answer = browser.send(server.address()).expect(status);
        assert_eq!(
            answer.header("content-type"),
            Some("text/html; charset=UTF-8")
        );
        assert!(answer.text().ends_with(page), "{}", answer.text());
    }
    let refused = ask(&server, "DELETE /things").expect(405);
    assert_eq!(refused.header("allow"), Some("POST, OPTIONS"));
    let options = ask(&server, "OPTIONS /things/a").expect(204);
    assert_eq!(options.header("allow"), Some("PUT, PATCH, DELETE, OPTIONS"));
    let moved = ask(&server, "GET /things/a/?b=c").expect(404);
    assert_eq!(
        moved.header("location"),
        None,
        "only where a route takes the method"
    );
    let moved = ask(&server, "PUT /things/a/?b=c").expect(308);
    assert_eq!(moved.header("location"), Some("/things/a?b=c"));
    for target in ["//evil.example/", "/\\evil.example/", "//text/a/"] {
        let answer = ask(&server, &format!("GET {target}"));
        assert_eq!(answer.header("location"), None, "{target}");
    }
}

#[test]
fn arguments() {
    let server = server();
    expect(
        &server,
        &[
            ("GET /int/-7", 200, r#"{"id":-7}"#),
            ("GET /int/7.5", 404, PROBLEM),
            ("GET /int/99999999999999999999", 404, PROBLEM),
            ("GET /float/1.25", 200, r#"{"x":1.25}"#),
            ("GET /float/x", 404, PROBLEM),
            ("GET /bool/true", 200, r#"{"yes":true}"#),
            ("GET /bool/maybe", 404, PROBLEM),
            ("GET /colour/red", 200, "Red"),
            ("GET /colour/blue", 404, PROBLEM),
            ("GET /untyped/7", 200, "7"),
            ("GET /query?page=2", 200, r#"[2,null,[],null,false]"#),
            (
                "GET /query?page=2&q=a+b&tags[]=x&tags[]=y&colour=green&all=1",
                200,
                r#"[2,"a b",["x","y"],"Green",true]"#,
            ),
            (
                "GET /query",
                400,
                r#"{"title":"Bad Request","status":400,"detail":"The query parameter \"page\" is missing"}"#,
            ),
            (
                "GET /query?page=+2",
                400,
                r#"{"title":"Bad Request","status":400,"detail":"The query parameter \"page\" must be an integer"}"#,
            ),
            (
                "GET /query?page[]=2",
                400,
                r#"{"title":"Bad Request","status":400,"detail":"The query parameter \"page\" must be an integer"}"#,
            ),
            (
                "GET /query?page=1&tags=x",
                400,
                r#"{"title":"Bad Request","status":400,"detail":"The query parameter \"tags\" must be a list"}"#,
            ),
            (
                "GET /query?page=1&colour=blue",
                400,
                r#"{"title":"Bad Request","status":400,"detail":"The query parameter \"colour\" is none of the possible values"}"#,
            ),
            (
                "GET /cookie",
                400,
                r#"{"title":"Bad Request","status":400,"detail":"The cookie \"token\" is missing"}"#,
            ),
            ("GET /only", 200, "/only"),
            ("GET /kinds/function/Ann", 200, "Hello, Ann!"),
            ("GET /kinds/first-class/Ann", 200, "Hello, Ann!"),
            ("GET /kinds/static", 200, "always"),
            ("GET /kinds/static-text", 200, "always"),
            ("GET /kinds/invokable/it", 200, "invoked it"),
            ("GET /kinds/invoked/it", 200, "invoked it"),
            ("GET /kinds/scoped", 200, "/kinds/scoped"),
            ("GET /kinds/psr15/5", 202, "GET /kinds/psr15/5 5 -"),
            ("GET /psr/6", 202, "GET /psr/6 6 -"),
        ],
    );
    let address = server.address();
    let header = Request::get("/header")
        .header("User-Agent", "me")
        .header("x-count", "3");
    assert_eq!(header.send(address).text(), r#"["me",3]"#);
    let cookie = Request::get("/cookie").header("Cookie", "a=b; token=x%20y; token=z");
    assert_eq!(cookie.send(address).text(), "x y");
}

#[test]
fn services_are_shared_or_of_a_request() {
    let server = server();
    let first = ask(&server, "GET /service").text();
    assert!(first.starts_with("2024-02-29 "), "{first}");
    assert_eq!(ask(&server, "GET /service").text(), first);
    assert_eq!(ask(&server, "GET /ordered").text(), "made");
    let one = ask(&server, "GET /scoped").json();
    let two = ask(&server, "GET /scoped").json();
    assert_ne!(one[0], two[0], "each request has its own");
    assert_eq!(one[1], two[1], "this one is shared");
    assert_eq!(one[2], "/scoped");
    assert!(ask(&server, "GET /kinds/method").text().starts_with("shop"));
    assert!(ask(&server, "GET /kinds/object")
        .text()
        .starts_with("other"));
}

#[test]
fn groups_names_and_conditions() {
    let server = server();
    expect(
        &server,
        &[
            ("GET /admin", 200, "admin"),
            ("GET /admin/users/7", 200, "admin 7"),
            ("GET /admin/deep/er", 200, "admin,deep"),
            ("GET /photos", 200, "index"),
            ("POST /photos", 201, ""),
            ("GET /photos/3", 200, "show 3"),
            ("PATCH /photos/3", 200, "PATCH 3"),
            ("DELETE /photos/3", 204, ""),
            ("GET /photos/x", 404, PROBLEM),
            ("GET /books", 200, "all books"),
            ("GET /books/all", 200, "all books"),
            ("GET /books/4", 200, "book 4"),
            ("POST /books", 201, ""),
            ("UNLOCK /books/4/lock", 200, "lock 4"),
            ("GET /from-file", 200, "loaded"),
            ("GET /api", 200, "the api"),
            ("GET /api/users/9", 200, r#"{"user":9}"#),
            ("DELETE /api/users/9", 204, ""),
            ("GET /pages", 200, "<h1>Pages</h1>\n"),
            ("GET /pages/about", 200, "<p>ABOUT anonymous GET -</p>"),
            (
                "POST /pages/about?a=b",
                200,
                "<p>ABOUT anonymous POST b</p>",
            ),
            ("GET /pages/about", 200, "<p>ABOUT anonymous GET -</p>"),
            ("GET /pages/leaves", 202, "left"),
            ("GET /pages/braces", 200, "a} once"),
            ("GET /pages/braces", 200, "a} once"),
            ("GET /pages/users/7", 200, r#"{"user":7}"#),
            ("GET /pages/users/x", 404, PROBLEM),
            ("GET /version", 200, "one"),
            ("GET /tenant", 200, "no tenant"),
            (
                "GET /link",
                200,
                r#"["/admin/users/7?tab=a%20b","/photos/3","/named/2020","/named-rest/a%20b/c"]"#,
            ),
            (
                "GET /link/wrong/name",
                200,
                r#"There is no route with the name "nothing""#,
            ),
            (
                "GET /link/wrong/missing",
                200,
                r#"The path /admin/users/{id} needs a value for "id""#,
            ),
            ("GET /link/wrong/value", 200, "/admin/users/x"),
        ],
    );
    let address = server.address();
    let tenant = Request::get("/tenant").header("Host", "Acme.Example.com:99");
    assert_eq!(tenant.send(address).text(), "tenant acme");
    let evil = Request::get("/tenant").header("Host", "acme.example.com.evil.org");
    assert_eq!(evil.send(address).text(), "no tenant");
    let two = Request::get("/version").header("X-Version", "2");
    assert_eq!(two.send(address).text(), "two");
    let psr = ask(&server, "GET /other/inside");
    assert_eq!(
        (psr.text().as_str(), psr.header("x-mark")),
        ("mounted", Some("psr:200"))
    );
}

#[test]
fn the_command_prints_what_there_is() {
    let script = fixture("routing/app.php");
    let (code, text) = Surus::run(&["routes", script.to_str().expect("a path")]);
    assert_eq!(code, Some(0), "{text}");
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for line in [
        "GET /kinds/function/{name} greet",
        "GET /kinds/method Shop::name",
        "GET /kinds/invokable/{what} Shop",
        "GET /photos Photos::index (photos.index)",
        "PUT,PATCH /photos/{id:int} Photos::update (photos.update)",
        "GET /tenant host {tenant}.example.com app.php:252",
        "GET /version X-Version: 2 app.php:254",
        "GET,POST /pages/about about.php",
        "GET,POST /pages/braces braces.php",
        "GET,POST /pages/users/{id:int} [id:int].php",
        "* /api index.php:3",
    ] {
        assert!(
            lines.iter().any(|each| each == line),
            "no {line:?} in {text}"
        );
    }
}

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
fn errors() {
    let server = server();
    expect(
        &server,
        &[
            (
                "GET /errors/http",
                422,
                r#"{"title":"Unprocessable Content","status":422,"detail":"Not like that","errors":[1]}"#,
            ),
            (
                "GET /errors/status",
                409,
                r#"{"title":"Conflict","status":409}"#,
            ),
            ("GET /errors/domain", 400, "handled domain"),
            ("GET /errors/gone", 410, "gone for good"),
            (
                "GET /errors/other",
                500,
                r#"{"title":"Internal Server Error","status":500}"#,
            ),
        ],
    );
    assert_eq!(ask(&server, "GET /errors/http").header("x-why"), Some("so"));
    let browser = Request::get("/errors/other").header("Accept", "text/html,*/*;q=0.8");
    let page = browser.send(server.address()).expect(500);
    assert!(
        page.text().contains("<h1>500 Internal Server Error</h1>"),
        "{}",
        page.text()
    );
    assert!(!page.text().contains("secret"));
    // A cache must not give a program's answer to a browser.
    assert_eq!(page.header("vary"), Some("Accept"));
    let gone = ask(&server, "GET /errors/status").expect(409);
    assert_eq!(gone.header("vary"), Some("Accept"));
    assert!(server.log().contains("a secret"));
    assert!(
        !server.log().contains("Not like that"),
        "a client's mistake is not the server's"
    );
}

#[test]
fn the_error_page_of_development_shows_the_source_and_no_secrets() {
    let server = Surus::serve(&fixture("routing/app.php")).dev().start();
    let request = Request::get("/errors/%3Cscript%3E")
        .header("Accept", "text/html")
        .header("Cookie", "session=hidden")
        .header("X-Shown", "<b>shown");
    let page = request.send(server.address()).expect(500).text();
    for part in [
        "RuntimeException: a secret",
        "new RuntimeException(",
        "app.php:",
        "&lt;b&gt;shown",
    ] {
        assert!(page.contains(part), "no {part:?} in {page}");
    }
    assert!(!page.contains("hidden") && !page.contains("<b>shown") && !page.contains("<script>"));
    let json = ask(&server, "GET /errors/other").expect(500).json();
    assert_eq!(json["exception"], "RuntimeException");
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
