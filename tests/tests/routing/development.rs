//! What a developer's browser and a developer's client see of mistakes (`--dev`).

use std::{fs, thread};

use surus_tests::http::{Request, Response};
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

const APP: &str = r#"<?php
use Surus\App;
use Surus\Http\HttpException;
use Surus\Middleware\SecurityHeaders;

$app = new App();
$app->use(new SecurityHeaders());
$app->get('/users/{id:int}', fn (int $id) => $id);
$app->get('/orders', fn () => 'orders');
$app->get('/closed', fn () => throw new HttpException(401));
$app->get('/gone', fn () => throw new HttpException(404, 'No such thing'));
$app->get('/bug', fn () => throw new RuntimeException("a <bug>"));

return $app;
"#;

fn server(app: &str) -> (TempDir, Surus) {
    let folder = TempDir::new("development");
    folder.file("app.php", app);
    let server = Surus::serve(&folder.path().join("app.php")).dev().start();
    (folder, server)
}

fn page(server: &Surus, path: &str) -> Response {
    Request::get(path)
        .header("Accept", "text/html,*/*;q=0.8")
        .send(server.address())
}

fn json(server: &Surus, path: &str) -> serde_json::Value {
    let request = Request::get(path).header("Accept", "application/json");
    request.send(server.address()).json()
}

#[test]
fn the_error_page_keeps_its_style_under_the_policy_of_the_application() {
    let (_folder, server) = server(APP);
    let response = page(&server, "/bug").expect(500);
    let policy = response
        .header("content-security-policy")
        .expect("a policy");
    assert!(policy.contains("style-src 'sha256-"), "{policy}");
    let text = response.text();
    // Without any style the source is still in lines.
    let source = text.split("<pre>").nth(1).expect("the source");
    let source = source.split("</pre>").next().expect("the source");
    assert!(source.lines().count() > 5, "{source}");
    let style = text
        .split("<style>")
        .nth(1)
        .and_then(|it| it.split("</style>").next());
    let wanted = hash(style.expect("a style"));
    assert!(policy.contains(&wanted), "{policy} is not of {wanted}");
    // The application's own pages have its own.
    let own = page(&server, "/orders").expect(200);
    let policy = own.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'self'"), "{policy}");
}

/// As a browser computes it.
fn hash(text: &str) -> String {
    let folder = TempDir::new("hash");
    folder.file("text", text);
    let script = folder.file(
        "hash.php",
        "<?php echo base64_encode(hash_file('sha256', __DIR__ . '/text', true));",
    );
    Surus::run(&["php", script.to_str().expect("a path")]).1
}

#[test]
fn a_404_names_the_nearest_routes() {
    for middleware in ["$app->use(new SecurityHeaders());", ""] {
        let (_folder, server) =
            server(&APP.replace("$app->use(new SecurityHeaders());", middleware));
        let text = page(&server, "/user/7").expect(404).text();
        assert!(text.contains("<h1>404 Not Found</h1>"), "{text}");
        let nearest = text.find("GET /users/{id:int}").expect("the nearest route");
        assert!(
            nearest < text.find("GET /orders").expect("another"),
            "{text}"
        );
        assert!(!text.contains("surus:"), "no source of Surus: {text}");
        let document = json(&server, "/user/7");
        assert_eq!(document["routes"][0], "GET /users/{id:int}");
        assert_eq!(document["status"], 404);
        assert!(document.get("trace").is_none(), "{document}");
    }
    let quiet = TempDir::new("quiet");
    quiet.file("app.php", APP);
    let quiet = Surus::serve(&quiet.path().join("app.php")).start();
    assert!(json(&quiet, "/user/7").get("routes").is_none());
}

#[test]
fn what_a_client_is_told_on_purpose_has_no_trace() {
    let (_folder, server) = server(APP);
    for (path, status, detail) in [
        ("/closed", 401, None),
        ("/gone", 404, Some("No such thing")),
    ] {
        let document = json(&server, path);
        assert_eq!(document["status"], status);
        assert_eq!(document.get("detail").and_then(|it| it.as_str()), detail);
        for member in ["trace", "exception", "routes"] {
            assert!(document.get(member).is_none(), "{document}");
        }
    }
    assert!(page(&server, "/closed")
        .text()
        .contains("<h1>401 Unauthorized</h1>"));
    assert!(page(&server, "/gone")
        .text()
        .contains("<h1>404 Not Found: No such thing</h1>"));
    assert!(json(&server, "/bug")["trace"]
        .as_str()
        .expect("a trace")
        .contains("app.php"));
}

#[test]
fn a_fatal_error_that_is_shown_is_a_500() {
    const CODE: &str = "$all = []; while (true) { $all[] = str_repeat('x', 100000); }";
    let folder = TempDir::new("fatal");
    folder.file("index.php", &format!("<?php echo 'text'; {CODE}"));
    folder.file(
        "app.php",
        &format!(
            "<?php $app = new Surus\\App(); $app->get('/', function () {{ echo 'text'; {CODE} }}); \
             $app->get('/layers', function () {{ {CODE} }})->use(fn ($request, $next) => $next($request)); \
             $app->get('/shutdown', function () {{ register_shutdown_function(function () {{ {CODE} }}); return 'text'; }}); \
             return $app;"
        ),
    );
    for mode in Mode::ALL {
        let server = Surus::serve(&mode.script(folder.path()))
            .mode(mode)
            .dev()
            .argument("--set=php.memory_limit=16M")
            .start();
        let paths: &[&str] = if mode == Mode::Coroutine {
            &["/", "/layers"]
        } else {
            &["/"]
        };
        for path in paths {
            let response = Request::get(path).send(server.address());
            assert_eq!(response.status, 500, "{mode:?} {path}");
            let text = response.text();
            assert!(
                text.contains("Allowed memory size"),
                "{mode:?} {path}: {text}"
            );
        }
    }
}

#[test]
fn code_that_does_not_boot_is_shown_with_its_source_and_as_json() {
    for place in ["", "processes = 1"] {
        let folder = TempDir::new("unbootable");
        let app = folder.file("app.php", "<?php\n\nreturn fn () => <missing>;\n");
        let server = Surus::serve(&app)
            .dev()
            .config(&format!("[app.app]\n{place}\n"))
            .start();
        let response = page(&server, "/").expect(500);
        assert_eq!(
            response.header("content-type"),
            Some("text/html; charset=utf-8")
        );
        let text = response.text();
        let line = "<span class=\"here\">   3  return fn () =&gt; &lt;missing&gt;;</span>";
        assert!(text.contains(line), "{place}: {text}");
        let request = Request::get("/").header("Accept", "application/json");
        let response = request.send(server.address()).expect(500);
        assert_eq!(
            response.header("content-type"),
            Some("application/problem+json")
        );
        let document = response.json();
        assert_eq!(document["line"], 3, "{document}");
        assert_eq!(document["file"].as_str(), app.to_str());
        assert!(document["detail"]
            .as_str()
            .expect("a text")
            .contains("syntax error"));
    }
}

/// Nobody waits for a server to start before he saves the next change.
#[test]
fn a_change_while_it_boots_is_seen() {
    for place in ["", "processes = 1"] {
        let folder = TempDir::new("booting");
        let code = folder.file("code.php", "<?php return 'one';");
        let app = "<?php $code = require __DIR__ . '/code.php'; touch(__DIR__ . '/boots');
            while (!file_exists(__DIR__ . '/go')) { usleep(1000); }
            return fn () => $code;";
        let app = folder.file("app.php", app);
        let settings = format!("[app.app]\n{place}\n");
        let starting = thread::spawn(move || Surus::serve(&app).dev().config(&settings).start());
        let boots = folder.path().join("boots");
        wait_for("it does not boot", || boots.exists());
        fs::write(code, "<?php return 'two';").unwrap();
        folder.file("go", "");
        let server = starting.join().unwrap();
        wait_for("the change is not seen", || {
            page(&server, "/").text() == "two"
        });
    }
}

#[test]
fn the_log_says_what_becomes_of_requests_when_a_change_does_not_boot() {
    let folder = TempDir::new("unbootable-log");
    let app = folder.file("app.php", "<?php return fn () => 'one';");
    let server = Surus::serve(&app).dev().start();
    folder.file("app.php", "<?php return fn () => <missing>;");
    wait_for("the error is not shown", || {
        page(&server, "/").status == 500
    });
    wait_for("it is not logged", || server.log().contains("not reloaded"));
    let log = server.log();
    assert!(
        log.contains("requests are answered with the error"),
        "{log}"
    );
    assert!(!log.contains("the old version keeps running"), "{log}");
}
