//! Doctrine and Eloquent, as the guide's page on databases has them: requests that overlap get their own rows.
#![forbid(unsafe_code)]

use std::path::Path;

use surus_tests::http::Request;
use surus_tests::parallel::together;
use surus_tests::postgres::Postgres;
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;

/// The application in the section with this heading.
fn server(heading: &str, folder: &TempDir) -> Surus {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide/11-databases.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, section) = page
        .split_once(&format!("\n## {heading}\n"))
        .expect("the section");
    let (_, code) = section.split_once("```php\n").expect("its code");
    let (code, _) = code.split_once("\n```").expect("its end");
    let script = folder.file("app.php", code);
    Surus::serve(&script)
        .env("PGPORT", &Postgres::shared().port().to_string())
        .start()
}

fn json(server: &Surus, method: &str, target: &str) -> serde_json::Value {
    let answer = Request::new(method, target).send(server.address());
    let text = answer.text();
    assert_eq!(answer.status, 200, "{target}: {text}\n{}", server.log());
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{target}: {text}\n{}", server.log()))
}

/// Makes rows in transactions that overlap, and reads each by the number that its own request was given.
fn rows_are_their_own(server: &Surus, path: &str, field: &str) {
    together(200, |number| {
        let name = format!("n{number}");
        let made = json(server, "POST", &format!("/{path}/{name}"));
        let found = json(server, "GET", &format!("/{path}/{}", made["id"]));
        assert_eq!(found[field], name, "{path}");
    });
    // Connections are used again: there are no more than requests that ran at a time.
    let port = Postgres::shared().port();
    let count = format!(
        "<?php $db = new PDO('pgsql:host=127.0.0.1;port={port};dbname=postgres;user=postgres'); \
        echo $db->query(\"SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'\")->fetchColumn();"
    );
    let folder = TempDir::new("count");
    let script = folder.file("count.php", &count);
    let (_, text) = Surus::run(&["php", script.to_str().expect("a path")]);
    let open: usize = text.trim().parse().unwrap_or_else(|_| panic!("{text}"));
    assert!(open <= 120, "{open} connections");
}

fn a_missing_row_is_not_found(server: &Surus, path: &str) {
    let answer = Request::get(&format!("/{path}/99999999")).send(server.address());
    assert_eq!(answer.expect(404).json()["status"], 404, "{}", server.log());
}

const APP: &str = r#"<?php
    use Surus\App;
    use Surus\Http\HttpException;

    final class Users
    {
        public function __construct(private readonly PDO $db) {}

        public function name(): string
        {
            return (string) $this->db->query("SELECT current_setting('app.user', true)")->fetchColumn();
        }
    }

    $app = new App();
    $app->database('pgsql:host=127.0.0.1;dbname=postgres;user=postgres;port=' . getenv('PGPORT'));
    $app->database('sqlite::memory:', service: 'other');
    $app->get('/me/{name}', function (string $name, PDO $db, Users $users): array {
        $before = $users->name();
        $db->prepare("SELECT set_config('app.user', ?, false), pg_sleep(0.01)")->execute([$name]);
        $db->beginTransaction();
        $db->prepare('INSERT INTO visits VALUES (?)')->execute([$name]);
        $found = $db->prepare('SELECT name, pg_sleep(0.01) FROM visits WHERE name = ?');
        $found->execute([$name]);
        $name = $found->fetchAll()[0]['name'];
        match (strlen($name) % 3) {
            0 => $db->rollBack(),
            1 => throw new HttpException(409, $users->name() . $before),
            2 => null,
        };

        return ['name' => $name, 'user' => $users->name(), 'before' => $before];
    });
    $app->get('/visits', fn (PDO $db) => $db->query('SELECT count(*) AS count FROM visits')->fetch());
    $app->get('/other', fn (Surus\Container $all, Surus\Http\Request $request) => $all->get('other', $request)->query('SELECT 7 AS n')->fetch());

    return $app;
"#;

/// Each request has a connection of its own, of which the next one finds nothing.
#[test]
fn of_an_application() {
    let database = Postgres::shared();
    database.execute("CREATE TABLE visits (name text)");
    let folder = TempDir::new("database");
    let server = Surus::serve(&folder.file("app.php", APP))
        .env("PGPORT", &database.port().to_string())
        .start();
    together(200, |number| {
        let name = format!("{}{number}", "x".repeat(number % 3));
        let answer = Request::get(&format!("/me/{name}")).send(server.address());
        if name.len() % 3 == 1 {
            assert_eq!(answer.expect(409).json()["detail"], name);
        } else {
            let said = answer.expect(200).json();
            let wanted = serde_json::json!({"name": name, "user": name, "before": ""});
            assert_eq!(said, wanted, "{}", server.log());
        }
    });
    assert_eq!(json(&server, "GET", "/visits")["count"], 0);
    assert_eq!(json(&server, "GET", "/other")["n"], 7);
    let pool = &server.status()["workers"][0]["pools"][0];
    assert_eq!((&pool["kind"], &pool["max"]), (&"PDO".into(), &16.into()));
    assert!(pool["open"].as_u64() <= Some(16), "{pool}");
    let wrong = folder.file(
        "wrong.php",
        "<?php $app = new Surus\\App(); $app->database('pqsql:host=x'); return $app;",
    );
    let (_, text) = Surus::run(&["routes", wrong.to_str().expect("a path")]);
    let why = "There is no driver for \"pqsql:\": PHP has drivers for ";
    assert!(text.contains(why), "{text}");
}

#[test]
fn doctrine() {
    let folder = TempDir::new("doctrine");
    let server = server("Doctrine", &folder);
    rows_are_their_own(&server, "notes", "text");
    a_missing_row_is_not_found(&server, "notes");
    together(40, |number| {
        let said = json(&server, "GET", &format!("/echo/e{number}"));
        assert_eq!(said["text"], format!("e{number}"));
    });
}

#[test]
fn eloquent() {
    let folder = TempDir::new("eloquent");
    let server = server("Eloquent", &folder);
    rows_are_their_own(&server, "tasks", "name");
    a_missing_row_is_not_found(&server, "tasks");
}
