//! Snapshot mode: each request finds the isolate as the boot has left it, whatever requests before it have done.
#![forbid(unsafe_code)]

#[path = "snapshot/freed.rs"]
mod freed;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde_json::{json, Value};
use surus_tests::fixture;
use surus_tests::http::{encode, Connection, Part, Request, Response};
use surus_tests::parallel::together;
use surus_tests::postgres::Postgres;
use surus_tests::surus::{Options, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

/// The means to find written pages (`csrc/pages/written.c`).
const MEANS: [&str; 3] = ["scan", "pagemap", "compare"];

fn snapshot(script: &Path) -> Options {
    Surus::serve(script).argument("--mode").argument("snapshot")
}

fn set(options: Options, what: &str) -> Options {
    options.argument("--set").argument(what)
}

/// With one isolate, so that each request comes after all that were before it.
fn one(script: &Path, folder: &TempDir) -> Options {
    let options = set(snapshot(script), "isolates.min=1");
    set(options, "isolates.max=1").env("SNAPSHOT_FOLDER", &folder.path().display().to_string())
}

fn send(server: &Surus, target: &str) -> Response {
    Request::get(target).send(server.address())
}

fn probe(server: &Surus) -> Value {
    let answer = send(server, "/");
    assert_eq!(answer.status, 200, "{}\n{}", answer.text(), server.log());
    answer.json()
}

/// Once the scripts are in OPcache: how much memory they take depends on it.
fn first_probe(server: &Surus) -> Value {
    send(server, "/?act=statics");
    probe(server);
    probe(server)
}

/// The paths at which two values differ.
fn differences(path: &str, first: &Value, second: &Value, found: &mut Vec<String>) {
    match (first, second) {
        (Value::Object(one), Value::Object(other)) => {
            for (key, value) in one {
                differences(
                    &format!("{path}/{key}"),
                    value,
                    other.get(key).unwrap_or(&Value::Null),
                    found,
                );
            }
            for key in other.keys().filter(|key| !one.contains_key(*key)) {
                found.push(format!("{path}/{key} is new"));
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (number, (value, now)) in one.iter().zip(other).enumerate() {
                differences(&format!("{path}/{number}"), value, now, found);
            }
        }
        _ if first != second => found.push(format!("{path}: {second} for {first}")),
        _ => {}
    }
}

fn assert_same(before: &Value, after: &Value, what: &str, server: &Surus) {
    let mut found = Vec::new();
    differences("", before, after, &mut found);
    assert!(
        found.is_empty(),
        "after {what}:\n{}\n{}",
        found.join("\n"),
        server.log()
    );
}

/// The names in the fixture's list.
fn acts() -> Vec<String> {
    let text = std::fs::read_to_string(fixture("snapshot").join("acts.php")).expect("the fixture");
    let lines = text.lines().filter_map(|line| line.strip_prefix("    '"));
    lines
        .filter_map(|line| Some(line.split_once("' => static")?.0.to_owned()))
        .collect()
}

#[test]
fn nothing_of_a_request_is_left() {
    for means in MEANS {
        let folder = TempDir::new("snapshot");
        let server = one(&fixture("snapshot").join("app.php"), &folder)
            .env("SURUS_SNAPSHOT_PAGES", means)
            .start();
        let acts = acts();
        assert!(acts.len() > 15, "{acts:?}");
        let before = first_probe(&server);
        for _ in 0..2 {
            for act in &acts {
                let answer = send(&server, &format!("/?act={act}"));
                assert!(
                    answer.status < 300,
                    "{act}: {}\n{}",
                    answer.text(),
                    server.log()
                );
                assert_same(&before, &probe(&server), act, &server);
            }
        }
        let log = server.log();
        assert!(!log.contains("cannot be put back"), "{log}");
        assert_eq!(server.status()["workers"][0]["isolates_replaced"], 0);
    }
}

#[test]
fn random_sequences_leave_nothing() {
    let folder = TempDir::new("snapshot");
    let server = one(&fixture("snapshot").join("app.php"), &folder).start();
    let before = first_probe(&server);
    for seed in 0..60 {
        send(&server, &format!("/?act=random&seed={seed}"));
        assert_same(&before, &probe(&server), &format!("seed {seed}"), &server);
    }
}

/// All in one isolate: the probe has its id.
#[test]
fn what_ends_badly_leaves_nothing() {
    let folder = TempDir::new("snapshot");
    let server = set(
        one(&fixture("snapshot").join("app.php"), &folder),
        "app.memory_limit=32M",
    )
    .start();
    let bad = |how: &str| send(&server, &format!("/?act=bad&how={how}")).status;
    for how in ["exit", "uncaught"] {
        bad(how);
    }
    let before = first_probe(&server);
    for _ in 0..2 {
        for (how, status) in [
            ("exit", 200),
            ("uncaught", 500),
            ("fatal", 500),
            ("compile", 500),
            ("memory", 500),
            ("time", 500),
            ("late", 500),
            ("fiber", 500),
            ("destructor", 500),
        ] {
            assert_eq!(bad(how), status, "{how}");
            assert_same(&before, &probe(&server), how, &server);
        }
        // The client leaves.
        let mut client = Connection::open(server.address()).expect("a connection");
        client
            .write(b"GET /?act=bad&how=wait HTTP/1.1\r\nHost: a\r\n\r\n")
            .expect("a request");
        server.wait_for_in_flight(1);
        drop(client);
        server.wait_for_in_flight(0);
        assert_same(&before, &probe(&server), "leaving", &server);
    }
}

/// Requests that are cancelled while they wait, and one that has used up its memory after others have made the heap grow.
#[test]
fn what_is_cancelled_leaves_nothing() {
    let folder = TempDir::new("snapshot");
    let options = one(&fixture("snapshot").join("app.php"), &folder);
    let options = set(
        set(options, "request_timeout=500ms"),
        "app.memory_limit=48M",
    );
    let server = options
        .argument("--set")
        .argument("cancel_on_disconnect=true")
        .start();
    let before = first_probe(&server);
    for _ in 0..3 {
        assert_eq!(send(&server, "/?act=bad&how=wait").status, 504);
        assert_same(&before, &probe(&server), "the deadline", &server);
        let mut client = Connection::open(server.address()).expect("a connection");
        client
            .write(b"GET /?act=bad&how=wait HTTP/1.1\r\nHost: a\r\n\r\n")
            .expect("a request");
        // Until it waits; the deadline would do the same to it.
        std::thread::sleep(Duration::from_millis(100));
        drop(client);
        server.wait_for_in_flight(0);
        assert_same(&before, &probe(&server), "leaving", &server);
        for how in ["objects", "memory"] {
            send(&server, &format!("/?act=bad&how={how}"));
            assert_same(&before, &probe(&server), how, &server);
        }
    }
}

#[test]
fn what_cannot_be_put_back_is_refused_by_its_path() {
    let folder = TempDir::new("snapshot");
    let handler = "return static fn () => 'fine';";
    for (name, code, expected) in [
        (
            "static",
            "class Db { static $instance; public $pdo; } Db::$instance = new Db(); Db::$instance->pdo = new PDO('sqlite::memory:');",
            "object of PDO in Db::$instance->pdo, made in ",
        ),
        (
            "global",
            "$services = ['db' => ['main' => new PDO('sqlite::memory:')]];",
            "object of PDO in $services['db']['main'], made in ",
        ),
        (
            "function",
            "function db() { static $db; return $db ??= new PDO('sqlite::memory:'); } db();",
            "object of PDO in static $db of db(), made in ",
        ),
        (
            "method",
            "class Db { static function get() { static $db; return $db ??= new PDO('sqlite::memory:'); } } Db::get();",
            "object of PDO in static $db of Db::get(), made in ",
        ),
        (
            "document",
            "$page = new DOMDocument(); $page->loadXML('<a/>');",
            "object of DOMDocument in $page, made in ",
        ),
        ("curl", "$curl = curl_init();", "object of CurlHandle in $curl, made in "),
        (
            "file",
            "$file = fopen(__FILE__, 'r');",
            "resource of type stream open, of",
        ),
    ] {
        let script = folder.file(&format!("{name}.php"), &format!("<?php {code} {handler}"));
        let error = snapshot(&script).boot_error();
        assert!(error.contains(expected), "{name}: {error}");
        assert!(error.contains("did not boot"), "{name}: {error}");
        let place = format!("/{name}.php:1.");
        let is_object = expected.starts_with("object");
        assert!(!is_object || error.contains(&place), "{name}: {error}");
    }
    let script = folder.file(
        "returned.php",
        "<?php $db = new PDO('sqlite::memory:'); $f = static fn () => (string) $db->query('SELECT 1')->fetchColumn(); unset($db); return $f;",
    );
    let error = snapshot(&script).boot_error();
    assert!(error.contains("object of PDO in $f{Closure}"), "{error}");
}

#[test]
fn a_boot_that_fails_is_a_boot_error() {
    let folder = TempDir::new("snapshot");
    let script = folder.file("throws.php", "<?php throw new LogicException('not today');");
    let error = snapshot(&script).boot_error();
    assert!(error.contains("not today"), "{error}");
    folder.file("index.php", "<?php echo 'served';");
    for (boot, expected) in [
        ("<?php throw new LogicException('not today');", "not today"),
        ("<?php exit;", "did not come to its end"),
        ("<?php undefined_function();", "undefined_function"),
        (
            "<?php $file = fopen(__FILE__, 'r');",
            "resource of type stream",
        ),
    ] {
        let boot = folder.file("boot.php", boot);
        let options = set(
            snapshot(folder.path()),
            &format!("app.boot={}", boot.display()),
        );
        let error = options.boot_error();
        assert!(error.contains(expected), "{error}");
    }
    let boot = folder.file("boot.php", "<?php").display().to_string();
    let path = folder.path().display().to_string();
    for (mode, boot, expected) in [
        (
            "snapshot",
            "/nowhere.php",
            "boot: /nowhere.php is not a file",
        ),
        ("classic", boot.as_str(), "boot is for mode = \"snapshot\""),
    ] {
        let setting = format!("app.boot={boot}");
        let (code, text) = Surus::run(&["check", &path, "--mode", mode, "--set", &setting]);
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn what_the_boot_leaves_to_the_end_is_done_in_each_request() {
    let folder = TempDir::new("snapshot");
    let script = folder.file(
        "app.php",
        "<?php
        class Ends { public static $kept; function __destruct() { echo ' destructed'; } }
        Ends::$kept = new Ends();
        register_shutdown_function(function () { echo ' of the boot'; });
        return function () { register_shutdown_function(function () { echo ' of the request'; }); return 'answered'; };",
    );
    let server = one(&script, &folder).start();
    for _ in 0..3 {
        let answer = send(&server, "/").expect(200).text();
        assert_eq!(answer, "answered of the boot of the request destructed");
    }
}

#[test]
fn requests_that_wait_have_isolates_of_their_own() {
    let folder = TempDir::new("snapshot");
    let script = folder.file(
        "app.php",
        "<?php class Now { public static array $all = []; }
        return function (Surus\\Http\\Request $request) {
            Now::$all[] = $request->query('n');
            usleep(100_000);
            return implode(',', Now::$all);
        };",
    );
    let server = set(snapshot(&script), "isolates.max=30").start();
    for _ in 0..3 {
        together(60, |number| {
            let answer = send(&server, &format!("/?n={number}")).expect(200);
            assert_eq!(answer.text(), number.to_string());
        });
    }
}

#[test]
fn each_request_has_random_values_of_its_own() {
    let folder = TempDir::new("snapshot");
    let script = folder.file(
        "app.php",
        "<?php mt_rand(); lcg_value(); $list = range(1, 50); shuffle($list);
        return fn () => json_encode([mt_rand(), rand(), lcg_value(), uniqid('', true), random_int(0, PHP_INT_MAX), array_rand(range(0, 100_000)),
            str_shuffle('abcdefghijklmnopqrstuvwxyz'), (new Random\\Randomizer())->getBytesFromString ?? bin2hex((new Random\\Randomizer())->getBytes(8))]);",
    );
    let server = set(snapshot(&script), "isolates.max=4").start();
    let (answers, _) = together(200, |_| send(&server, "/").expect(200).json());
    for column in [0, 1, 2, 3, 4, 6, 7] {
        let values: BTreeSet<String> = answers.iter().map(|row| row[column].to_string()).collect();
        assert!(
            values.len() > 195,
            "column {column}: {} of 200",
            values.len()
        );
    }
}

#[test]
fn persistent_connections_outlive_requests() {
    let folder = TempDir::new("snapshot");
    let port = Postgres::shared().port();
    let script = folder.file(
        "app.php",
        &format!(
            "<?php return function (Surus\\Http\\Request $request) {{
                $db = new PDO('pgsql:host=127.0.0.1;port={port};dbname=postgres;user=postgres', null, null, [PDO::ATTR_PERSISTENT => true]);
                $mine = (string) $request->query('n');
                $statement = $db->prepare('SELECT pg_backend_pid(), ?::text, current_setting($$surus.owner$$, true)');
                $statement->execute([$mine]);
                $row = $statement->fetch(PDO::FETCH_NUM);
                $db->exec('SET surus.owner = ' . $db->quote($mine));
                $db->beginTransaction();
                $request->query('wait') && $db->query('SELECT pg_sleep(0.2)');
                $GLOBALS['db'] = $db;
                return json_encode($row);
            }};"
        ),
    );
    let server = one(&script, &folder).start();
    let first = send(&server, "/?n=0").expect(200).json();
    for number in 1..20 {
        if number % 4 == 0 {
            let mut client = Connection::open(server.address()).expect("a connection");
            let request = format!("GET /?n={number}&wait=1 HTTP/1.1\r\nHost: a\r\n\r\n");
            client.write(request.as_bytes()).expect("a request");
            server.wait_for_in_flight(1);
            drop(client);
            server.wait_for_in_flight(0);
        }
        let answer = send(&server, &format!("/?n={number}")).expect(200).json();
        assert_eq!(answer[1], number.to_string());
        assert!(answer[2].is_null() || answer[2] == "", "{answer}");
        if number < 4 {
            assert_eq!(answer[0], first[0], "another connection");
        }
    }
}

#[test]
fn a_front_controller_runs_after_its_boot() {
    let folder = TempDir::new("snapshot");
    let boot = folder.file(
        "boot.php",
        "<?php file_put_contents(__DIR__ . '/boots', 'x', FILE_APPEND); require_once __DIR__ . '/library.php'; $config = ['n' => 1]; echo 'unseen';",
    );
    folder.file(
        "library.php",
        "<?php class Library { public static int $n = 0; }",
    );
    folder.file("style.css", "p {}");
    folder.file(
        "index.php",
        "<?php require_once __DIR__ . '/library.php';
        function here() { global $config; return ++$config['n']; }
        Library::$n++;
        if (isset($_GET['throw'])) { throw new Exception('of the page'); }
        header('X-N: ' . Library::$n);
        setcookie('c', 'd');
        echo here(), ' ', $_GET['q'] ?? '-', ' ', $_SERVER['SCRIPT_NAME'], ' ', $_POST['p'] ?? '-', ' ', count(debug_backtrace());",
    );
    let options = set(
        one(folder.path(), &folder),
        &format!("app.boot={}", boot.display()),
    );
    let server = options.start();
    for number in 0..5 {
        let answer = send(&server, &format!("/any/path?q={number}")).expect(200);
        assert_eq!(answer.text(), format!("2 {number} /index.php - 0"));
        assert_eq!(answer.header("x-n"), Some("1"));
        let form = Request::post("/").form(&[("p", "posted")]);
        assert_eq!(
            form.send(server.address()).expect(200).text(),
            "2 - /index.php posted 0"
        );
        send(&server, "/?throw").expect(500);
    }
    assert_eq!(send(&server, "/style.css").expect(200).text(), "p {}");
    // Scripts that are called by their names, in their folders.
    folder.folder("admin");
    folder.file("admin/near.php", "<?php $near = 'near';");
    folder.file(
        "admin/tool.php",
        "<?php require 'near.php'; Library::$n++; echo Library::$n, $near, basename(getcwd()), ' ', $_SERVER['SCRIPT_NAME'], ' ', $_SERVER['PATH_INFO'] ?? '';",
    );
    for _ in 0..3 {
        let answer = send(&server, "/admin/tool.php/more").expect(200);
        assert_eq!(answer.text(), "1nearadmin /admin/tool.php /more");
        send(&server, "/missing.php").expect(404);
        assert_eq!(
            send(&server, "/?q=a").expect(200).text(),
            "2 a /index.php - 0"
        );
    }
    let boots = std::fs::read_to_string(folder.path().join("boots")).expect("booted");
    assert_eq!(boots, "x");
}

#[test]
fn a_reload_makes_a_new_snapshot() {
    let folder = TempDir::new("snapshot");
    let app = |text: &str| {
        folder.file(
            "app.php",
            &format!(
                "<?php $n = 0; return static function () use (&$n) {{ return '{text}' . ++$n; }};"
            ),
        )
    };
    let script = app("old");
    let server = snapshot(&script).start();
    assert_eq!(send(&server, "/").text(), "old1");
    app("new");
    assert_eq!(send(&server, "/").text(), "old1");
    let (code, text) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{text}");
    wait_for("the new version does not serve", || {
        send(&server, "/").text() == "new1"
    });
    folder.file(
        "app.php",
        "<?php $file = fopen(__FILE__, 'r'); return static fn () => 'never';",
    );
    let (code, text) = server.command(&["reload"]);
    assert_ne!(code, Some(0), "{text}");
    assert!(
        text.contains("resource of type stream")
            || server.log().contains("resource of type stream"),
        "{text}"
    );
    assert_eq!(send(&server, "/").text(), "new1");
}

#[test]
fn memory_stays_as_it_is() {
    let folder = TempDir::new("snapshot");
    let script = folder.file(
        "app.php",
        "<?php class Kept { public static array $all = []; }
        return function () { Kept::$all[] = str_repeat('x', 200_000); $d = new DOMDocument(); $d->loadXML('<a/>'); Kept::$all[] = $d;
            Kept::$all[] = fopen('php://memory', 'w'); return 'x'; };",
    );
    let server = one(&script, &folder).start();
    let rss = || {
        server.status()["workers"][0]["rss_bytes"]
            .as_u64()
            .expect("bytes")
    };
    let visit = |count: usize| {
        let mut client = Connection::open(server.address()).expect("a connection");
        for _ in 0..count {
            client
                .write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                .expect("a request");
            assert_eq!(client.response("GET").expect("an answer").status, 200);
        }
    };
    visit(500);
    let before = rss();
    visit(4_000);
    let after = rss();
    assert!(after < before + (3 << 20), "{before} -> {after}");
}

/// The rows of the isolation table, overlapping and one after the other.
#[test]
fn the_table_of_isolation() {
    let store = TempDir::new("snapshot");
    let script = fixture("isolation").join("app.php");
    let server = set(snapshot(&script), "isolates.max=20").start();
    let ask = |number: usize, wait: Duration| {
        let text = number.to_string();
        let content = format!("content of {number}");
        let folder = encode(&store.path().display().to_string());
        Request::post(&format!(
            "/?id={number}&usleep={}&store={folder}",
            wait.as_micros()
        ))
        .header("X-Number", &text)
        .header("Cookie", &format!("number=cookie{number}"))
        .multipart(&[
            Part::field("field", &text),
            Part::file("file", "own.txt", "text/plain", content.as_bytes()),
        ])
        .send(server.address())
        .expect(200)
        .json()
    };
    let defaults = ask(0, Duration::ZERO)["before"].clone();
    for _ in 0..2 {
        let (answers, _) = together(12, |number| ask(number, Duration::from_millis(200)));
        let after = ask(99, Duration::ZERO);
        for answer in answers.iter().chain([&after]) {
            let mut found = Vec::new();
            differences("", &defaults, &answer["before"], &mut found);
            assert!(found.is_empty(), "{}", found.join("\n"));
            assert_eq!(answer["wrong"], json!([]));
        }
    }
}

#[test]
fn requests_of_the_boot_are_kept() {
    let folder = TempDir::new("snapshot");
    let script = folder.file(
        "app.php",
        "<?php
        class Made { public static array $by = []; }
        $app = new Surus\\App();
        $app->get('/', function () { Made::$by[] = 'start'; return implode(',', Made::$by); });
        $app->get('/other', function (Surus\\Http\\Request $r) { Made::$by[] = 'other' . $r->query('q'); return implode(',', Made::$by); });
        $app->get('/stream', fn () => Surus\\Http\\Response::stream((function () { for ($i = 0; $i < 2000; $i++) { yield str_repeat('x', 1000); } })()));
        $app->get('/fails', fn () => throw new LogicException('not today'));
        $app->get('/keeps', function () { Made::$by[] = new PDO('sqlite::memory:'); return ''; });
        return $app;",
    );
    let options = one(&script, &folder);
    let server = set(options, "app.warm_up=[\"/\", \"/other?q=1\", \"/stream\"]").start();
    for _ in 0..3 {
        assert_eq!(send(&server, "/").expect(200).text(), "start,other1,start");
    }
    for (path, expected) in [
        (
            "/fails",
            "warm_up: /fails: it is answered with 500 Internal Server Error",
        ),
        ("/nowhere", "warm_up: /nowhere: no route takes it"),
        ("/keeps", "object of PDO in Made::$by[0]"),
    ] {
        let options = set(snapshot(&script), &format!("app.warm_up=[\"{path}\"]"));
        let error = options.boot_error();
        assert!(error.contains(expected), "{error}");
    }
    // A script that loops does what it does between two requests.
    let script = folder.file(
        "loop.php",
        "<?php $served = $between = 0;
        while (Surus\\handle_request(function () use (&$served, &$between) { echo ++$served, ' ', $between; })) { $between++; }",
    );
    let server = set(one(&script, &folder), "app.warm_up=[\"/\", \"/\"]").start();
    for _ in 0..3 {
        assert_eq!(send(&server, "/").expect(200).text(), "3 2");
    }
}
