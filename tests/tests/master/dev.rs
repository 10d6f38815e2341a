//! Development: what is saved is served.

use std::time::Duration;

use surus_tests::http::Request;
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;
use surus_tests::waiting::{wait_for, wait_up_to};

fn until(server: &Surus, status: u16, text: &str) {
    wait_up_to(
        Duration::from_secs(30),
        || {
            let response = Request::get("/").send(server.address());
            response.status == status && response.text().contains(text)
        },
        || {
            let response = Request::get("/").send(server.address());
            let (got, said) = (response.status, response.text());
            format!(
                "no {status} with {text:?} but {got} {said}\n{}",
                server.log()
            )
        },
    );
}

const APP: &str = "<?php require __DIR__ . '/part.php';
    // A folder changes when there is a new name in it.
    Surus\\watch(__DIR__ . '/settings.ini', __DIR__ . '/texts');
    $name = parse_ini_file(__DIR__ . '/settings.ini')['name'];
    foreach (glob(__DIR__ . '/texts/*') as $text) { $name .= ' ' . basename($text); }
    return fn () => part() . $name;";

fn server(folder: &TempDir, settings: &str) -> Surus {
    Surus::serve(&folder.path().join("app.php"))
        .dev()
        .workers(2)
        .config(&format!("[app.app]\n{settings}\n"))
        .start()
}

/// In the workers, and in processes of its own.
const PLACES: [&str; 2] = ["", "processes = 2"];

#[test]
fn a_change_of_a_file_is_a_reload_and_an_error_is_shown_until_it_is_fixed() {
    for place in PLACES {
        let folder = TempDir::new("dev");
        folder.file("app.php", APP);
        folder.file("part.php", "<?php function part() { return 'one '; }");
        folder.file("settings.ini", "name = first");
        folder.folder("texts");
        folder.file("texts/a", "");
        let server = server(&folder, place);
        until(&server, 200, "one first a");
        folder.file("part.php", "<?php function part() { return 'two '; }");
        until(&server, 200, "two first a");
        folder.file("settings.ini", "name = second");
        until(&server, 200, "two second a");
        folder.file("part.php", "<?php function part() { return 'three' }");
        until(&server, 500, "syntax error");
        folder.file("part.php", "<?php function part() { return 'four '; }");
        until(&server, 200, "four second a");
        folder.file("texts/b", "");
        until(&server, 200, "four second a b");
    }
}

/// Every worker sees it.
#[test]
fn a_change_is_one_reload() {
    let folder = TempDir::new("dev-once");
    folder.file("app.php", APP);
    folder.file("part.php", "<?php function part() { return 'one '; }");
    folder.file("settings.ini", "name = first");
    folder.folder("texts");
    let server = server(&folder, "");
    until(&server, 200, "one");
    for name in ["two", "three"] {
        // At once: who looks while it is written sees two changes.
        let new = folder.file(
            "new",
            &format!("<?php function part() {{ return '{name} '; }}"),
        );
        std::fs::rename(new, folder.path().join("part.php")).expect("a new part.php");
        until(&server, 200, name);
        // Until the other worker has looked, too.
        std::thread::sleep(Duration::from_millis(500));
    }
    let log = server.log();
    assert_eq!(log.matches("part.php has changed").count(), 2, "{log}");
}

#[test]
fn a_development_server_waits_for_code_that_boots() {
    for place in PLACES {
        let folder = TempDir::new("dev-broken");
        folder.file("app.php", APP);
        folder.file("part.php", "<?php <broken>");
        folder.file("settings.ini", "name = first");
        let server = server(&folder, place);
        until(&server, 500, "syntax error");
        until(&server, 500, "&lt;");
        folder.file("part.php", "<?php function part() { return 'fixed '; }");
        until(&server, 200, "fixed first");
    }
}

/// What a boot displays has no other reader than the log, which has the error already. Requests show theirs.
#[test]
fn an_error_at_boot_is_told_once() {
    const FATAL: &str = "<?php echo 'printed at boot'; trigger_error('a warning', E_USER_WARNING);
        eval('function twice() {} function twice() {}');";
    const THROWN: &str = "<?php throw new RuntimeException('own fault');";
    const WHOLE: &str = "<?php trigger_error('a warning', E_USER_WARNING);
        return function () { echo ini_get('display_errors'); trigger_error('another', E_USER_WARNING); };";
    for place in PLACES {
        let folder = TempDir::new("dev-told");
        folder.file("app.php", FATAL);
        let server = server(&folder, place);
        until(&server, 500, "twice() (previously declared");
        let count = |text: &str| server.log().matches(text).count();
        assert_eq!(count("twice() (previously declared"), 1, "{}", server.log());
        // Each PHP that boots says it in its own name.
        wait_for("it is not said as often", || {
            let log = server.log();
            let count = |text: &str| log.matches(text).count();
            let printed = count("printed at boot");
            printed > 0 && count("a warning") == printed
        });
        folder.file("app.php", THROWN);
        until(&server, 500, "own fault");
        assert_eq!(count("own fault"), 1, "{}", server.log());
        folder.file("app.php", WHOLE);
        until(&server, 200, "1\nWarning: another");
    }
}

#[test]
fn a_site_shows_its_files_as_they_are() {
    for mode in ["classic", "process"] {
        let folder = TempDir::new("dev-site");
        folder.file("index.php", "<?php echo 'one';");
        let server = Surus::serve(&folder.path().join("index.php"))
            .dev()
            .config(&format!("[app.app]\nmode = '{mode}'\n"))
            .start();
        until(&server, 200, "one");
        folder.file("index.php", "<?php echo 'two';");
        until(&server, 200, "two");
        folder.file("index.php", "<?php echo 'three'");
        until(&server, 500, "syntax error");
        folder.file("index.php", "<?php echo 'four';");
        until(&server, 200, "four");
    }
}
