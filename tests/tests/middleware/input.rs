//! Input that is refused, and what is thrown, behind middleware.

use super::*;

fn notes() -> Surus {
    Surus::serve(&fixture("middleware/input.php")).start()
}

fn post(server: &Surus, path: &str, headers: &[&str], body: &str) -> Response {
    send(server, &format!("POST {path}"), headers, |request| {
        request.body("application/json", body)
    })
}

const ORIGIN: &str = "Origin: https://app.example";
const TOKEN: &str = "Authorization: Bearer s3cret";

#[test]
fn middleware_stands_around_input_that_is_refused() {
    let server = notes();
    let allowed = |answer: &Response| {
        assert_eq!(
            answer.header("access-control-allow-origin"),
            Some("https://app.example")
        );
    };
    for body in ["{", "{}", r#"{"text":"x"}"#, r#"{"text":"taken"}"#] {
        let stranger = post(&server, "/api/notes", &[ORIGIN], body).expect(401);
        allowed(&stranger);
        assert_eq!(
            stranger.text(),
            r#"{"title":"Unauthorized","status":401}"#,
            "nothing of the schema"
        );
    }
    let refused = post(&server, "/api/notes", &[ORIGIN, TOKEN], r#"{"text":"x"}"#).expect(422);
    allowed(&refused);
    assert_eq!(
        refused.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(refused.header("ratelimit-remaining"), Some("1"));
    assert_eq!(refused.json()["errors"][0]["rule"], "minLength");
    // Rules in PHP are asked inside, too.
    let taken = post(
        &server,
        "/api/notes",
        &[ORIGIN, TOKEN],
        r#"{"text":"taken"}"#,
    )
    .expect(422);
    allowed(&taken);
    assert_eq!(taken.json()["errors"][0]["rule"], "notTaken");
    // Every one of them has counted.
    let limited = post(&server, "/api/notes", &[ORIGIN, TOKEN], "{}").expect(429);
    allowed(&limited);
    assert_eq!(ask(&server, "GET /seen", &[]).text(), r#"{"seen":7}"#);
}

#[test]
fn each_kind_of_refusal_goes_through_middleware() {
    let server = notes();
    let with = |path: &str, content_type: &str, body: &str| {
        send(
            &server,
            &format!("POST {path}"),
            &[ORIGIN, TOKEN],
            |request| request.body(content_type, body),
        )
    };
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(1024 * 1024));
    for (path, content_type, body, status) in [
        ("/api/notes", "application/json", "{", 400),
        ("/api/notes", "application/json", large.as_str(), 413),
        ("/api/notes", "text/plain", "{}", 415),
        (
            "/api/forms",
            "application/x-www-form-urlencoded",
            "text=x",
            422,
        ),
        (
            "/api/notes",
            "application/json",
            r#"{"text":"long enough"}"#,
            200,
        ),
    ] {
        let answer = with(path, content_type, body);
        assert_eq!(answer.status, status, "{}", answer.text());
        assert!(
            answer.header("access-control-allow-origin").is_some(),
            "{status}"
        );
        let accepted = answer.header("accept-post");
        assert_eq!(accepted.is_some(), status == 415, "{status}");
    }
}

#[test]
fn an_error_handler_answers_input_that_is_refused() {
    let server = Surus::serve(&fixture("middleware/input.php"))
        .env("WITH_HANDLER", "1")
        .start();
    for (path, headers) in [
        ("/plain", [ORIGIN].as_slice()),
        ("/api/notes", &[ORIGIN, TOKEN]),
        ("/errors/input", &[]),
    ] {
        let answer = post(&server, path, headers, "{}").expect(422);
        assert_eq!(answer.text(), "/text", "{path}");
    }
    let malformed = post(&server, "/plain", &[], "{").expect(400);
    assert_eq!(malformed.json()["offset"], 1, "it has left this one alone");
}

#[test]
fn what_is_thrown_inside_is_an_answer_outside() {
    let server = notes();
    for (path, status, thrown, body) in [
        (
            "handler/http",
            409,
            "Surus\\Http\\HttpException",
            r#"{"title":"Conflict","status":409,"detail":"not now"}"#,
        ),
        (
            "handler/bug",
            500,
            "RuntimeException",
            r#"{"title":"Internal Server Error","status":500}"#,
        ),
        (
            "handler/printed",
            410,
            "Surus\\Http\\HttpException",
            r#"{"title":"Gone","status":410}"#,
        ),
        (
            "middleware",
            402,
            "Surus\\Http\\HttpException",
            r#"{"title":"Payment Required","status":402}"#,
        ),
    ] {
        let answer = ask(&server, &format!("GET /errors/{path}"), &[]);
        assert_eq!(
            (
                answer.status,
                answer.header("x-outer"),
                answer.header("x-thrown"),
                answer.text().as_str()
            ),
            (status, Some("yes"), Some(thrown), body),
            "{path}"
        );
        assert!(cookie(&answer, "session").is_some(), "{path}");
    }
    let input = post(&server, "/errors/input", &[], "{}").expect(422);
    assert_eq!(
        input.header("x-thrown"),
        Some("Surus\\Schema\\InvalidInput")
    );
    assert_eq!(server.log().matches("a secret").count(), 1, "reported once");
}
