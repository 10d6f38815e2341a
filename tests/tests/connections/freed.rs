//! An object that talks to its server when it is freed, while another request uses the connection, is freed when that one
//! has ended. Nothing of it is left when the requests themselves are freed, by a reload.

use surus_tests::http::Request;
use surus_tests::mariadb::MariaDb;
use surus_tests::parallel::together;
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::valgrind::VALGRIND;

const REQUESTS: usize = 4;

#[test]
fn what_is_freed_after_a_request_does_not_outlive_it() {
    let folder = TempDir::new("freed");
    let app = "<?php
        final class Kept
        {
            public static array $connections = [];
            public static array $statements = [];
        }
        $app = new Surus\\App();
        $app->get('/prepare/{n:int}', function (int $n): string {
            $native = [PDO::ATTR_EMULATE_PREPARES => false];
            $connection = new PDO('mysql:host=127.0.0.1;port=PORT', 'root', '', $native);
            Kept::$connections[$n] = $connection;
            Kept::$statements[$n] = $connection->prepare('SELECT 1');
            return 'prepared';
        });
        $app->get('/wait/{n:int}', function (int $n): string {
            return Kept::$connections[$n]->query(\"SELECT 'n$n', sleep(2)\")->fetch()[0];
        });
        $app->get('/drop/{n:int}', function (int $n): string {
            usleep(500_000);
            Kept::$statements[$n] = null;
            return 'dropped';
        });
        return $app;";
    let app = app.replace("PORT", &MariaDb::shared().port().to_string());
    folder.file("app.php", &app);
    let server = Surus::serve(&folder.path().join("app.php"));
    let server = server.mode(Mode::Coroutine).workers(1).under(&VALGRIND);
    let server = server
        .argument("--set")
        .argument("boot_timeout=60s")
        .start();
    let workers = server.workers();
    for _ in 0..2 {
        let ask = |path: &str, number: usize| {
            let request = Request::get(&format!("/{path}/{number}"));
            request.send(server.address()).expect(200).text()
        };
        let (answers, _) = together(REQUESTS, |number| ask("prepare", number));
        assert!(
            answers.iter().all(|answer| answer == "prepared"),
            "{answers:?}"
        );
        let (answers, _) = together(2 * REQUESTS, |number| match number % 2 {
            0 => ask("wait", number / 2) == format!("n{}", number / 2),
            _ => ask("drop", number / 2) == "dropped",
        });
        assert!(answers.iter().all(|right| *right), "{answers:?}");
        let (code, text) = server.command(&["reload"]);
        assert_eq!(code, Some(0), "{text}");
    }
    let log = server.log();
    assert_eq!(server.workers(), workers, "{log}");
    assert!(!log.contains("Invalid "), "{log}");
}
