//! Worker mode: a script boots once in each of several isolates, each of which serves one request at a time.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use surus_tests::http::{Connection, Request, Response};
use surus_tests::parallel::together;
use surus_tests::surus::{Options, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

/// A script that loops. Each isolate has an id, and counts what it does.
const LOOP: &str = r#"<?php
$id = bin2hex(random_bytes(4));
$served = 0;
$between = 0;
$handler = static function () use ($id, &$served, &$between): void {
    $served++;
    $act = ltrim(strtok($_SERVER['REQUEST_URI'], '?'), '/');
    if (is_file(__DIR__ . "/$act.php")) {
        require __DIR__ . "/$act.php";
    }
    echo json_encode(['id' => $id, 'served' => $served, 'between' => $between, 'q' => $_GET['q'] ?? null]);
};
while (Surus\handle_request($handler)) {
    $between++;
    if (is_file(__DIR__ . '/between.php')) {
        require __DIR__ . '/between.php';
    }
}
file_put_contents(__DIR__ . '/ended', "$id\n", FILE_APPEND);
"#;

struct Site {
    folder: TempDir,
    script: PathBuf,
}

impl Site {
    /// A looping script, and what its requests do by their paths.
    fn new(acts: &[(&str, &str)]) -> Self {
        let folder = TempDir::new("worker");
        let script = folder.file("worker.php", LOOP);
        for (name, code) in acts {
            folder.file(&format!("{name}.php"), &format!("<?php {code}"));
        }
        Site { folder, script }
    }

    fn options(&self) -> Options {
        worker(&self.script)
    }

    /// With one isolate.
    fn one(&self) -> Surus {
        set(self.options(), "isolates.max=1").start()
    }

    /// The ids of isolates whose scripts have come to their ends.
    fn ended(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("ended"));
        let text = text.unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn worker(script: &std::path::Path) -> Options {
    Surus::serve(script).argument("--mode").argument("worker")
}

fn set(options: Options, what: &str) -> Options {
    options.argument("--set").argument(what)
}

fn send(server: &Surus, target: &str) -> Response {
    Request::get(target).send(server.address())
}

fn ask(server: &Surus, target: &str) -> Value {
    let answer = send(server, target);
    assert_eq!(answer.status, 200, "{}\n{}", answer.text(), server.log());
    answer.json()
}

fn id(answer: &Value) -> String {
    answer["id"].as_str().expect("an id").to_owned()
}

fn app(server: &Surus, field: &str) -> u64 {
    let status = server.status();
    let workers = &status["workers"][0];
    workers[field]
        .as_u64()
        .unwrap_or_else(|| panic!("no {field}: {status}"))
}

#[test]
fn a_script_loops_or_returns_what_answers() {
    let site = Site::new(&[]);
    let server = site.one();
    for number in 1..5 {
        let answer = ask(&server, &format!("/?q={number}"));
        assert_eq!(answer["served"], number);
        assert_eq!(answer["between"], number - 1);
        assert_eq!(answer["q"], number.to_string());
    }
    let folder = TempDir::new("worker");
    let franken = "<?php $n = 0; $handler = function () use (&$n) { echo ++$n; };
        while (frankenphp_handle_request($handler)) { gc_collect_cycles(); }";
    let closure = "<?php $n = 0; return function (Surus\\Http\\Request $request) use (&$n) { return (string) ++$n; };";
    let app = "<?php $n = 0; $app = new Surus\\App(); $app->get('/', function () use (&$n) { return (string) ++$n; }); return $app;";
    for (name, code) in [("franken", franken), ("closure", closure), ("app", app)] {
        let script = folder.file(&format!("{name}.php"), code);
        let server = set(worker(&script), "isolates.max=1").start();
        for number in 1..4 {
            let answer = send(&server, "/").expect(200);
            assert_eq!(answer.text(), number.to_string(), "{name}");
        }
    }
}

#[test]
fn what_is_of_a_request_is_fresh() {
    let acts = [
        (
            "change",
            "header('X-Changed: yes'); http_response_code(201); ob_start(); session_id('abcdefghijklmnopqrstuvwx'); session_start();
             $_SESSION['changed'] = true; $_SERVER['CHANGED'] = $_ENV['CHANGED'] = $_GET['changed'] = $_POST['changed'] = 'yes';
             ini_set('precision', '3'); ini_set('session.name', 'CHANGED'); date_default_timezone_set('Asia/Tokyo'); setlocale(LC_ALL, 'C.UTF-8'); chdir('/');
             putenv('CHANGED=yes'); set_error_handler(fn () => true); set_exception_handler(fn () => true); mb_internal_encoding('ISO-8859-1');
             register_shutdown_function(function () { echo 'shut'; }); set_time_limit(3); error_reporting(0);",
        ),
        (
            "look",
            "echo json_encode([session_status() === PHP_SESSION_NONE, isset($_SESSION), isset($_SERVER['CHANGED']), isset($_ENV['CHANGED']), $_GET, $_POST,
             ini_get('precision'), session_name(), date_default_timezone_get(), setlocale(LC_CTYPE, 0), getcwd() === __DIR__, getenv('CHANGED'),
             set_error_handler(null) === null, set_exception_handler(null) === null, mb_internal_encoding(), error_reporting() === E_ALL,
             ob_get_level(), http_response_code(), headers_list()]), \"\\n\";",
        ),
    ];
    let site = Site::new(&acts);
    let server = site.one();
    let look = || {
        send(&server, "/look")
            .expect(200)
            .text()
            .lines()
            .next()
            .expect("a line")
            .to_owned()
    };
    let before = look();
    for _ in 0..3 {
        let changed = send(&server, "/change").expect(201);
        assert_eq!(changed.header("x-changed"), Some("yes"));
        assert!(changed.text().ends_with("shut"), "{}", changed.text());
        assert_eq!(look(), before);
    }
    let log = server.log();
    assert!(!log.contains("ERROR"), "{log}");
}

#[test]
fn requests_that_end_early_do_not_end_the_script() {
    let acts = [
        ("throw", "throw new Exception('thrown');"),
        ("exit", "exit('left');"),
        ("timeout", "sleep(60);"),
        ("abort", "http_response_code(503); exit(1);"),
    ];
    let site = Site::new(&acts);
    let server = set(set(site.options(), "isolates.max=1"), "request_timeout=1s").start();
    let first = id(&ask(&server, "/"));
    for (path, status) in [
        ("/throw", 500),
        ("/exit", 200),
        ("/abort", 503),
        ("/timeout", 504),
    ] {
        let answer = send(&server, path);
        assert_eq!(answer.status, status, "{path}\n{}", server.log());
        let answer = ask(&server, "/");
        assert_eq!(id(&answer), first, "{path}");
        assert_eq!(
            answer["between"],
            answer["served"].as_u64().expect("a number") - 1
        );
    }
    assert_eq!(site.ended(), Vec::<String>::new());
}

#[test]
fn an_isolate_with_a_fatal_error_is_replaced() {
    let acts = [
        (
            "fatal",
            "(function (int $n) { eval('class Twice {} class Twice {}'); })(1);",
        ),
        (
            "memory",
            "ini_set('memory_limit', '8M'); str_repeat('x', 1 << 25);",
        ),
    ];
    let site = Site::new(&acts);
    let server = site.one();
    let mut ids = BTreeSet::from([id(&ask(&server, "/"))]);
    for path in ["/fatal", "/memory"] {
        assert_eq!(send(&server, path).status, 500, "{path}");
        let answer = ask(&server, "/");
        assert_eq!(answer["served"], 1, "{path}");
        assert!(ids.insert(id(&answer)), "{path}");
    }
}

#[test]
fn isolates_grow_with_waiting_requests_and_shrink_when_idle() {
    let site = Site::new(&[("wait", "usleep(300_000);")]);
    let options = set(set(site.options(), "isolates.max=8"), "isolates.idle=500ms");
    let server = set(options, "isolates.min=2").start();
    let (answers, time) = together(24, |_| ask(&server, "/wait"));
    let ids: BTreeSet<String> = answers.iter().map(id).collect();
    assert_eq!(ids.len(), 8);
    // Eight at a time.
    assert!(time >= Duration::from_millis(900), "{time:?}");
    wait_for("isolates do not end", || app(&server, "isolates") == 2);
    wait_for("their scripts do not end", || site.ended().len() == 6);
    // They come back.
    let (answers, _) = together(8, |_| ask(&server, "/wait"));
    assert_eq!(answers.iter().map(id).collect::<BTreeSet<_>>().len(), 8);
}

#[test]
fn worn_isolates_are_replaced_without_a_lost_request() {
    let acts = [
        ("keep", "global $kept; $kept[] = str_repeat('x', 200_000);"),
        ("wait", "usleep(5_000);"),
    ];
    let cases = [
        ("isolates.max_requests=20", "/wait"),
        ("isolates.max_memory=4M", "/keep"),
        ("isolates.max_age=300ms", "/wait"),
    ];
    for (limit, path) in cases {
        let site = Site::new(&acts);
        let options = set(set(site.options(), limit), "isolates.max=3");
        let server = options.start();
        let begun = Instant::now();
        let mut ids = BTreeSet::new();
        while ids.len() < 8 && begun.elapsed() < Duration::from_secs(20) {
            let (answers, _) = together(6, |_| ask(&server, path));
            ids.extend(answers.iter().map(id));
        }
        assert!(ids.len() >= 8, "{limit}: {ids:?}");
        assert!(app(&server, "isolates_replaced") >= 4, "{limit}");
        wait_for("the scripts of worn isolates do not end", || {
            site.ended().len() >= 4
        });
    }
}

#[test]
fn a_script_may_end_by_itself() {
    let site = Site::new(&[
        ("between", "if ($between >= 5) { exit; }"),
        ("wait", "usleep(20_000);"),
    ]);
    let server = set(site.options(), "isolates.max=2").start();
    let mut ids = BTreeSet::new();
    for _ in 0..10 {
        let (answers, _) = together(4, |_| ask(&server, "/wait"));
        assert!(answers
            .iter()
            .all(|answer| answer["served"].as_u64() <= Some(5)));
        ids.extend(answers.iter().map(id));
    }
    assert!(ids.len() >= 8, "{ids:?}");
    // Also one that throws between requests.
    site.folder
        .file("between.php", "<?php throw new Exception('between');");
    let (code, text) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{text}");
    let first = ask(&server, "/");
    let second = ask(&server, "/");
    assert_ne!(id(&first), id(&second));
    assert!(server.log().contains("between"), "{}", server.log());
}

#[test]
fn what_a_script_does_between_requests_keeps_no_client_waiting() {
    let site = Site::new(&[("between", "usleep(400_000);")]);
    let server = set(site.options(), "isolates.max=4").start();
    ask(&server, "/");
    let begun = Instant::now();
    for _ in 0..3 {
        ask(&server, "/");
    }
    assert!(
        begun.elapsed() < Duration::from_millis(400),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_reload_boots_new_code_beside_the_old() {
    let site = Site::new(&[("wait", "usleep(600_000);")]);
    let server = site.one();
    let old = id(&ask(&server, "/"));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| ask(&server, "/wait"));
        server.wait_for_in_flight(1);
        let (code, text) = server.command(&["reload"]);
        assert_eq!(code, Some(0), "{text}");
        let new = id(&ask(&server, "/"));
        assert_ne!(new, old);
        let answer = waiting.join().expect("an answer");
        assert_eq!(id(&answer), old);
    });
    wait_for("the old script does not end", || {
        site.ended() == [old.clone()]
    });
    // What does not boot leaves the old code in place.
    let new = id(&ask(&server, "/"));
    site.folder.file(
        "worker.php",
        "<?php throw new Exception('it does not boot');",
    );
    let (code, text) = server.command(&["reload"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("it does not boot"), "{text}");
    assert_eq!(id(&ask(&server, "/")), new);
}

#[test]
fn scripts_end_when_the_server_stops() {
    let site = Site::new(&[("wait", "usleep(100_000);")]);
    let server = site.options().start();
    let (answers, _) = together(3, |_| ask(&server, "/wait"));
    let ids: BTreeSet<String> = answers.iter().map(id).collect();
    let (code, text) = server.command(&["stop"]);
    assert_eq!(code, Some(0), "{text}");
    wait_for("scripts do not end", || {
        site.ended().iter().cloned().collect::<BTreeSet<_>>() == ids
    });
}

#[test]
fn the_function_says_where_it_does_not_work() {
    let folder = TempDir::new("worker");
    let nested = folder.file("nested.php", "<?php
        while (Surus\\handle_request(function () {
            try { Surus\\handle_request(fn () => null); } catch (Error $error) { echo $error->getMessage(); }
        })) {}");
    let server = set(worker(&nested), "isolates.max=1").start();
    for _ in 0..2 {
        let text = send(&server, "/").expect(200).text();
        assert!(text.contains("not within a request"), "{text}");
    }
    let classic = folder.file("index.php", "<?php try { Surus\\handle_request(fn () => null); } catch (Error $error) { echo $error->getMessage(); }");
    let server = Surus::serve(&classic).start();
    let text = send(&server, "/").expect(200).text();
    assert!(text.contains("--mode worker"), "{text}");
    let nothing = folder.file("nothing.php", "<?php echo 'nothing';");
    let error = worker(&nothing).boot_error();
    assert!(error.contains("nothing.php"), "{error}");
}

/// Nobody else would end it: a stream has no time limit.
#[test]
fn a_stream_ends_when_its_client_has_left() {
    let folder = TempDir::new("worker");
    let script = folder.file(
        "app.php",
        "<?php
        function items() {
            try {
                while (true) {
                    yield 'item';
                    usleep(5_000);
                }
            } finally {
                file_put_contents(__DIR__ . '/ended', 'yes');
            }
        }
        $app = new Surus\\App();
        $app->get('/', fn () => 'fine');
        $app->get('/stream', fn () => Surus\\Http\\Response::stream(items()));
        $app->get('/events', fn () => Surus\\Http\\Response::events(items()));
        return $app;",
    );
    for mode in ["worker", "snapshot"] {
        let options = Surus::serve(&script).argument("--mode").argument(mode);
        let server = set(options, "isolates.max=1").start();
        for path in ["/stream", "/events"] {
            let ended = folder.path().join("ended");
            let _ = std::fs::remove_file(&ended);
            let mut client = Connection::open(server.address()).expect("a connection");
            let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
            client.write(request.as_bytes()).expect("a request");
            client.some().expect("an item");
            drop(client);
            wait_for("the stream does not end", || ended.exists());
            assert_eq!(send(&server, "/").expect(200).text(), "fine");
        }
    }
}
