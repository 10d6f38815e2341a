//! PSR-3, PSR-11, PSR-14 and PSR-16 with foreign parts, in both directions.
#![forbid(unsafe_code)]

use std::fs;
use std::process::Command;

use serde_json::{json, Value};
use surus_tests::fixture;
use surus_tests::http::{Request, Response};
use surus_tests::redis::Redis;
use surus_tests::surus::{binary, Surus};

fn ask(server: &Surus, target: &str) -> Response {
    Request::get(target).send(server.address())
}

fn json(server: &Surus, target: &str) -> Value {
    ask(server, target).expect(200).json()
}

/// Lines of the log that are the application's, as JSON.
fn lines(server: &Surus) -> Vec<Value> {
    let log = server.log();
    let lines = log.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .filter(|line: &Value| line["target"] == "app")
        .collect()
}

#[test]
fn lines_of_the_application_are_in_the_servers_log() {
    let server = Surus::serve(&fixture("psr/app.php"))
        .env("SURUS_LOG_FORMAT", "json")
        .start();
    let request = Request::get("/log").header("X-Request-Id", "r-17");
    assert_eq!(request.send(server.address()).text(), "Surus\\Log");
    let lines = lines(&server);
    assert_eq!(lines.len(), 3, "{lines:#?}");
    let hello = &lines[0];
    assert_eq!(
        (
            &hello["level"],
            &hello["channel"],
            &hello["message"],
            &hello["request_id"]
        ),
        (
            &json!("info"),
            &json!("app"),
            &json!("hello Ann\\nforged line"),
            &json!("r-17")
        )
    );
    assert_eq!(
        hello["context"],
        json!({"name": "Ann", "list": [1, 2.5, null, true], "nan": "NAN", "bad": "\u{fffd}", "when": "2024-02-29T12:00:00.000+00:00"})
    );
    let unsent = &lines[1];
    assert_eq!(
        (&unsent["level"], &unsent["channel"]),
        (&json!("warning"), &json!("mail"))
    );
    let exception = &unsent["context"]["exception"];
    assert_eq!(unsent["context"]["to"], "bob");
    assert_eq!(
        (&exception["message"], &exception["code"]),
        (&json!("outer"), &json!(7))
    );
    assert_eq!(exception["previous"]["message"], "inner");
    assert!(exception["at"].as_str().unwrap().contains("app.php:"));
    let endless = &lines[2];
    assert_eq!(endless["level"], "critical");
    assert!(endless.to_string().len() < 70_000);
    assert_eq!(endless["context"]["many"]["…"], "900 more");

    // As text, a line is a line as well.
    let server = Surus::serve(&fixture("psr/app.php"))
        .env("SURUS_LOG", "warn,app=debug")
        .start();
    ask(&server, "/log").expect(200);
    let log = server.log();
    assert!(!log.lines().any(|line| line.starts_with("forged")), "{log}");
    assert!(log.contains("DEBUG app: unseen"), "{log}");
}

#[test]
fn events_reach_listeners_in_order() {
    let server = Surus::serve(&fixture("psr/app.php")).start();
    assert_eq!(
        json(&server, "/events/Ordered"),
        json!(["stock", "any", "late"])
    );
    assert_eq!(
        json(&server, "/events/BigOrder"),
        json!(["stock", "big", "any"])
    );
    assert_eq!(json(&server, "/other-listeners"), json!(["symfony"]));
    assert!(
        server.log().contains("stock of Ordered"),
        "{}",
        server.log()
    );
    let error = Surus::serve(&fixture("psr/app.php"))
        .env("FOREIGN", "both")
        .boot_error();
    assert!(
        error.contains("app.php:") && error.contains("another one is declared"),
        "{error}"
    );
}

#[test]
fn caches_and_containers() {
    let server = Surus::serve(&fixture("psr/app.php")).start();
    json(&server, "/cache/a/1");
    assert_eq!(
        json(&server, "/cache/a"),
        json!({"value": "1", "class": "Surus\\Cache\\MemoryCache"}),
        "requests share it"
    );
    assert_eq!(json(&server, "/remember"), json!([1]));
    assert_eq!(json(&server, "/symfony-over-surus"), json!([42, 42, true]));
    let first = ask(&server, "/session/visits").expect(200);
    let cookie = first.header("set-cookie").expect("a session");
    let again = Request::get("/session/visits")
        .header("Cookie", cookie.split(';').next().expect("a cookie"));
    assert_eq!(again.send(server.address()).json(), json!({"visits": 2}));
    assert_eq!(
        json(&server, "/pimple"),
        json!([
            true,
            false,
            "There is no service no such service: declare one"
        ])
    );
}

#[test]
fn services_of_other_containers() {
    let server = Surus::serve(&fixture("psr/app.php"))
        .env("FOREIGN", "symfony")
        .start();
    assert_eq!(ask(&server, "/greet/Ann").text(), "Hello, Ann!");
    assert_eq!(
        ask(&server, "/events").text(),
        "Symfony\\Component\\EventDispatcher\\EventDispatcher"
    );
    ask(&server, "/throws").expect(500);
    let monolog = fs::read_to_string(server.folder().join("monolog.log")).expect("Monolog's file");
    assert!(
        monolog.contains(r#"shop.INFO: greeted {name} {"name":"Ann"}"#),
        "{monolog}"
    );
    assert!(monolog.contains("shop.ERROR: for the log"), "{monolog}");
    assert!(!server.log().contains("for the log"));

    let server = Surus::serve(&fixture("psr/app.php"))
        .env("FOREIGN", "pimple")
        .start();
    assert_eq!(ask(&server, "/greet/Bob").text(), "Good day, Bob!");
    assert!(server.log().contains("greeted Bob"));
    ask(&server, "/throws").expect(500);
    assert!(server.log().contains("for the log"), "the server's own log");
}

#[test]
fn without_any_package() {
    let server = Surus::serve(&fixture("psr/bare.php")).start();
    assert_eq!(
        json(&server, "/"),
        json!(["Surus\\Log", 1, "default", true, true, true])
    );
}

#[test]
fn the_interfaces_own_tests() {
    let redis = Redis::shared();
    let output = Command::new(binary())
        .args([
            "php",
            "/usr/bin/phpunit",
            "--no-configuration",
            "--do-not-cache-result",
        ])
        .arg(fixture("psr"))
        .env("REDIS_PORT", redis.port().to_string())
        .output()
        .expect("surus runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("OK ("), "{text}");
}
