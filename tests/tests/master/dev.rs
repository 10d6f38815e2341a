//! Development: what is saved is served.

use std::time::{Duration, Instant};

use surus_tests::http::Request;
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;

fn until(server: &Surus, status: u16, text: &str) {
    let begun = Instant::now();
    loop {
        let response = Request::get("/").send(server.address());
        if response.status == status && response.text().contains(text) {
            return;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "no {status} with {text:?} but {} {}\n{}",
            response.status,
            response.text(),
            server.log()
        );
        std::thread::sleep(Duration::from_millis(30));
    }
}

const APP: &str = "<?php require __DIR__ . '/part.php';
    Surus\\watch(__DIR__ . '/settings.ini');
    $name = parse_ini_file(__DIR__ . '/settings.ini')['name'];
    return fn () => part() . $name;";

#[test]
fn a_change_of_a_file_is_a_reload_and_an_error_is_shown_until_it_is_fixed() {
    let folder = TempDir::new("dev");
    folder.file("app.php", APP);
    folder.file("part.php", "<?php function part() { return 'one '; }");
    folder.file("settings.ini", "name = first");
    let server = Surus::serve(&folder.path().join("app.php"))
        .dev()
        .workers(2)
        .start();
    until(&server, 200, "one first");
    folder.file("part.php", "<?php function part() { return 'two '; }");
    until(&server, 200, "two first");
    folder.file("settings.ini", "name = second");
    until(&server, 200, "two second");
    folder.file("part.php", "<?php function part() { return 'three' }");
    until(&server, 500, "syntax error");
    folder.file("part.php", "<?php function part() { return 'four '; }");
    until(&server, 200, "four second");
}

#[test]
fn a_development_server_waits_for_code_that_boots() {
    let folder = TempDir::new("dev-broken");
    folder.file("app.php", APP);
    folder.file("part.php", "<?php <broken>");
    folder.file("settings.ini", "name = first");
    let server = Surus::serve(&folder.path().join("app.php")).dev().start();
    until(&server, 500, "syntax error");
    until(&server, 500, "&lt;");
    folder.file("part.php", "<?php function part() { return 'fixed '; }");
    until(&server, 200, "fixed first");
}
