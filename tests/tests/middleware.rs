//! The middleware that comes with Surus, against what a browser or an attacker would try.
#![forbid(unsafe_code)]

#[path = "middleware/auth.rs"]
mod auth;
#[path = "middleware/input.rs"]
mod input;
#[path = "middleware/issued.rs"]
mod issued;
#[path = "middleware/keys.rs"]
mod keys;
#[path = "middleware/limits.rs"]
mod limits;
#[path = "middleware/sessions.rs"]
mod sessions;

use surus_tests::fixture;
use surus_tests::http::{Request, Response};
use surus_tests::surus::Surus;

fn server() -> Surus {
    Surus::serve(&fixture("middleware/app.php")).start()
}

/// `Name: value` headers, for short.
fn ask(server: &Surus, line: &str, headers: &[&str]) -> Response {
    send(server, line, headers, |request| request)
}

fn send(
    server: &Surus,
    line: &str,
    headers: &[&str],
    more: impl FnOnce(Request) -> Request,
) -> Response {
    let (method, target) = line.split_once(' ').expect("a method and a target");
    let mut request = Request::new(method, target);
    for header in headers {
        let (name, value) = header.split_once(": ").expect("a header");
        request = request.header(name, value);
    }
    more(request).send(server.address())
}

/// The cookie of this name as a request header, from a response that sets it.
fn cookie(response: &Response, name: &str) -> Option<String> {
    let start = format!("{name}=");
    let found = response.all("set-cookie").find(|c| c.starts_with(&start))?;
    Some(format!("Cookie: {}", found.split(';').next()?))
}

#[test]
fn cross_origin_requests() {
    let server = server();
    let mine = "Origin: https://app.example";
    let answer = ask(&server, "GET /cors/thing", &[mine]).expect(200);
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("https://app.example")
    );
    assert_eq!(
        answer.header("access-control-allow-credentials"),
        Some("true")
    );
    assert_eq!(
        answer.header("access-control-expose-headers"),
        Some("x-total")
    );
    assert_eq!(answer.header("vary"), Some("Origin"));
    for foreign in [
        "https://app.example.evil.org",
        "https://evilapp.example",
        "http://app.example",
        "https://APP.example",
        "null",
        "*",
    ] {
        let answer = ask(&server, "GET /cors/thing", &[&format!("Origin: {foreign}")]);
        assert_eq!(
            answer.header("access-control-allow-origin"),
            None,
            "{foreign}"
        );
        assert_eq!(
            answer.header("access-control-allow-credentials"),
            None,
            "{foreign}"
        );
        assert_eq!(
            answer.header("vary"),
            Some("Origin"),
            "a cache keeps them apart"
        );
    }
    let preflight = ask(
        &server,
        "OPTIONS /cors/thing",
        &[
            mine,
            "Access-Control-Request-Method: PUT",
            "Access-Control-Request-Headers: x-evil",
        ],
    )
    .expect(204);
    assert_eq!(
        preflight.header("access-control-allow-methods"),
        Some("GET, PUT, HEAD")
    );
    assert_eq!(
        preflight.header("access-control-allow-headers"),
        Some("content-type, authorization")
    );
    let foreign = ask(
        &server,
        "OPTIONS /cors/thing",
        &[
            "Origin: https://evil.example",
            "Access-Control-Request-Method: PUT",
        ],
    );
    assert_eq!(foreign.header("access-control-allow-methods"), None);
    let plain = ask(&server, "OPTIONS /cors/thing", &[]).expect(204);
    assert_eq!(plain.header("allow"), Some("GET, PUT, HEAD, OPTIONS"));
    let named = ask(
        &server,
        "OPTIONS /cors-names/1",
        &[mine, "Access-Control-Request-Method: PUT"],
    );
    assert_eq!(
        named.header("access-control-allow-methods"),
        Some("GET, PUT, HEAD"),
        "however the routes call the parameter"
    );
    let other = ask(
        &server,
        "OPTIONS /cors-names/123/x",
        &[mine, "Access-Control-Request-Method: PUT"],
    );
    assert_eq!(
        other.header("access-control-allow-methods"),
        Some("PUT"),
        "not those of paths with two digits"
    );
    let all = ask(&server, "GET /cors-all", &["Origin: https://any.example"]);
    assert_eq!(all.header("access-control-allow-origin"), Some("*"));
    assert_eq!(all.header("access-control-allow-credentials"), None);
    assert_eq!(ask(&server, "GET /cors-wrong", &[]).text(), "refused");
}

/// What a form of the page brings against forgery.
fn form_token(page: &Response) -> String {
    let text = page.text();
    let value = text.split("value=\"").nth(1).expect("a field");
    value.split('"').next().expect("its end").to_owned()
}

#[test]
fn forged_forms() {
    let server = server();
    let page = ask(&server, "GET /form/page", &[]);
    let token = form_token(&page);
    let cookie = cookie(&page, "csrf").unwrap();
    let again = ask(&server, "GET /form/page", &[&cookie]);
    assert!(again.header("set-cookie").is_none());
    assert!(
        !again.text().contains(&token),
        "each page has a token that looks different"
    );
    let post = |headers: &[&str], token: &str| {
        let mut all = vec!["Host: site.example"];
        all.extend_from_slice(headers);
        send(&server, "POST /form/send", &all, |request| {
            request.form(&[("_token", token)])
        })
        .status
    };
    assert_eq!(post(&[&cookie], &token), 200);
    assert_eq!(
        post(
            &[
                &cookie,
                "Origin: http://site.example",
                "Sec-Fetch-Site: same-origin"
            ],
            &token
        ),
        200
    );
    assert_eq!(
        post(
            &[
                &cookie,
                "Origin: https://partner.example",
                "Sec-Fetch-Site: cross-site"
            ],
            &token
        ),
        200
    );
    let header = format!("X-CSRF-Token: {token}");
    assert_eq!(post(&[&cookie, &header], ""), 200);
    let other = ask(&server, "GET /form/page", &[]);
    let others_token = form_token(&other);
    for (what, headers, token) in [
        ("no token", vec![cookie.as_str()], ""),
        ("no cookie", vec![], token.as_str()),
        ("somebody else's token", vec![&cookie], &others_token),
        ("a cut token", vec![&cookie], &token[..20]),
        (
            "a cookie of the attacker's own",
            vec!["Cookie: csrf=AAAA"],
            "",
        ),
        (
            "an unsigned cookie",
            vec!["Cookie: csrf=AAAA.AAAA"],
            "AAAAAAAA",
        ),
        (
            "another site",
            vec![&cookie, "Origin: https://evil.example"],
            &token,
        ),
        (
            "another scheme",
            vec![&cookie, "Origin: https://site.example"],
            &token,
        ),
        ("a sandboxed page", vec![&cookie, "Origin: null"], &token),
        (
            "cross-site without an origin",
            vec![&cookie, "Sec-Fetch-Site: cross-site"],
            &token,
        ),
    ] {
        assert_eq!(post(&headers, token), 403, "{what}");
    }
    assert_eq!(ask(&server, "POST /form/hooks/pay", &[]).status, 200);
    assert_eq!(
        ask(&server, "POST /form/send?_token=x", &[&cookie]).status,
        403
    );
}

#[test]
fn careful_browsers() {
    let server = server();
    let plain = ask(&server, "GET /headers", &[]);
    assert_eq!(plain.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(
        plain.all("x-frame-options").collect::<Vec<_>>(),
        ["DENY"],
        "the handler's own stays"
    );
    assert_eq!(plain.header("strict-transport-security"), None);
    let policy = format!("script-src 'self' 'nonce-{}'", plain.text());
    assert_eq!(
        plain.header("content-security-policy"),
        Some(policy.as_str())
    );
    let proxied = Surus::serve(&fixture("middleware/app.php"))
        .argument("--set")
        .argument("trusted_proxies=127.0.0.1")
        .start();
    let secure = ask(&proxied, "GET /headers", &["X-Forwarded-Proto: https"]);
    assert_eq!(
        secure.header("strict-transport-security"),
        Some("max-age=31536000")
    );
    assert_ne!(secure.text(), plain.text(), "a nonce is used once");
}

#[test]
fn caches() {
    let server = server();
    let first = ask(&server, "GET /etag", &[]);
    let tag = first.header("etag").unwrap().to_owned();
    let again = ask(
        &server,
        "GET /etag",
        &[&format!("If-None-Match: \"x\", {tag}")],
    )
    .expect(304);
    assert_eq!(
        (again.body.len(), again.header("etag")),
        (0, Some(tag.as_str()))
    );
    assert_eq!(
        ask(
            &server,
            "GET /etag?text=b",
            &[&format!("If-None-Match: {tag}")]
        )
        .status,
        200
    );
    for (what, value) in [
        ("plain", "public, max-age=60"),
        ("own", "max-age=1"),
        ("cookie", "no-store"),
        ("error", "no-store"),
    ] {
        let answer = ask(&server, &format!("GET /cache/{what}"), &[]);
        assert_eq!(answer.header("cache-control"), Some(value), "{what}");
    }
}
