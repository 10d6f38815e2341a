//! PSR-3, PSR-11, PSR-14 and PSR-16 with foreign parts, in both directions.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
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
        json!({"value": "1", "class": "Surus\\Cache\\SharedCache"}),
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
fn workers_share_a_cache() {
    let server = Surus::serve(&fixture("psr/shared.php")).workers(3).start();
    let point = json!({"x": 1, "next": {"x": 2, "next": null}});
    let wrote = json(&server, "/set/a/one");
    assert_eq!(wrote[0], true);
    let mut readers = BTreeSet::new();
    let all = Instant::now() + Duration::from_secs(60);
    while readers.len() < 3 {
        let read = json(&server, "/get/a");
        assert_eq!(read[0], json!(["one", point]), "by {}", read[1]);
        readers.insert(read[1].as_i64());
        assert!(Instant::now() < all, "only {readers:?} answer");
    }
    // A reload begins with what was there.
    let (code, text) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(json(&server, "/get/a")[0], json!(["one", point]));

    // What is parked finds what others have written meanwhile.
    thread::scope(|scope| {
        let one = scope.spawn(|| json(&server, "/slow/one/1"));
        let two = scope.spawn(|| json(&server, "/slow/other/2"));
        assert_eq!(two.join().expect("an answer"), json!(["2", "2"]));
        assert_eq!(one.join().expect("an answer")[0], "1");
    });
    assert_eq!(json(&server, "/mine"), json!([true]));
    assert_eq!(json(&server, "/clear"), json!([true, "yes"]));
    assert_eq!(json(&server, "/get/a")[0], json!(null));
}

#[test]
fn a_worker_that_dies_while_it_writes_spoils_nothing() {
    let server = Surus::serve(&fixture("psr/shared.php"))
        .argument("--set")
        .argument("shared_memory=1M")
        .workers(3)
        .start();
    let churn = Request::get("/churn");
    thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| churn.try_send(server.address())))
            .collect();
        for worker in server.workers().into_iter().take(2) {
            kill(Pid::from_raw(worker), Signal::SIGKILL).expect("a worker");
        }
        for client in clients {
            // Those of the two are gone.
            if let Ok(answer) = client.join().expect("a client") {
                assert_eq!(answer.text(), "fine");
            }
        }
    });
    json(&server, "/set/b/after");
    assert_eq!(json(&server, "/get/b")[0][0], "after");
    assert_eq!(ask(&server, "/churn").text(), "fine");
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
            // Symfony checks keys in assertions.
            "-d",
            "zend.assertions=1",
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

/// PSR-18.
#[test]
fn requests_of_an_application_wait_side_by_side() {
    let server = Surus::serve(&fixture("psr").join("client.php"))
        .workers(1)
        .start();
    let post = json!({"content-length": "4", "x-b": "1, 2"});
    let put = json!({"content-length": "3145728"});
    assert_eq!(
        json(&server, "/run/sends"),
        json!([
            ["POST", "/target?a=1", post, 4, "1cb251ec0d568de6a929b520c4aed8d1"],
            {"title": "Not Found", "status": 404},
            ["PUT", "/target", put, 3 << 20, "b8f98051ce0bacedf329ab6d5fffe05d"],
            [302, "Found", ["1", "2"], "gone", "1.1"],
            ["", 5 << 20]
        ])
    );
    assert_eq!(json(&server, "/run/overlap"), json!([10, ["slow"], true]));
    for _ in 0..5 {
        assert_eq!(json(&server, "/run/whose"), json!([true, "none"]));
    }
    let errors = json(&server, "/run/errors");
    let expected = [
        "RequestFailure: A request needs an absolute URI of http or https, and has \"/relative\"",
        "RequestFailure: A request needs an absolute URI of http or https, and has \"ftp://host/\"",
        "RequestFailure: The method \"G\tET\" cannot be sent",
        "NetworkFailure: GET http://127.0.0.1:PORT/: Operation timed out after N ms",
        "NetworkFailure: GET http://127.0.0.1:PORT: Failed to connect to 127.0.0.1 port",
        "NetworkFailure: GET http://127.0.0.1:PORT/big: the body is longer than 1000 bytes",
        "200",
    ];
    assert_eq!(errors.as_array().map(Vec::len), Some(expected.len()));
    for (at, part) in expected.iter().enumerate() {
        let text = errors[at].as_str().unwrap_or_default();
        assert!(text.contains(part), "{text}");
    }
}
