//! Symfony in worker mode, recognised by its front controller: Debian's packages, an application with log-in, forms, ORM,
//! views and work after the response (`tests/apps/symfony`).
#![forbid(unsafe_code)]

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::{json, Value};
use surus_tests::apps::App;
use surus_tests::browser::{field_of, Browser};
use surus_tests::http::Request;
use surus_tests::parallel::together;
use surus_tests::postgres::Postgres;
use surus_tests::surus::{Options, Surus};
use surus_tests::waiting::wait_for;

const USERS: usize = 20;

/// The database, with the application's tables.
fn database() -> &'static Postgres {
    static TABLES: OnceLock<()> = OnceLock::new();
    let database = Postgres::shared();
    TABLES.get_or_init(|| {
        database.execute(
            "CREATE TABLE symfony_notes (id serial PRIMARY KEY, text varchar(100) NOT NULL, owner varchar(20) NOT NULL);
             CREATE TABLE symfony_visits (id serial PRIMARY KEY, owner varchar(20) NOT NULL, what varchar(100) NOT NULL)",
        );
    });
    database
}

/// Nothing is configured but the address of the database.
fn options(app: &App) -> Options {
    Surus::serve(app.root()).env("PGPORT", &database().port().to_string())
}

/// A server with one isolate, so that each request comes after all that were before it.
fn one(app: &App) -> Surus {
    let options = options(app).argument("--set").argument("isolates.min=1");
    options.argument("--set").argument("isolates.max=1").start()
}

fn get(server: &Surus, target: &str) -> Value {
    let answer = Request::get(target).send(server.address());
    assert_eq!(answer.status, 200, "{}\n{}", answer.text(), server.log());
    answer.json()
}

/// Logs in with the form; a wrong password is refused.
fn log_in(server: &Surus, user: &str) -> Browser {
    let mut browser = Browser::new(server.address());
    let mut try_with = |password: &str| {
        let page = browser.get("/login").expect(200).text();
        let token = field_of(&page, "_csrf_token");
        let fields = [
            ("_username", user),
            ("_password", password),
            ("_csrf_token", &token),
        ];
        browser
            .follow(Request::post("/login").form(&fields))
            .expect(200)
            .text()
    };
    let page = try_with("a guess");
    assert!(page.contains("Invalid credentials"), "{page}");
    let page = try_with(&format!("secret of {user}"));
    assert!(
        page.contains(&format!("<p id=\"user\">{user}</p>")),
        "{page}"
    );
    browser
}

#[test]
fn it_boots_once_and_each_request_finds_its_services_reset() {
    let app = App::new("symfony");
    let server = one(&app);
    let page = Request::get("/").send(server.address()).expect(200).text();
    assert!(page.contains("<h1>Welcome</h1>"), "{page}");
    let first = get(&server, "/count")["served"].as_u64().expect("a number");
    for number in 1..5 {
        let answer = get(&server, "/count");
        assert_eq!(answer["served"], first + number);
        assert_eq!(answer["noted"], 1);
        assert_eq!(answer["route"], "/");
        // What .env says is there for later requests too.
        let page = Request::get("/").send(server.address()).expect(200).text();
        assert!(page.contains("<h1>Welcome</h1>"), "{page}");
    }
    app.file(".env", "APP_ENV=prod\nAPP_SECRET=a\nAPP_GREETING=Later\n");
    let (code, text) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{text}");
    let page = Request::get("/").send(server.address()).expect(200).text();
    assert!(page.contains("<h1>Later</h1>"), "{page}");
    assert_eq!(get(&server, "/count")["served"], 1);
    Request::get("/nowhere").send(server.address()).expect(404);
    let log = server.log();
    assert!(!log.contains("ERROR"), "{log}");
}

#[test]
fn overlapping_requests_of_many_users_are_their_own() {
    overlap("worker");
}

/// Each request finds what the boot has left: nothing has to be reset.
#[test]
fn overlapping_requests_on_snapshots_are_their_own() {
    overlap("snapshot");
}

fn overlap(mode: &str) {
    // The same users, one mode after the other.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    database().execute(
        "TRUNCATE symfony_notes RESTART IDENTITY; DELETE FROM symfony_visits WHERE owner LIKE 'u%'",
    );
    let app = App::new("symfony");
    let options = options(&app)
        .argument("--mode")
        .argument(mode)
        .argument("--set");
    let server = options.argument("isolates.max=24").start();
    let browsers = together(USERS, |user| log_in(&server, &format!("u{user}"))).0;
    together(200, |number| {
        let user = format!("u{}", number % USERS);
        let mut browser = browsers[number % USERS].clone();
        let session = browser.cookie("PHPSESSID").expect("a session").to_owned();
        let answer = browser.get(&format!("/who/w{number}?q=q{number}"));
        assert_eq!(answer.status, 200, "{}\n{}", answer.text(), server.log());
        let expected = json!({
            "before": user, "after": user, "said": format!("w{number}"), "query": format!("q{number}"),
            "global": format!("q{number}"), "session": session, "noted": [format!("w{number}")],
        });
        assert_eq!(answer.json(), expected);
    });
    together(USERS, |user| {
        let mut browser = browsers[user].clone();
        for round in 0..2 {
            let text = format!("note {round} of u{user}");
            let page = browser.get("/notes").expect(200).text();
            let token = field_of(&page, "form[_token]");
            let fields = [("form[text]", text.as_str()), ("form[_token]", &token)];
            let page = browser
                .follow(Request::post("/notes").form(&fields))
                .expect(200);
            assert!(page
                .text()
                .contains(&format!("<p class=\"saved\">{text}</p>")));
        }
        let page = browser.get("/notes").expect(200).text();
        for line in page.lines().filter(|line| line.contains("<li>")) {
            let notes = format!(
                "<ul><li>u{user}: note 0 of u{user}</li><li>u{user}: note 1 of u{user}</li></ul>"
            );
            assert_eq!(line, notes);
        }
        assert!(page.contains("<li>"), "{page}");
    });
    // Work after the responses.
    for user in 0..USERS {
        let mut expected: Vec<String> = (0..200)
            .filter(|number| number % USERS == user)
            .map(|number| format!("w{number}"))
            .chain((0..2).map(|round| format!("note note {round} of u{user}")))
            .collect();
        expected.sort();
        wait_for("the work after the response is not done", || {
            let seen = get(&server, &format!("/seen/u{user}"));
            let mut seen: Vec<String> = serde_json::from_value(seen).expect("a list");
            seen.sort();
            seen == expected
        });
    }
    let log = server.log();
    assert!(!log.contains("ERROR"), "{log}");
}

#[test]
fn a_request_that_does_not_come_to_its_end_leaves_nothing() {
    let app = App::new("symfony");
    let server = one(&app);
    let answers = |server: &Surus| {
        let answer = get(server, "/count");
        assert_eq!(answer["noted"], 1, "{answer}");
        assert_eq!(answer["transaction"], false, "{answer}");
        answer["served"].as_u64().expect("a number")
    };
    let before = answers(&server);
    let left = Request::get("/leave").send(server.address()).expect(200);
    assert_eq!(left.text(), "left");
    answers(&server);
    for failing in ["/escape", "/fail", "/cut"] {
        Request::get(failing).send(server.address()).expect(500);
        answers(&server);
    }
    // Its transaction is rolled back.
    Request::get("/open").send(server.address()).expect(200);
    answers(&server);
    assert_eq!(get(&server, "/seen/open"), json!([]));
    // All of it in the isolate that has booted at the start.
    assert!(answers(&server) == before + 6);
}

#[test]
fn requests_that_wait_for_the_database_wait_side_by_side() {
    const COUNT: usize = 200;
    let app = App::new("symfony");
    let options = options(&app).argument("--set");
    let server = options.argument("isolates.max=200").start();
    let visit = |_| {
        let answer = Request::get("/wait").send(server.address());
        assert_eq!(answer.expect(200).text(), "waited");
    };
    // Isolates boot, as many as wait.
    together(COUNT, visit);
    let (_, time) = together(COUNT, visit);
    // One after the other they would take 200 seconds.
    assert!(time < Duration::from_secs(8), "{time:?}");
}

#[test]
fn memory_stays_as_it_is() {
    let app = App::new("symfony");
    let server = one(&app);
    let browser = log_in(&server, "u1");
    let visit = |count: usize| {
        for number in 0..count {
            let mut browser = browser.clone();
            browser.get("/notes").expect(200);
            Request::get("/").send(server.address()).expect(200);
            let missing = format!("/nowhere/{number}");
            Request::get(&missing).send(server.address()).expect(404);
        }
        get(&server, "/count")["memory"].as_u64().expect("bytes")
    };
    visit(40);
    let before = visit(40);
    let after = visit(100);
    // The table of objects may have doubled, for garbage that had not been collected yet.
    assert!(
        after < before + 160 * 1024,
        "{before} bytes have become {after}"
    );
}

/// What else a front controller may return.
#[test]
fn other_applications_of_the_runtime() {
    let app = App::new("symfony");
    let serve = |code: &str| {
        let loader = "require_once dirname(__DIR__) . '/vendor/autoload_runtime.php';";
        app.file("public/index.php", &format!("<?php {loader} {code}"));
        options(&app)
    };
    // A kernel with no bundles, and no container that could be asked.
    let kernel = "
        use Symfony\\Component\\HttpFoundation\\{Request, Response};
        final class Small implements Symfony\\Component\\HttpKernel\\HttpKernelInterface {
            private int $count = 0;
            public function handle(Request $request, int $type = self::MAIN_REQUEST, bool $catch = true): Response {
                return new Response(++$this->count . $request->query->get('q'));
            }
        }
        return fn (array $context) => new Small();";
    let server = serve(kernel)
        .argument("--set")
        .argument("isolates.max=1")
        .start();
    for number in 1..4 {
        let answer = Request::get(&format!("/?q=q{number}")).send(server.address());
        assert_eq!(answer.expect(200).text(), format!("{number}q{number}"));
    }
    let server = serve("return fn () => function () { echo 'q' . $_GET['q']; };").start();
    for number in 1..4 {
        let answer = Request::get(&format!("/?q={number}")).send(server.address());
        assert_eq!(answer.expect(200).text(), format!("q{number}"));
    }
    let eager = "return fn (Symfony\\Component\\HttpFoundation\\Request $request) => new Symfony\\Component\\HttpFoundation\\Response('eager');";
    let error = serve(eager).boot_error();
    assert!(error.contains("--mode classic"), "{error}");
    let server = serve(eager).argument("--mode").argument("classic").start();
    let answer = Request::get("/").send(server.address());
    assert_eq!(answer.expect(200).text(), "eager");
}
