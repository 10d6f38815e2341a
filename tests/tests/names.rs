//! Looking up names keeps nobody waiting: the lookups of many requests take about as long as one.
#![forbid(unsafe_code)]

use std::process::Command;
use std::time::Duration;

use surus_tests::fixture;
use surus_tests::http::Request;
use surus_tests::parallel::together;
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;

#[test]
fn lookups_wait_side_by_side() {
    let folder = TempDir::new("names");
    let library = folder.path().join("slow_names.so");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(fixture("hooks/slow_names.c"));
    surus_tests::process::run(compiler);
    let code = "
        $host = $_GET['host'];
        $stream = @stream_socket_client(\"tcp://{$host}:1\", $number, $message, 5);
        echo getmypid(), ' ', $number === SOCKET_ECONNREFUSED ? 'refused' : \"{$number} {$message}\";";
    folder.file("index.php", &format!("<?php {code}"));
    let app = folder.file(
        "app.php",
        &format!("<?php return function (): void {{ {code} }};"),
    );
    for mode in Mode::ALL {
        let path = match mode {
            Mode::Classic => folder.path(),
            Mode::Coroutine => &app,
        };
        let server = Surus::serve(path)
            .mode(mode)
            .env("LD_PRELOAD", &library.display().to_string())
            .start();
        let ask = |host: &str| {
            let request = Request::get(&format!("/?host={host}"));
            request.send(server.address()).expect(200).text()
        };
        let (answers, took) = together(20, |_| ask("localhost"));
        assert!(answers.iter().all(|it| *it == answers[0]), "{answers:?}");
        assert!(answers[0].ends_with(" refused"), "{answers:?}");
        assert!(took >= Duration::from_millis(300), "{took:?}");
        assert!(took < Duration::from_millis(1500), "{mode:?}: {took:?}");
        // An address is no name.
        assert!(ask("127.0.0.1").ends_with(" refused"));
    }
}
