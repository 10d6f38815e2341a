//! What goes wrong in one request stays there. While twenty neighbours are parked in the same process, a request
//! throws, exits, dies or takes all the memory it may: the neighbours finish, the process lives, the next
//! request is served, and no client learns more than that something failed.
#![forbid(unsafe_code)]

#[path = "containment/many.rs"]
mod many;
#[path = "containment/places.rs"]
mod places;

use std::fs;
use std::thread;
use std::time::Duration;

use surus_tests::fixture;
use surus_tests::http::{Request, Response};
use surus_tests::parallel::together;
use surus_tests::surus::{Mode, Options, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

const NEIGHBOURS: usize = 20;

/// A second is enough, unless somebody waits for what does not happen, or the machine stands still.
const LONG: Duration = Duration::from_secs(25);

/// What no client may see: the scripts' own words, paths, and PHP's reports.
const DETAILS: [&str; 6] = [
    "inner-detail",
    "inner_detail",
    "cases.php",
    "Stack trace",
    "Fatal error",
    "fixtures",
];

/// What the request that goes wrong answers.
enum Answer {
    /// 500 without any detail.
    Fails,
    /// 200 with this body: it left, and left nothing wrong.
    Says(&'static str),
    /// A status of its own choice, without any detail: php-fpm's answer depends on what was sent before.
    Ends,
}

fn server(mode: Mode) -> Options {
    Surus::serve(&mode.script(&fixture("containment"))).mode(mode)
}

fn ask(server: &Surus, case: &str, id: &str) -> Response {
    Request::get(&format!("/?case={case}&id={id}")).send(server.address())
}

fn check(mode: Mode, case: &str, answer: &Answer) {
    let server = server(mode).start();
    let pid = ask(&server, "pid", "").expect(200).text();

    // The last of them is the one that goes wrong, when all the others are parked; three times, since the
    // first failure may be what breaks the next.
    for round in 0..3 {
        let (responses, took) = together(NEIGHBOURS + 1, |number| {
            if number < NEIGHBOURS {
                return ask(&server, "park", &format!("neighbour-{round}-{number}"));
            }
            thread::sleep(Duration::from_millis(200));
            ask(&server, case, "")
        });
        for (number, response) in responses[..NEIGHBOURS].iter().enumerate() {
            let text = response.text();
            assert_eq!(response.status, 200, "{case}: a neighbour got {text}");
            assert_eq!(
                text,
                format!("{pid} neighbour-{round}-{number} whole"),
                "{case}"
            );
        }
        assert!(took < LONG, "{case}: {took:?}");
        check_answer(case, answer, &responses[NEIGHBOURS]);
        let after = ask(&server, "pid", "").expect(200).text();
        assert_eq!(after, pid, "{case}: the process was replaced");
    }
}

fn check_answer(case: &str, answer: &Answer, response: &Response) {
    let text = response.text();
    match answer {
        Answer::Fails => assert_eq!(response.status, 500, "{case}: {text}"),
        Answer::Says(body) => assert_eq!((response.status, text.as_str()), (200, *body), "{case}"),
        Answer::Ends => assert!(
            matches!(response.status, 200 | 500),
            "{case}: {}",
            response.status
        ),
    }
    for detail in DETAILS {
        let shown = response
            .headers
            .iter()
            .any(|(_, value)| value.contains(detail));
        assert!(
            !shown && !text.contains(detail),
            "{case} shows {detail:?}: {text}"
        );
    }
}

/// A test for each case, in each mode.
macro_rules! cases {
    ($($name:ident: $answer:expr;)*) => {
        mod classic {
            use super::*;
            $(#[test] fn $name() { check(Mode::Classic, stringify!($name), &$answer); })*
        }
        mod coroutine {
            use super::*;
            $(#[test] fn $name() { check(Mode::Coroutine, stringify!($name), &$answer); })*
        }
    };
}

cases! {
    exception: Answer::Fails;
    exception_after_output: Answer::Fails;
    error: Answer::Fails;
    type_error: Answer::Fails;
    undefined_function: Answer::Fails;
    abstract_class: Answer::Fails;
    parse_error: Answer::Fails;
    missing_file: Answer::Fails;
    redeclared_function: Answer::Fails;
    redeclared_class: Answer::Fails;
    bad_inheritance: Answer::Fails;
    user_error: Answer::Fails;
    memory: Answer::Fails;
    memory_at_once: Answer::Fails;
    recursion: Answer::Fails;
    throw_in_destructor: Answer::Fails;
    fatal_in_generator: Answer::Fails;
    fatal_in_fiber: Answer::Fails;
    fatal_in_shutdown: Answer::Ends;
    fatal_in_output_callback: Answer::Ends;
    buffer_in_output_callback: Answer::Ends;
    exit_in_output_callback: Answer::Ends;
    exit_in_try: Answer::Says("before;left;");
    exit_in_function: Answer::Says("1;left;");
    exit_in_destructor: Answer::Says("left in the destructor;");
    exit_in_generator: Answer::Says("1;left;");
    exit_in_fiber: Answer::Says("left;");
}

/// All of them at once, among neighbours, in one process.
fn check_all_at_once(mode: Mode) {
    const CASES: [&str; 10] = [
        "exception",
        "memory",
        "exit_in_try",
        "recursion",
        "undefined_function",
        "redeclared_class",
        "exit_in_fiber",
        "fatal_in_shutdown",
        "parse_error",
        "exit_in_output_callback",
    ];
    let server = server(mode).start();
    let pid = ask(&server, "pid", "").expect(200).text();
    let (_, took) = together(100, |number| {
        if number % 2 == 0 {
            let id = number.to_string();
            let text = ask(&server, "park", &id).expect(200).text();
            assert_eq!(text, format!("{pid} {id} whole"));
        } else {
            thread::sleep(Duration::from_millis(10 * number as u64 / 2));
            ask(&server, CASES[number / 2 % CASES.len()], "");
        }
    });
    assert!(took < LONG, "{took:?}");
    assert_eq!(ask(&server, "pid", "").expect(200).text(), pid);
}

#[test]
fn all_at_once_classic() {
    check_all_at_once(Mode::Classic);
}

#[test]
fn all_at_once_coroutine() {
    check_all_at_once(Mode::Coroutine);
}

/// What goes wrong in the middle of a stream: the client can tell that it has not got the whole.
#[test]
fn a_stream_that_fails_looks_so() {
    let folder = TempDir::new("stream");
    let app = format!(
        "<?php require '{}'; \
         return function ($request) {{ yield 'one;'; act($request->query('act')); yield 'two;'; }};",
        fixture("containment/places.php").display()
    );
    let server = Surus::serve(&folder.file("app.php", &app)).start();
    for act in ["throw", "fatal", "compile", "memory", "overflow"] {
        let request = Request::get(&format!("/?act={act}"));
        let answer = request.try_send(server.address());
        assert!(answer.is_err(), "{act}: {answer:?}");
    }
    let answer = Request::get("/?act=exit").send(server.address());
    assert_eq!(answer.expect(200).text(), "one;left;");
}

/// After a fatal error the application boots anew. If it cannot, each request has it try again.
#[test]
fn an_application_that_does_not_boot_again() {
    let folder = TempDir::new("reboot");
    let app = "<?php require __DIR__ . '/part.php'; \
               return fn ($request) => $request->query('fail') ? trigger_error('inner-detail', E_USER_ERROR) : 'fine';";
    let script = folder.file("app.php", app);
    folder.file("part.php", "<?php");
    // What is missing is noticed at once.
    let server = Surus::serve(&script)
        .config("[php]\n'opcache.revalidate_freq' = 0\n")
        .start();
    let get = |target: &str| Request::get(target).send(server.address());
    assert_eq!(get("/").expect(200).text(), "fine");
    let part = folder.path().join("part.php");
    fs::remove_file(&part).expect("part of the application");
    get("/?fail=1").expect(500);
    for _ in 0..3 {
        let response = get("/").expect(503);
        assert!(response.header("retry-after").is_some());
        assert!(!response.text().contains("part.php"), "{}", response.text());
    }
    assert!(server.log().contains("did not boot again"));
    fs::write(part, "<?php").expect("part of the application");
    // One that is on its way may still fail.
    wait_for("it does not boot", || get("/").status == 200);
}

/// What clients do not see is in the log; with `--dev` they see it too.
#[test]
fn details_are_for_the_log_and_for_developers() {
    for mode in Mode::ISOLATES {
        let quiet = server(mode).start();
        ask(&quiet, "exception", "");
        wait_for("it is not logged", || {
            let log = quiet.log();
            log.contains("inner-detail") && log.contains("cases.php")
        });

        let open = server(mode).dev().start();
        let response = ask(&open, "exception", "");
        assert_eq!(response.status, 500, "{mode:?}");
        assert!(
            response.text().contains("inner-detail"),
            "{mode:?}: {}",
            response.text()
        );
    }
}
