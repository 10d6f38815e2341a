//! Laravel in worker mode, recognised by its files: Debian's packages, an application with log-in, Eloquent, validated forms,
//! views and work after the response (`tests/apps/laravel`).
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

/// Of everybody: bcrypt of "secret".
const HASH: &str = "$2y$04$g/ecycP0PmKeoSdB8C6mvemPk84Td.5blPyu7RjLXuJmNbC7oK4lu";

/// The database, with the application's tables and users.
fn database() -> &'static Postgres {
    static TABLES: OnceLock<()> = OnceLock::new();
    let database = Postgres::shared();
    TABLES.get_or_init(|| {
        database.execute(&format!(
            "CREATE TABLE laravel_users (id serial PRIMARY KEY, name varchar(20) NOT NULL, password varchar(100) NOT NULL,
                remember_token varchar(100));
             CREATE TABLE laravel_notes (id serial PRIMARY KEY, user_id int NOT NULL, text varchar(100) NOT NULL);
             CREATE TABLE laravel_visits (id serial PRIMARY KEY, owner varchar(20) NOT NULL, what varchar(100) NOT NULL);
             INSERT INTO laravel_users (name, password) SELECT 'u' || number, '{HASH}' FROM generate_series(0, 19) AS number"
        ));
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
        let token = field_of(&page, "_token");
        let fields = [("name", user), ("password", password), ("_token", &token)];
        let sent = Request::post("/login").form(&fields);
        browser.follow(sent).expect(200).text()
    };
    let page = try_with("a guess");
    assert!(page.contains("These credentials do not match."), "{page}");
    let page = try_with("secret");
    let welcome = format!("<p id=\"user\">{user}</p>");
    assert!(page.contains(&welcome), "{page}");
    browser
}

/// What `/count` finds that does not depend on how many were before it.
fn fresh() -> Value {
    json!({
        "noted": 0, "transaction": 0, "locale": "en en", "bound": false, "greeting": "Welcome", "cached": null, "session": "none",
        "url": "127.0.0.1", "site": "Notes", "env": "Welcome",
    })
}

/// Asks `/count`, and returns how often it has been asked, and the memory.
fn count(server: &Surus) -> (u64, u64) {
    let mut answer = get(server, "/count");
    let fields = answer.as_object_mut().expect("an object");
    let mut number = |name: &str| fields.remove(name).and_then(|value| value.as_u64());
    let numbers = (number("served"), number("memory"));
    assert_eq!(answer, fresh());
    (numbers.0.expect("a number"), numbers.1.expect("bytes"))
}

#[test]
fn it_boots_once_and_each_request_has_a_fresh_application() {
    let app = App::new("laravel");
    let server = one(&app);
    let page = Request::get("/").send(server.address()).expect(200).text();
    assert!(page.contains("<h1>Welcome</h1>"), "{page}");
    for number in 1..4 {
        assert_eq!(count(&server).0, number);
        let changed = Request::get("/change").send(server.address()).expect(200);
        assert!(changed
            .all("set-cookie")
            .any(|cookie| cookie.starts_with("changed=")));
    }
    let page = Request::get("/").send(server.address()).expect(200);
    assert!(!page
        .all("set-cookie")
        .any(|cookie| cookie.starts_with("changed=")));
    // Maintenance, as of `artisan down`.
    let down = "<?php http_response_code(503); echo 'down'; exit;";
    let file = app.file("storage/framework/maintenance.php", down);
    Request::get("/").send(server.address()).expect(503);
    std::fs::remove_file(file).expect("remove a file");
    assert_eq!(count(&server).0, 4);
    app.file(
        ".env",
        "APP_KEY=base64:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\nAPP_GREETING=Later\n",
    );
    let (code, text) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{text}");
    let page = Request::get("/").send(server.address()).expect(200).text();
    assert!(page.contains("<h1>Later</h1>"), "{page}");
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
        "TRUNCATE laravel_notes RESTART IDENTITY; DELETE FROM laravel_visits WHERE owner LIKE 'u%'",
    );
    let app = App::new("laravel");
    let options = options(&app)
        .argument("--mode")
        .argument(mode)
        .argument("--set");
    let server = options.argument("isolates.max=24").start();
    let browsers = together(USERS, |user| log_in(&server, &format!("u{user}"))).0;
    together(200, |number| {
        let user = format!("u{}", number % USERS);
        let mut browser = browsers[number % USERS].clone();
        let answer = browser.get(&format!("/who/w{number}?q=q{number}"));
        assert_eq!(answer.status, 200, "{}\n{}", answer.text(), server.log());
        let query = format!("q{number}");
        let expected = json!({
            "before": user, "after": user, "said": format!("w{number}"), "query": query, "helper": query, "global": query,
            "session": "none", "path": format!("who/w{number}"), "noted": [format!("w{number}")],
        });
        assert_eq!(answer.json(), expected);
    });
    let first = together(USERS, |user| {
        let mut browser = browsers[user].clone();
        for round in 0..2 {
            let text = format!("note {round} of u{user}");
            let page = browser.get("/notes").expect(200).text();
            let token = field_of(&page, "_token");
            let fields = [("text", text.as_str()), ("_token", &token)];
            let page = browser
                .follow(Request::post("/notes").form(&fields))
                .expect(200)
                .text();
            assert!(
                page.contains(&format!("<p class=\"saved\">{text}</p>")),
                "{page}"
            );
        }
        let page = browser.get("/notes").expect(200).text();
        let notes = format!(
            "<ul><li>u{user}: note 0 of u{user}</li><li>u{user}: note 1 of u{user}</li></ul>"
        );
        assert!(page.contains(&notes), "{page}");
        // Of all notes, which ones may it read?
        let reads = |number: &usize| {
            browsers[user]
                .clone()
                .get(&format!("/notes/{number}"))
                .status
                == 200
        };
        (1..=4).filter(reads).count()
    });
    assert_eq!(first.0.iter().sum::<usize>(), 4, "{first:?}");
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
    let app = App::new("laravel");
    let server = one(&app);
    count(&server);
    let left = Request::get("/leave").send(server.address()).expect(200);
    assert_eq!(left.text(), "left");
    count(&server);
    for failing in ["/escape", "/fail", "/cut"] {
        Request::get(failing).send(server.address()).expect(500);
        count(&server);
    }
    // Its transaction is rolled back.
    Request::get("/open").send(server.address()).expect(200);
    assert_eq!(get(&server, "/seen/open"), json!([]));
    // All of it in the isolate that has booted at the start.
    assert_eq!(count(&server).0, 6);
}

#[test]
fn requests_that_wait_for_the_database_wait_side_by_side() {
    const COUNT: usize = 200;
    let app = App::new("laravel");
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
    let app = App::new("laravel");
    let server = one(&app);
    let browser = log_in(&server, "u1");
    let visit = |times: usize| {
        for number in 0..times {
            let mut browser = browser.clone();
            browser.get("/notes").expect(200);
            Request::get("/change").send(server.address()).expect(200);
            let missing = format!("/nowhere/{number}");
            Request::get(&missing).send(server.address()).expect(404);
        }
        count(&server).1
    };
    visit(30);
    let before = visit(30);
    let after = visit(120);
    // The table of objects may have doubled, for garbage that had not been collected yet.
    assert!(
        after < before + 160 * 1024,
        "{before} bytes have become {after}"
    );
}

/// Laravel 11 and later: the application handles requests, and the front controller no more than calls it.
#[test]
fn an_application_that_handles_requests_itself() {
    let app = App::new("laravel");
    let front = "<?php
        use Illuminate\\Http\\Request;
        define('LARAVEL_START', microtime(true));
        require __DIR__ . '/../vendor/autoload.php';
        (require_once __DIR__ . '/../bootstrap/app.php')->handleRequest(Request::capture());";
    app.file("public/index.php", front);
    let bootstrap = "<?php
        use Illuminate\\Contracts\\Http\\Kernel;
        use Illuminate\\Http\\Request;
        final class Modern extends Illuminate\\Foundation\\Application {
            public function handleRequest(Request $request): void {
                $kernel = $this->make(Kernel::class);
                $response = $kernel->handle($request);
                $response->headers->set('X-Handled', 'by the application');
                $response->send();
                $kernel->terminate($request, $response);
            }
        }
        $app = new Modern(dirname(__DIR__));
        $app->singleton(Kernel::class, App\\Http\\Kernel::class);
        $app->singleton(Illuminate\\Contracts\\Debug\\ExceptionHandler::class, App\\Exceptions\\Handler::class);
        return $app;";
    app.file("bootstrap/app.php", bootstrap);
    let server = one(&app);
    for number in 1..4 {
        assert_eq!(count(&server).0, number);
        let page = Request::get("/").send(server.address()).expect(200);
        assert_eq!(page.header("x-handled"), Some("by the application"));
    }
}

#[test]
fn the_cache_store_of_all_workers() {
    let app = App::new("laravel");
    let server = options(&app).workers(2).start();
    let (visits, _) = together(20, |_| get(&server, "/shared"));
    let mut visits: Vec<_> = visits
        .into_iter()
        .map(|answer| {
            assert_eq!(answer["locked"], true, "{answer}");
            answer["visits"].as_u64().expect("a number")
        })
        .collect();
    visits.sort_unstable();
    assert!(visits.into_iter().eq(1..=20));
}
