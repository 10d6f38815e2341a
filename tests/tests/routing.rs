//! Routes, arguments, results, errors and middleware of coroutine applications.
#![forbid(unsafe_code)]

#[path = "routing/around.rs"]
mod around;
#[path = "routing/dates.rs"]
mod dates;
#[path = "routing/development.rs"]
mod development;
#[path = "routing/errors.rs"]
mod errors;
#[path = "routing/mistakes.rs"]
mod mistakes;
#[path = "routing/services.rs"]
mod services;

use surus_tests::fixture;
use surus_tests::http::{Request, Response};
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
