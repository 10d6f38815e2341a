//! The time limit of a route, and that of a response which is streamed: its silence, not its length.

use std::thread;
use std::time::{Duration, Instant};

use surus_tests::http::{Connection, Request};
use surus_tests::surus::{Mode, Options, Surus};
use surus_tests::temp::TempDir;

use super::expect_log;

/// Short limits, of which each test needs another one to be long.
const APP: &str = r#"<?php
use Surus\App;
use Surus\Attribute\{Get, Group};
use Surus\Http\Response;

#[Group('/class', timeout: 0.2)]
final class Slow
{
    #[Get('/short')]
    public function short(): string { usleep(900_000); return 'late'; }

    #[Get('/long', timeout: 0)]
    public function long(): string { usleep(900_000); return 'done'; }
}

function items(int $count, int $pause): Generator
{
    try {
        for ($i = 0; $i < $count; $i++) {
            usleep($pause);
            yield "$i;";
        }
    } finally {
        error_log("the stream of $count ends");
    }
}

$app = new App();
$wait = function () { usleep(900_000); return 'done'; };
$app->get('/configured', $wait);
$app->get('/own', $wait)->timeout(30);
$app->get('/none', $wait)->timeout(0);
$app->group('/group', function (App $group) use ($wait) {
    $group->get('/short', $wait);
    $group->get('/long', $wait)->timeout(30);
})->timeout(0.2);
$app->controllers(Slow::class);
$app->get('/items', fn () => Response::stream(items(12, 100_000)));
$app->get('/silent', fn () => Response::stream((function () { yield 'begun;'; sleep(30); yield 'never'; })()));
$app->get('/late', fn () => Response::stream(items(1, 3_000_000)));
$app->get('/events', fn () => Response::events((function () { yield 'one'; usleep(1_500_000); yield 'two'; })()));
$app->get('/quick', fn () => Response::stream((function () {
    for ($i = 0; $i < 64; $i++) { yield str_repeat('x', 1024); }
})()));
$app->get('/waits', fn () => Response::stream((function () { yield 'a'; yield 'b'; sleep(20); yield 'c'; })()));
$app->get('/computes', fn () => Response::stream((function () {
    yield 'a';
    yield 'b';
    for ($end = hrtime(true) + 20_000_000_000; hrtime(true) < $end;) { }
    yield 'c';
})()));
$app->get('/computes-late', function () {
    usleep(20_000);
    return Response::stream((function () {
        yield 'b';
        hash_pbkdf2('sha256', 'a', 'b', 20_000_000);
        yield 'c';
    })());
});
return $app;
"#;

fn application(app: &str, folder: &TempDir) -> Options {
    let script = folder.file("app.php", APP);
    Surus::serve(&script)
        .mode(Mode::Coroutine)
        .config(&format!("[app.app]\n{app}\n"))
}

#[test]
fn a_route_has_its_own_time_limit() {
    let folder = TempDir::new("route-timeout");
    let server = application("request_timeout = \"300ms\"", &folder).start();
    thread::scope(|scope| {
        for (target, status) in [
            ("/configured", 504),
            ("/own", 200),
            ("/none", 200),
            ("/group/long", 200),
            ("/class/long", 200),
        ] {
            let address = server.address();
            scope.spawn(move || Request::get(target).send(address).expect(status));
        }
    });
    // A shorter one than the configured limit.
    let folder = TempDir::new("route-timeout");
    let server = application("request_timeout = \"30s\"", &folder).start();
    for target in ["/group/short", "/class/short"] {
        Request::get(target).send(server.address()).expect(504);
    }
}

#[test]
fn a_time_limit_is_a_number_of_seconds() {
    for wrong in ["-1", "NAN", "INF"] {
        let folder = TempDir::new("route-timeout");
        let text = format!(
            "<?php\n$app = new Surus\\App();\n$app->get('/', fn () => '')\n    ->timeout({wrong});\nreturn $app;\n"
        );
        let error = Surus::serve(&folder.file("app.php", &text))
            .mode(Mode::Coroutine)
            .boot_error();
        assert!(
            error.contains("app.php:4: the timeout of a route"),
            "{wrong}: {error}"
        );
    }
}

#[test]
fn a_stream_lasts_as_long_as_it_has_items() {
    let folder = TempDir::new("long-stream");
    let limits = "request_timeout = \"500ms\"\nstream_timeout = \"10s\"";
    let server = application(limits, &folder).start();
    let response = Request::get("/items").send(server.address()).expect(200);
    assert_eq!(response.text(), "0;1;2;3;4;5;6;7;8;9;10;11;");
    // Nothing was sent yet: this is no stream.
    Request::get("/late").send(server.address()).expect(504);
    expect_log(&server, "the stream of 1 ends");
}

#[test]
fn a_silent_stream_is_cut_off() {
    let folder = TempDir::new("silent-stream");
    let limits = "request_timeout = \"30s\"\nstream_timeout = \"400ms\"";
    let server = application(limits, &folder).start();
    let begin = Instant::now();
    let cut = Request::get("/silent").try_send(server.address());
    assert!(cut.is_err(), "{cut:?}");
    assert!(begin.elapsed() >= Duration::from_millis(400));
    expect_log(&server, "a silent stream timed out");
}

/// Items that follow each other at once are sent together; they do not wait for what comes later.
#[test]
fn items_of_a_stream_are_sent_together_and_at_once() {
    let folder = TempDir::new("items");
    let server = application("request_timeout = \"30s\"", &folder).start();
    let get = |path: &str| {
        let mut connection = Connection::open(server.address()).expect("a connection");
        let request = format!("GET {path} HTTP/1.1\r\nHost: items\r\nConnection: close\r\n\r\n");
        connection.write(request.as_bytes()).expect("a request");
        connection
    };
    let bytes = get("/quick").rest().expect("a response");
    let text = String::from_utf8_lossy(&bytes);
    let (_, body) = text.split_once("\r\n\r\n").expect("a head");
    let lines: Vec<&str> = body.split("\r\n").collect();
    let (chunks, sent) = (lines.len() / 2 - 1, body.matches('x').count());
    assert_eq!(sent, 64 * 1024);
    assert!(chunks < 32, "{chunks} chunks");
    for path in ["/waits", "/computes", "/computes-late"] {
        let (begun, mut connection) = (Instant::now(), get(path));
        let mut text = String::new();
        while !text.ends_with("b\r\n") {
            let some = connection.some().expect("items");
            assert!(!some.is_empty(), "{text}");
            text += &String::from_utf8_lossy(&some);
        }
        assert!(
            begun.elapsed() < Duration::from_secs(15),
            "{path}: {:?}",
            begun.elapsed()
        );
    }
}

/// Comments tell whether the client of an event stream is still there.
#[test]
fn a_silent_event_stream_sends_comments() {
    let folder = TempDir::new("event-stream");
    let limits = "request_timeout = \"300ms\"\nstream_timeout = \"300ms\"\nheartbeat = \"200ms\"";
    let server = application(limits, &folder).start();
    let text = Request::get("/events")
        .send(server.address())
        .expect(200)
        .text();
    let beats = text.matches(":\n\n").count();
    assert!((2..=8).contains(&beats), "{text:?}");
    assert_eq!(text.replace(":\n\n", ""), "data: one\n\ndata: two\n\n");
}

/// Also that of a plain script, in every mode; never in the middle of an event.
#[test]
fn a_scripts_event_stream_sends_comments() {
    let script = "header('Content-Type: text/event-stream');
        $say = function (string $text): void { echo $text; if (ob_get_level()) { ob_flush(); } flush(); };
        $say(\"data: one\\n\\n\"); usleep(900_000);
        $say('data: '); usleep(900_000);
        $say(\"two\\n\\n\");";
    let limits = "request_timeout = \"300ms\"\nheartbeat = \"200ms\"\ncancel_on_disconnect = true";
    for mode in Mode::ALL {
        let folder = TempDir::new("event-stream");
        folder.file("index.php", &format!("<?php {script}"));
        folder.file(
            "app.php",
            &format!("<?php return function () {{ {script} }};"),
        );
        let server = Surus::serve(&mode.script(folder.path()))
            .mode(mode)
            .config(&format!("[app.app]\n{limits}\n"))
            .start();
        let text = Request::get("/").send(server.address()).expect(200).text();
        let beats = text.matches(":\n\n").count();
        assert!((1..=5).contains(&beats), "{mode:?}: {text:?}");
        assert_eq!(
            text.replace(":\n\n", ""),
            "data: one\n\ndata: two\n\n",
            "{mode:?}"
        );
    }
}

/// A client that is gone is found out.
#[test]
fn an_event_stream_ends_with_its_client() {
    let folder = TempDir::new("event-stream");
    let server = application("heartbeat = \"100ms\"", &folder).start();
    let mut connection = Connection::open(server.address()).expect("a connection");
    let request = Request::get("/events").bytes(server.address());
    connection.write(&request).expect("a request");
    connection.some().expect("its beginning");
    server.wait_for_in_flight(1);
    drop(connection);
    server.wait_for_in_flight(0);
}
