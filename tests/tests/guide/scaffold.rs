//! The project that `surus new` makes, under load.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use surus_tests::http::Request;
use surus_tests::parallel::together;
use surus_tests::surus::{binary, Options, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

use super::surus;

/// A fresh one: its database is not there yet.
fn project() -> (TempDir, PathBuf) {
    let folder = TempDir::new("scaffold");
    let (made, text) = surus(&["new", "notes"], folder.path());
    assert!(made, "{text}");
    let path = folder.path().join("notes");
    (folder, path)
}

/// A visitor with the form: its cookie and its token.
fn visit(server: &Surus) -> (String, String) {
    let page = Request::get("/").send(server.address()).expect(200);
    let cookie = page.header("set-cookie").expect("a cookie");
    let cookie = cookie.split(';').next().expect("its value").to_owned();
    let text = page.text();
    let token = text
        .split("name=\"_token\" value=\"")
        .nth(1)
        .expect("a token");
    (cookie, token.split('"').next().expect("its end").to_owned())
}

fn post(server: &Surus, (cookie, token): &(String, String), text: &str) -> u16 {
    let request = Request::post("/")
        .header("Cookie", cookie)
        .form(&[("_token", token), ("text", text)]);
    request.send(server.address()).status
}

fn stored(server: &Surus) -> Vec<String> {
    let notes = Request::get("/api/notes")
        .send(server.address())
        .expect(200)
        .json();
    let notes = notes.as_array().expect("a list").iter();
    let mut texts: Vec<String> = notes
        .map(|note| note["text"].as_str().expect("a text").to_owned())
        .collect();
    texts.sort();
    texts
}

#[test]
fn posts_at_the_same_time_are_all_stored_in_every_mode() {
    const POSTS: usize = 90;
    type Change = fn(Options) -> Options;
    let changes: [(&str, Change); 5] = [
        ("one worker", |server| server),
        ("four workers", |server| server.workers(4)),
        ("preempted", |server| {
            server.workers(2).argument("--set=preempt_fibers=true")
        }),
        ("processes", |server| {
            server.workers(2).argument("--set=processes=4")
        }),
        ("development", |server| server.workers(2).dev()),
    ];
    for (what, change) in changes {
        let (_folder, path) = project();
        // All workers make the database at once.
        let server = change(Surus::serve(&path)).start();
        let visitor = visit(&server);
        let (statuses, took) = together(POSTS, |i| post(&server, &visitor, &format!("{i:03}")));
        assert_eq!(statuses, vec![303; POSTS], "{what}\n{}", server.log());
        let wanted: Vec<String> = (0..POSTS).map(|i| format!("{i:03}")).collect();
        assert_eq!(stored(&server), wanted, "{what}");
        assert!(took < Duration::from_secs(10), "{what}: {took:?}");
        let log = server.log();
        assert!(!log.contains("ERROR"), "{what}: {log}");
    }
}

#[test]
fn who_waits_for_the_database_keeps_nobody_waiting() {
    const LOCKS: &str =
        "<?php $db = new PDO('sqlite:' . $argv[1]); $db->exec('BEGIN IMMEDIATE'); touch($argv[2]);
        while (file_exists($argv[2])) { usleep(10_000); } $db->exec('COMMIT');";
    let (folder, path) = project();
    let server = Surus::serve(&path).start();
    let visitor = visit(&server);
    let script = folder.file("locks.php", LOCKS);
    let mark = folder.path().join("mark");
    let mut other = Command::new(binary())
        .arg("php")
        .args([&script, &path.join("data/notes.sqlite"), &mark])
        .stdin(Stdio::null())
        .spawn()
        .expect("another process");
    wait_for("it has no lock", || mark.exists());
    std::thread::scope(|scope| {
        let posts: Vec<_> = (0..8)
            .map(|i| {
                let (server, visitor) = (&server, &visitor);
                scope.spawn(move || post(server, visitor, &format!("{i}")))
            })
            .collect();
        server.wait_for_in_flight(8);
        let begun = Instant::now();
        for _ in 0..20 {
            assert!(stored(&server).is_empty());
        }
        assert!(
            begun.elapsed() < Duration::from_secs(2),
            "{:?}",
            begun.elapsed()
        );
        fs::remove_file(&mark).expect("a mark");
        for post in posts {
            assert_eq!(post.join().expect("an answer"), 303);
        }
    });
    assert_eq!(stored(&server).len(), 8);
    assert!(other.wait().expect("its end").success());
}

/// PHP's settings as they are, but for those of these extensions.
fn settings_without(names: &[&str], folder: &Path) -> PathBuf {
    let script = folder.join("scan.php");
    fs::write(&script, "<?php echo php_ini_scanned_files();").expect("a script");
    let (_, files) = surus(&["php", "scan.php"], folder);
    let scanned = folder.join("conf.d");
    fs::create_dir(&scanned).expect("a folder");
    for file in files.split(',').map(str::trim) {
        let name = Path::new(file).file_name().expect("a name");
        let text = fs::read_to_string(file).expect("settings");
        let lines = text
            .lines()
            .filter(|line| !names.iter().any(|it| line.contains(it)));
        let left: Vec<&str> = lines.collect();
        fs::write(scanned.join(name), left.join("\n")).expect("settings");
    }
    scanned
}

#[test]
fn a_missing_sqlite_is_named_with_its_package() {
    let (folder, path) = project();
    let scanned = settings_without(&["sqlite"], folder.path());
    let text = Surus::serve(&path)
        .env("PHP_INI_SCAN_DIR", scanned.to_str().expect("a path"))
        .boot_error();
    let version = Surus::php();
    let package = format!("php{}.{}-sqlite3", version / 10_000, version / 100 % 100);
    assert!(
        text.contains("PHP has no pdo_sqlite") && text.contains(&package),
        "{text}"
    );
    assert!(!text.contains("Stack trace"), "{text}");
}

#[test]
fn a_folder_that_cannot_be_written_to_is_named() {
    let (_folder, path) = project();
    let text = Surus::serve(&path)
        .env("APP_DATABASE", "/proc/nothing/notes.sqlite")
        .boot_error();
    assert!(text.contains("/proc/nothing cannot be made"), "{text}");
}
