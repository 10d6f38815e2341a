//! What clients see of exceptions, and developers.

use surus_tests::fixture;
use surus_tests::http::Request;
use surus_tests::surus::Surus;

use super::{ask, expect, server};

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
