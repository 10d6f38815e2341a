//! An answer on a persistent connection that comes when its request has ended: nobody gets it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use surus_tests::http::Request;
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;

/// It asks, and waits for the answer, not long enough, or not at all.
const ASK: &str = r#"
    $line = $query['open'] === 'client'
        ? stream_socket_client('tcp://127.0.0.1:PORT', $code, $message, 5, STREAM_CLIENT_CONNECT | STREAM_CLIENT_PERSISTENT)
        : pfsockopen('127.0.0.1', PORT, $code, $message, 5);
    fwrite($line, "{$query['who']}\n");
    $said = '';
    if ($query['waits'] !== 'no') {
        stream_set_timeout($line, $query['waits'] === 'long' ? 5 : 0, $query['waits'] === 'long' ? 0 : 20_000);
        try {
            $said = trim((string) fgets($line));
        } catch (Surus\ConnectionInUse) {
            $said = 'in use';
        }
    }
"#;

/// Answers each line after a while; its port.
fn slow_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let lines = BufReader::new(stream.try_clone().expect("a copy")).lines();
                for line in lines.map_while(Result::ok) {
                    thread::sleep(Duration::from_millis(100));
                    if stream
                        .write_all(format!("for {line}\n").as_bytes())
                        .is_err()
                    {
                        break;
                    }
                }
            });
        }
    });
    port
}

fn check(mode: Mode) {
    for open in ["pfsockopen", "client"] {
        for waits in ["short", "no"] {
            let ask = ASK.replace("PORT", &slow_server().to_string());
            let folder = TempDir::new("late");
            folder.file(
                "index.php",
                &format!("<?php $query = $_GET; {ask} echo $said;"),
            );
            let app = "$query = array_map($request->query(...), array_combine($names = ['open', 'who', 'waits'], $names));";
            let app = format!("<?php return function ($request) {{ {app} {ask} return $said; }};");
            folder.file("app.php", &app);
            let processes = match mode {
                Mode::Process => "[app.app]\nprocesses = 1\n",
                Mode::Classic => "[app.app.isolates]\nmax = 1\n",
                Mode::Coroutine | Mode::Snapshot => "",
            };
            let server = Surus::serve(&mode.script(folder.path()))
                .mode(mode)
                .config(processes)
                .start();
            let get = |who: &str, waits: &str| {
                let target = format!("/?open={open}&who={who}&waits={waits}");
                Request::get(&target)
                    .send(server.address())
                    .expect(200)
                    .text()
            };
            assert_eq!(get("ann", waits), "");
            let mut own = 0;
            for who in ["bob", "cid", "dan", "eve"] {
                let said = get(who, "long");
                assert!(
                    [&format!("for {who}"), "in use", ""].contains(&said.as_str()),
                    "{} {open} {waits}: {said}",
                    mode.name()
                );
                own += usize::from(said == format!("for {who}"));
            }
            assert!(own >= 3, "{} {open} {waits}: {own} answers", mode.name());
        }
    }
}

#[test]
fn classic() {
    check(Mode::Classic);
}

#[test]
fn coroutine() {
    check(Mode::Coroutine);
}

#[test]
fn process() {
    check(Mode::Process);
}
