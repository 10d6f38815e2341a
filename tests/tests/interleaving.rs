//! What is in the middle of something: two requests go through the same script step by step, so that each finds its own
//! state after the other one has set its; a third looks while both wait, and afterwards. The rows of docs/internals/isolates.md
//! that a table of settings ([`isolation`](isolation.rs)) cannot show. In processes nothing can be shared: what fails
//! there is wrong in the script.
#![forbid(unsafe_code)]

#[path = "interleaving/clients.rs"]
mod clients;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use surus_tests::fixture;
use surus_tests::http::{encode, Part, Request};
use surus_tests::postgres::Postgres;
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;

const PATIENCE: Duration = Duration::from_secs(30);

fn serve(mode: Mode) -> Surus {
    start(mode, &mode.script(&fixture("interleave")))
}

fn start(mode: Mode, script: &Path) -> Surus {
    let port = Postgres::shared().port();
    let place = format!("host=127.0.0.1 port={port} dbname=postgres");
    Surus::serve(script)
        .mode(mode)
        .cancel_on_disconnect()
        .env("LOCPATH", &locales().display().to_string())
        .env("INTERLEAVE_PDO", &format!("pgsql:{place}"))
        .env("INTERLEAVE_PGSQL", &format!("{place} user=postgres"))
        .start()
}

/// One server for all the tests of a mode.
fn server(mode: Mode) -> SocketAddr {
    static SERVERS: [OnceLock<Surus>; 3] = [const { OnceLock::new() }; 3];
    SERVERS[mode as usize].get_or_init(|| serve(mode)).address()
}

/// A coroutine application that changes nothing by itself.
fn serve_plain() -> Surus {
    start(Mode::Coroutine, &fixture("interleave").join("plain.php"))
}

fn plain_server() -> SocketAddr {
    static SERVER: OnceLock<Surus> = OnceLock::new();
    SERVER.get_or_init(serve_plain).address()
}

/// A folder with a locale in which bytes above 127 are letters.
fn locales() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = TempDir::new("locales");
        let made = Command::new("localedef")
            .args(["-i", "de_DE", "-f", "ISO-8859-1"])
            .arg(folder.path().join("de_DE.iso88591"))
            .output()
            .expect("localedef runs");
        assert!(made.status.success(), "{made:?}");
        folder
    });
    folder.path()
}

fn path(name: &str, number: usize, folder: &Path) -> String {
    let folder = encode(&folder.display().to_string());
    format!("/?name={name}&number={number}&folder={folder}")
}

/// The request with number 0 only looks.
fn ask(server: SocketAddr, name: &str, number: usize, folder: &Path) -> Value {
    let mut request = Request::post(&path(name, number, folder));
    // For the others an answer would be compressed as well, if the names of the test's folders are long.
    if (name, number) == ("compressed_output", 1) {
        request = request.header("Accept-Encoding", "gzip");
    }
    let request = match (name, number) {
        (_, 0) => request,
        ("uploaded_file", _) => {
            let (file, content) = (format!("own{number}.txt"), format!("content of {number}"));
            let part = Part::file("file", &file, "text/plain", content.as_bytes());
            request.multipart(&[part])
        }
        _ => request.body("text/plain", format!("body of {number}")),
    };
    let response = request.send(server);
    assert_eq!(response.status, 200, "{name} {number}: {}", response.text());
    response.json()
}

/// Waits for the files by which both say that they are at their first meeting, or for the end of one of them.
fn both_have_met(folder: &Path) {
    let end = Instant::now() + PATIENCE;
    let is = |sign: &str| folder.join(sign).exists();
    loop {
        let met = is("1-1") && is("2-1");
        if met || is("1-ended") || is("2-ended") {
            return;
        }
        assert!(Instant::now() < end, "the requests do not meet");
        thread::sleep(Duration::from_millis(1));
    }
}

/// What both answer, and what a third has seen while both were at their first meeting.
fn interleave(server: SocketAddr, name: &str, folder: &TempDir) -> ([Value; 2], Value) {
    let sign = |name: &str| fs::write(folder.path().join(name), "").expect("a sign");
    thread::scope(|scope| {
        let both = [1, 2].map(|number| {
            let (folder, sign) = (folder.path(), &sign);
            scope.spawn(move || {
                // Also when it fails: nobody waits for it any longer.
                let answer = std::panic::catch_unwind(|| ask(server, name, number, folder));
                sign(&format!("{number}-ended"));
                answer.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        });
        both_have_met(folder.path());
        let meanwhile = ask(server, name, 0, folder.path());
        sign("go");
        let answers = both.map(|one| one.join().expect("it is answered"));
        (answers, meanwhile)
    })
}

fn assert_found(name: &str, answers: &[Value; 2]) {
    for (number, answer) in (1..).zip(answers) {
        assert_eq!(
            answer["found"], answer["expected"],
            "{name}, request {number}"
        );
    }
}

fn check(mode: Mode, name: &str) {
    check_on(server(mode), mode, name);
}

fn check_on(server: SocketAddr, mode: Mode, name: &str) {
    let folder = TempDir::new(name);
    let before = ask(server, name, 0, folder.path());
    if mode == Mode::Coroutine && before["shared"] == true {
        return;
    }
    let (answers, meanwhile) = interleave(server, name, &folder);
    assert_found(name, &answers);
    for look in answers.iter().filter_map(|answer| answer.get("look")) {
        assert_eq!(*look, before["look"], "{name}, at the start");
    }
    assert_eq!(meanwhile["look"], before["look"], "{name}, meanwhile");
    let after = ask(server, name, 0, folder.path());
    assert_eq!(after["look"], before["look"], "{name}, afterwards");
}

/// On servers of their own, since the cache is everybody's: who uses it is waited for, then it begins anew, once.
#[test]
fn opcache_reset() {
    const NAME: &str = "opcache_reset";
    for mode in [Mode::Classic, Mode::Process] {
        let server = serve(mode);
        let folder = TempDir::new(NAME);
        let restarts = || ask(server.address(), NAME, 0, folder.path())["look"].clone();
        assert_eq!(restarts(), 0);
        let (answers, meanwhile) = interleave(server.address(), NAME, &folder);
        assert_found(NAME, &answers);
        assert_eq!(meanwhile["look"], 0, "{mode:?}");
        let end = Instant::now() + PATIENCE;
        while restarts() == 0 {
            assert!(Instant::now() < end, "{mode:?}: it does not begin anew");
        }
        assert_eq!(restarts(), 1, "{mode:?}");
    }
}

/// On a server of its own: no other script has made it build superglobals for all requests, which are a change.
#[test]
fn changed_and_back_where_nothing_else_is_changed() {
    let server = serve_plain();
    check_on(server.address(), Mode::Coroutine, "changed_and_back");
}

/// A test for each script, in each mode.
macro_rules! scripts {
    ($($name:ident)*) => {
        mod classic {
            use super::*;
            $(#[test] fn $name() { check(Mode::Classic, stringify!($name)); })*
        }
        mod coroutine {
            use super::*;
            $(#[test] fn $name() { check(Mode::Coroutine, stringify!($name)); })*
        }
        mod plain {
            use super::*;
            $(#[test] fn $name() { check_on(plain_server(), Mode::Coroutine, stringify!($name)); })*
        }
        mod process {
            use super::*;
            $(#[test] fn $name() { check(Mode::Process, stringify!($name)); })*
        }

        #[test]
        fn no_script_is_left_out() {
            let mut found: Vec<_> = fs::read_dir(fixture("interleave"))
                .expect("a folder")
                .map(|entry| entry.expect("an entry").path())
                .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
                .filter(|name| !["index", "app", "plain", "meeting"].contains(&name.as_str()))
                // These have tests of their own.
                .filter(|name| !["connection_status", "flush", "opcache_reset"].contains(&name.as_str()))
                .collect();
            found.sort();
            assert_eq!(found, [$(stringify!($name)),*]);
        }
    };
}

scripts! {
    assert_callback
    body
    changed_and_back
    collector_roots
    compressed_output
    date_errors
    default_connection
    default_context
    default_directory
    detect_order
    directory
    dl
    embedded_caption
    environment
    fiber_after_shutdown
    file_lock
    gmp_random
    header_callback
    include_in_error_handler
    include_path
    intl_error
    locale
    mb_regex
    multisort
    mysqli_error
    opcache_disable
    pattern_callback
    pattern_error
    pattern_limit
    pattern_locale
    persistent_connection
    process_exit
    rewritten_links
    rewritten_tags
    serialize_in_progress
    settings
    shutdown_function
    silence
    soap_call
    sort_callback
    sqlite_lock
    stat_cache
    stream_filter
    ticks
    ticks_left
    time_zone
    tls_errors
    umask
    uploaded_file
    user_wrapper
    xml_entity_loader
    xml_input
    xslt_defaults
}
