//! Two objects of PDO on one persistent connection that the server ends: the one that is left is freed once.

use surus_tests::http::Request;
use surus_tests::mariadb::MariaDb;
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;

const SCRIPT: &str = "<?php
    $open = fn () => new PDO('mysql:host=127.0.0.1;port=PORT', 'USER', 'PASSWORD', [PDO::ATTR_PERSISTENT => true]);
    $one = $open();
    $two = $open();
    $id = fn (PDO $db) => $db->query('SELECT CONNECTION_ID()')->fetchColumn();
    $first = $id($one);
    $same = $first === $id($two);
    try {
        $one->exec(\"KILL $first\");
    } catch (PDOException) {
    }
    $one = null;
    $two = $open();
    $three = $open();
    $three = null;
    echo json_encode([$same, $id($two) !== $first]);";

#[test]
fn a_dead_connection_of_two_objects_is_freed_once() {
    let folder = TempDir::new("twice");
    let script = SCRIPT
        .replace("PORT", &MariaDb::shared().port().to_string())
        .replace("USER", MariaDb::USER)
        .replace("PASSWORD", MariaDb::PASSWORD);
    folder.file("index.php", &script);
    for mode in [Mode::Classic, Mode::Process] {
        let server = Surus::serve(folder.path()).mode(mode).workers(1).start();
        let workers = server.workers();
        for _ in 0..5 {
            let answer = Request::get("/").send(server.address()).expect(200);
            assert_eq!(answer.text(), "[true,true]", "{}", server.log());
        }
        assert_eq!(server.workers(), workers, "{}", server.log());
    }
}
