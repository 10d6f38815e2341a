//! Overlapping requests share nothing: each makes every piece of PHP's state its own, is parked, and finds it as it
//! left it; a request that only looks finds the defaults, during that and afterwards.
#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{json, Value};
use surus_tests::fixture;
use surus_tests::http::{encode, Part, Request};
use surus_tests::parallel::together;
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;

/// A request with this number, which its query, header, cookie, form and file all carry. It sets the state and
/// is parked for `wait`, or only looks if that is zero.
fn ask(address: SocketAddr, store: &TempDir, number: usize, wait: Duration) -> Value {
    let store = encode(&store.path().display().to_string());
    let text = number.to_string();
    let content = format!("content of {number}");
    Request::post(&format!(
        "/?id={number}&usleep={}&store={store}",
        wait.as_micros()
    ))
    .header("X-Number", &text)
    .header("Cookie", &format!("number=cookie{number}"))
    .multipart(&[
        Part::field("field", &text),
        Part::file("file", "own.txt", "text/plain", content.as_bytes()),
    ])
    .send(address)
    .expect(200)
    .json()
}

fn check(mode: Mode) {
    const REQUESTS: usize = 12;
    const LOOKS: usize = 6;
    const WAIT: Duration = Duration::from_millis(400);
    let script = mode.script(&fixture("isolation"));
    let processes = format!("[app.app]\nprocesses = {}\n", REQUESTS + LOOKS);
    let options = Surus::serve(&script).mode(mode);
    let server = match mode {
        Mode::Classic | Mode::Coroutine | Mode::Snapshot => options.start(),
        Mode::Process => options.config(&processes).start(),
    };
    let address = server.address();
    let store = TempDir::new("isolation");
    let defaults = ask(address, &store, 0, Duration::ZERO)["before"].clone();

    for _ in 0..3 {
        let (answers, _) = together(REQUESTS + LOOKS, |number| {
            if number < REQUESTS {
                return ask(address, &store, number, WAIT);
            }
            std::thread::sleep(WAIT / 2);
            ask(address, &store, number, Duration::ZERO)
        });
        let after = ask(address, &store, 99, Duration::ZERO);
        for (number, answer) in answers.iter().chain([&after]).enumerate() {
            let changed = changed(&defaults, &answer["before"]);
            assert!(
                changed.is_empty(),
                "request {number} did not start with the defaults:\n{}",
                changed.join("\n")
            );
            assert_eq!(
                answer["wrong"],
                json!([]),
                "request {number} found another's: {:#}",
                answer["wrong"]
            );
        }
    }
}

/// The rows that are not what they should be.
fn changed(expected: &Value, got: &Value) -> Vec<String> {
    let expected = expected.as_object().expect("rows");
    expected
        .iter()
        .filter(|(name, value)| got[name.as_str()] != **value)
        .map(|(name, value)| format!("{name}: {} for {value}", got[name.as_str()]))
        .collect()
}

#[test]
fn classic() {
    check(Mode::Classic);
}

#[test]
fn coroutine() {
    check(Mode::Coroutine);
}

#[test]
fn process() {
    check(Mode::Process);
}

/// The name that lines in the system's log carry is each request's own.
#[test]
fn the_name_in_the_log() {
    let folder = TempDir::new("syslog");
    let code = "
        openlog(\"name{$_GET['id']}\", LOG_PERROR, LOG_USER);
        usleep(300_000);
        syslog(LOG_DEBUG, \"of {$_GET['id']}\");
        echo 'logged';";
    folder.file("index.php", &format!("<?php {code}"));
    folder.file(
        "nothing.php",
        "<?php usleep(150_000); syslog(LOG_DEBUG, 'of nobody');",
    );
    folder.file(
        "app.php",
        &format!("<?php return function () {{ {code} }};"),
    );
    for mode in Mode::ISOLATES {
        let path = match mode {
            Mode::Classic | Mode::Process => folder.path().to_owned(),
            Mode::Coroutine | Mode::Snapshot => folder.path().join("app.php"),
        };
        let server = Surus::serve(&path).mode(mode).start();
        together(6, |id| {
            std::thread::sleep(Duration::from_millis(20 * id as u64));
            let path = if id == 5 { "/nothing.php" } else { "/" };
            Request::get(&format!("{path}?id={id}")).send(server.address());
        });
        let log = server.log();
        for id in 0..5 {
            assert!(log.contains(&format!("name{id}: of {id}\n")), "{log}");
        }
        assert!(!log.contains("of nobody"), "{log}");
    }
}

/// More fibers than are kept for the next burst: what the others had is free again.
#[test]
fn a_burst_leaves_nothing_behind() {
    const BURST: usize = 400;
    let folder = TempDir::new("burst");
    folder.file(
        "app.php",
        "<?php return function ($request) {
            usleep((int) ($request->query('us') ?? 0));
            return ['memory' => memory_get_usage()];
        };",
    );
    let server = Surus::serve(&folder.path().join("app.php"))
        .workers(1)
        .start();
    let address = server.address();
    let memory = || {
        let answer = Request::get("/?us=0").send(address).expect(200).json();
        answer["memory"].as_u64().expect("bytes")
    };
    let burst = || {
        together(BURST, |_| {
            Request::get("/?us=1000000").send(address).expect(200);
        });
        memory()
    };
    burst();
    let before = burst();
    burst();
    burst();
    let after = burst();
    assert!(after < before + 512 * 1024, "{before} {after} bytes");
}

/// Its handlers use what a JIT that is off has not made: one of them ended the process.
#[test]
fn settings_of_the_jit_stay() {
    let folder = TempDir::new("jit");
    let code = "
        $all = array_filter(ini_get_all('zend opcache'), fn ($name) => str_starts_with($name, 'opcache.jit'), ARRAY_FILTER_USE_KEY);
        foreach ($all as $name => $setting) {
            foreach (['1', '-1', '255', 'abc', ''] as $value) {
                if (ini_set($name, $value) !== false) {
                    echo $name;
                }
            }
        }
        echo count($all) > 5 ? 'tried' : 'no settings';";
    folder.file("index.php", &format!("<?php {code}"));
    let handler = format!("<?php return function () {{ {code} }};");
    folder.file("app.php", &handler);
    for mode in Mode::ISOLATES {
        let server = Surus::serve(&mode.script(folder.path())).mode(mode).start();
        for _ in 0..2 {
            let answer = Request::get("/").send(server.address());
            assert_eq!(answer.expect(200).text(), "tried", "{mode:?}");
        }
    }
}

/// No destructor runs after a fatal error, which would free the stack of a suspended Fiber: two mappings each.
#[test]
fn stacks_of_fibers_end_with_their_request() {
    let folder = TempDir::new("fibers");
    let code = "
        if (isset($_GET['look'])) {
            echo count(file('/proc/self/maps'));
            return;
        }
        for ($number = 0; $number < 5; $number++) {
            $GLOBALS['fibers'][$number] = new Fiber(fn () => Fiber::suspend());
            $GLOBALS['fibers'][$number]->start();
        }
        eval('class Twice {} class Twice {}');";
    folder.file("index.php", &format!("<?php {code}"));
    let handler = format!("<?php return function () {{ {code} }};");
    folder.file("app.php", &handler);
    for mode in [Mode::Classic, Mode::Coroutine, Mode::Snapshot] {
        let server = Surus::serve(&mode.script(folder.path())).mode(mode).start();
        let look = || {
            let answer = Request::get("/?look").send(server.address());
            answer
                .expect(200)
                .text()
                .parse::<usize>()
                .expect("a number")
        };
        let fail = |count: usize| {
            for _ in 0..count {
                Request::get("/").send(server.address()).expect(500);
            }
        };
        fail(5);
        let before = look();
        fail(40);
        let after = look();
        assert!(after < before + 100, "{mode:?}: {before} -> {after}");
    }
}
