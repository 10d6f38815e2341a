//! phpredis, when a connection ends in the middle of an answer: it says so at once, and goes on with the next command.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use surus_tests::http::Request;
use surus_tests::redis::Redis;
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;

/// Well below default_socket_timeout, for which phpredis would wait.
const AT_ONCE: Duration = Duration::from_secs(10);

/// What this code puts into `$said`, in each mode.
fn said(mode: Mode, code: &str) -> String {
    let folder = TempDir::new("phpredis");
    folder.file("index.php", &format!("<?php {code} echo $said;"));
    let handler = format!("<?php return function () {{ {code} return $said; }};");
    folder.file("app.php", &handler);
    let server = Surus::serve(&mode.script(folder.path())).mode(mode).start();
    let begun = Instant::now();
    let response = Request::get("/").send(server.address());
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    response.expect(200).text()
}

/// A connection of a Redis that knows AUTH, SELECT and ECHO; the first ECHO of all is answered by `part`, and the end.
fn serve(mut stream: impl Read + Write, breaks: &AtomicBool, part: &str) {
    let mut block = [0; 1024];
    while let Ok(count) = stream.read(&mut block) {
        let commands = String::from_utf8_lossy(&block[..count]).into_owned();
        let answer = match commands.split("\r\n").nth(2) {
            Some("AUTH" | "SELECT") => "+OK\r\n",
            Some("ECHO") if breaks.swap(false, Ordering::SeqCst) => {
                let _ = stream.write_all(part.as_bytes());
                return;
            }
            Some("ECHO") => "$4\r\nword\r\n",
            _ => return,
        };
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn accepted<S>(mut accept: impl FnMut() -> std::io::Result<S>) -> impl Iterator<Item = S> {
    std::iter::from_fn(move || accept().ok())
}

/// Serves connections of the kind that the listener has, in the background.
fn serve_all<S: Read + Write + Send + 'static>(
    streams: impl Iterator<Item = S> + Send + 'static,
    part: &'static str,
) {
    let breaks = Arc::new(AtomicBool::new(true));
    thread::spawn(move || {
        for stream in streams {
            let breaks = breaks.clone();
            thread::spawn(move || serve(stream, &breaks, part));
        }
    });
}

/// It connects again where it reads, sends AUTH and SELECT there, and would wait for the answer to what it has not sent.
#[test]
fn an_answer_is_not_waited_for_on_another_connection() {
    const INTRODUCTIONS: [&str; 3] = [
        "",
        "$redis->select(3);",
        "$redis->auth('secret'); $redis->select(3);",
    ];
    for mode in Mode::ALL {
        let sockets = TempDir::new("sockets");
        let mut code = String::from("$all = [];");
        let mut expected = Vec::new();
        for part in ["", "$4\r\n", "$4\r\nwo"] {
            for introduction in INTRODUCTIONS {
                let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
                let port = tcp.local_addr().expect("its address").port();
                let path = sockets.path().join(expected.len().to_string());
                let unix = UnixListener::bind(&path).expect("a socket");
                serve_all(
                    accepted(move || tcp.accept().map(|(stream, _)| stream)),
                    part,
                );
                serve_all(
                    accepted(move || unix.accept().map(|(stream, _)| stream)),
                    part,
                );
                for address in [
                    format!("'127.0.0.1', {port}"),
                    format!("'{}'", path.display()),
                ] {
                    code += &format!(
                        "$redis = new Redis(); $redis->connect({address}); {introduction}
                        try {{ $all[] = $redis->echo('word'); }} catch (RedisException $e) {{ $all[] = get_class($e); }}
                        $all[] = $redis->echo('word');"
                    );
                    expected.extend(["RedisException", "word"]);
                }
            }
        }
        code += "$said = implode(' ', $all);";
        assert_eq!(said(mode, &code), expected.join(" "), "{}", mode.name());
    }
}

/// Where nobody is there any more it would return NULL, and throw nothing.
#[test]
fn an_answer_that_cannot_come_is_an_exception() {
    const PARTS: [&str; 6] = ["", "$", "$4\r\n", "$4\r\nwo", "*2\r\n", "*2\r\n$1\r\na\r\n"];
    for mode in Mode::ALL {
        let mut code = String::from("$said = '';");
        for part in PARTS {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = listener.local_addr().expect("its address").port();
            thread::spawn(move || {
                let (mut stream, _) = listener.accept().expect("a connection");
                drop(listener);
                let _ = stream.read(&mut [0; 1024]);
                let _ = stream.write_all(part.as_bytes());
                // What is sent and the end come one after the other.
                thread::sleep(Duration::from_millis(50));
            });
            code += &format!(
                "$redis = new Redis(); $redis->connect('127.0.0.1', {port});
                try {{ $said .= var_export($redis->eval('return 1'), true); }}
                catch (RedisException) {{ $said .= '!'; }}"
            );
        }
        assert_eq!(said(mode, &code), "!!!!!!", "{}", mode.name());
    }
}

/// phpredis reads the first byte of a status, then its line; if that does not come, it would use a value that it has not set.
#[test]
fn a_status_is_read_as_a_whole_or_not_at_all() {
    for mode in Mode::ALL {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        thread::spawn(move || {
            // In parts, with an end, without one, and a first byte alone.
            let answers: [&[&str]; 4] = [&["+RE", "SET\r\n"], &["-ERR no\r\n"], &["+RE"], &["+"]];
            for (mut stream, answer) in listener.incoming().flatten().zip(answers) {
                let _ = stream.read(&mut [0; 1024]);
                for part in answer {
                    let _ = stream.write_all(part.as_bytes());
                    thread::sleep(Duration::from_millis(30));
                }
            }
        });
        let ask = format!(
            "$said = []; for ($i = 0; $i < 4; $i++) {{
                $redis = new Redis(); $redis->connect('127.0.0.1', {port}, 5, null, 0, 5);
                $redis->setOption(Redis::OPT_MAX_RETRIES, 0);
                try {{ $said[] = var_export($redis->rawCommand('RESET'), true); }}
                catch (RedisException $e) {{ $said[] = $e->getMessage(); }}
            }}
            $said = implode(', ', $said);"
        );
        let lost = "socket error on read socket";
        let expected = format!("true, false, {lost}, {lost}");
        assert_eq!(said(mode, &ask), expected, "{}", mode.name());
    }
}

/// The server ends what a request has left open, and phpredis throws because the connection is gone: no request's error.
#[test]
fn an_error_of_what_was_left_open_is_nobodys() {
    let redis = Redis::shared();
    let folder = TempDir::new("phpredis");
    folder.file(
        "app.php",
        &format!(
            "<?php
            $redis = function (): Redis {{
                $redis = new Redis();
                $redis->connect('127.0.0.1', {});
                return $redis;
            }};
            $app = new Surus\\App();
            $app->get('/leave', function () use ($redis) {{
                static $kept;
                $kept = $redis();
                $id = $kept->rawCommand('CLIENT', 'ID');
                $kept->multi();
                $kept->set('a', 'b');
                $redis()->rawCommand('CLIENT', 'KILL', 'ID', $id);
                usleep(20_000);
                return 'left';
            }});
            $app->get('/look', fn () => json_encode(error_get_last()));
            return $app;",
            redis.port()
        ),
    );
    for mode in ["coroutine", "worker"] {
        let server = Surus::serve(&folder.path().join("app.php"));
        let server = server.argument("--mode").argument(mode).workers(1).start();
        for _ in 0..3 {
            for (path, body) in [("/leave", "left"), ("/look", "null")] {
                let response = Request::get(path).send(server.address());
                assert_eq!(response.expect(200).text(), body, "{mode}");
            }
        }
        let log = server.log();
        assert!(
            log.contains("left a transaction or a pipeline open"),
            "{log}"
        );
    }
}
