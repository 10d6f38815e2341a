//! A thousand requests that wait have an isolate each, without any setting; as many as `isolates.memory` has room for.

use std::fs;

use surus_tests::http::Connection;
use surus_tests::surus::{Options, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

/// Waits until there is a file `go`.
const SCRIPT: &str = "<?php
    $wait = function () {
        while (!file_exists(__DIR__ . '/go')) {
            usleep(200_000);
            clearstatcache();
        }
        echo $_GET['token'];
    };
    if (($_ENV['LOOPS'] ?? getenv('LOOPS')) !== 'yes') { $wait(); return; }
    while (Surus\\handle_request($wait));";

fn serve(folder: &TempDir, mode: &str) -> Options {
    let script = folder.file("index.php", SCRIPT);
    let path = if mode == "worker" {
        script.as_path()
    } else {
        folder.path()
    };
    let options = Surus::serve(path).argument("--mode").argument(mode);
    let loops = if mode == "worker" { "yes" } else { "no" };
    options
        .workers(1)
        .argument("--set")
        .argument(format!("env.LOOPS={loops}"))
}

fn open(server: &Surus, count: usize) -> Vec<Connection> {
    let ask = |number| {
        let mut connection = Connection::open(server.address()).expect("a connection");
        let request =
            format!("GET /?token=t{number} HTTP/1.1\r\nHost: many\r\nConnection: close\r\n\r\n");
        connection.write(request.as_bytes()).expect("a request");
        connection
    };
    (0..count).map(ask).collect()
}

fn isolates(server: &Surus) -> u64 {
    let status = server.status();
    let isolates = status["workers"][0]["isolates"].as_u64();
    isolates.unwrap_or_else(|| panic!("{status}"))
}

/// Lets them end: each has its own answer.
fn finish(folder: &TempDir, connections: Vec<Connection>) {
    folder.file("go", "");
    for (number, mut connection) in connections.into_iter().enumerate() {
        let response = connection.response("GET").expect("a response");
        assert_eq!(response.expect(200).text(), format!("t{number}"));
    }
}

#[test]
fn a_thousand_requests_wait() {
    for mode in ["classic", "worker"] {
        let folder = TempDir::new("many");
        let server = serve(&folder, mode).start();
        let connections = open(&server, 1000);
        wait_for(mode, || isolates(&server) == 1000);
        finish(&folder, connections);
    }
}

#[test]
fn requests_wait_for_memory() {
    for mode in ["classic", "worker"] {
        let folder = TempDir::new("many");
        let options = serve(&folder, mode)
            .argument("--set")
            .argument("isolates.memory=64M");
        let server = options.start();
        let connections = open(&server, 300);
        wait_for(mode, || {
            server
                .log()
                .contains("requests wait for memory: isolates.memory")
        });
        let most = isolates(&server);
        assert!((2..150).contains(&most), "{most} isolates in {mode} mode");
        finish(&folder, connections);
    }
}

#[test]
fn a_share_of_the_memory_is_written_as_one() {
    let folder = TempDir::new("many");
    for wrong in ["50", "0%", "120%", "lots"] {
        let setting = format!("isolates.memory={wrong}");
        let site = folder.path().to_str().expect("UTF-8");
        let (code, error) = Surus::run(&["check", site, "--set", &setting]);
        assert_eq!(code, Some(2), "{error}");
        assert!(
            error.contains("isolates.memory") && error.contains("\"1%\" to \"100%\""),
            "{error}"
        );
    }
}

/// What a request takes before it runs code is not the application's memory; what is, says so when it is used up.
#[test]
fn the_requests_of_an_application_share_its_memory_not_their_stacks() {
    let folder = TempDir::new("fibers");
    let script = folder.file(
        "app.php",
        "<?php return function () {
            if (isset($_GET['much'])) { return strlen(str_repeat('x', 64 << 20)); }
            while (!file_exists(__DIR__ . '/go')) { usleep(200_000); clearstatcache(); }
            return $_GET['token'];
        };",
    );
    let options = Surus::serve(&script).workers(1).argument("--set");
    let options = options
        .argument("max_requests_in_flight=4000")
        .argument("--set");
    let server = options.argument("memory_limit=24M").start();
    let connections = open(&server, 1500);
    server.wait_for_in_flight(1500);
    finish(&folder, connections);
    let mut connection = Connection::open(server.address()).expect("a connection");
    let request = "GET /?much=1 HTTP/1.1\r\nHost: many\r\nConnection: close\r\n\r\n";
    connection.write(request.as_bytes()).expect("a request");
    connection.response("GET").expect("a response").expect(500);
    let log = server.log();
    let named = "share this memory: raise memory_limit, or lower max_requests_in_flight";
    assert!(
        log.contains("Allowed memory size of ") && log.contains(named),
        "{log}"
    );
}

/// Bytes that each of `count` waiting requests adds, once `warm` requests were served at the same time.
fn memory_of_each(server: &mut Surus, folder: &TempDir, warm: usize, count: u64) -> u64 {
    folder.file("go", "");
    for mut connection in open(server, warm) {
        connection.response("GET").expect("a response").expect(200);
    }
    fs::remove_file(folder.path().join("go")).expect("the file is there");
    let before = server.process().memory();
    let connections = open(server, count as usize);
    server.wait_for_in_flight(count);
    let each = server.process().memory().saturating_sub(before) / count;
    finish(folder, connections);
    each
}

/// With its connection, in coroutine mode: 18 KB, of which 8 are two pages of stacks.
#[test]
fn a_waiting_request_takes_little_memory() {
    let folder = TempDir::new("many");
    let script = "<?php return function (Surus\\Http\\Request $request): string {
        while (!file_exists(__DIR__ . '/go')) { sleep(3); clearstatcache(); }
        return (string) $request->query('token');
    };";
    let script = folder.file("app.php", script);
    let mut server = Surus::serve(&script).workers(1).start();
    let each = memory_of_each(&mut server, &folder, 20, 1000);
    assert!(each < 22_000, "{each} bytes");
}

/// In classic mode: half of it is PHP's heap and stack, the rest what it has written of its isolate's tables, which begin as
/// the same pages for all.
#[test]
fn a_waiting_classic_request_has_memory_of_its_own_only_for_what_it_writes() {
    let folder = TempDir::new("many");
    let script = "<?php while (!file_exists(__DIR__ . '/go')) { sleep(1); clearstatcache(); } echo $_GET['token'];";
    folder.file("index.php", script);
    let options = Surus::serve(folder.path())
        .argument("--mode")
        .argument("classic");
    let mut server = options.workers(1).start();
    let each = memory_of_each(&mut server, &folder, 2, 200);
    assert!(each < 300_000, "{each} bytes");
}
