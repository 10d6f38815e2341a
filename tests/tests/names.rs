//! Looking up names keeps nobody waiting: the lookups of many requests take about as long as one.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use surus_tests::fixture;
use surus_tests::http::Request;
use surus_tests::parallel::together;
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;

/// A library to preload, of `fixtures/hooks`.
fn library(folder: &TempDir, name: &str) -> String {
    let library = folder.path().join(format!("{name}.so"));
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(fixture(&format!("hooks/{name}.c")));
    surus_tests::process::run(compiler);
    library.display().to_string()
}

/// The folder or the script of a mode, both with this code.
fn site(folder: &TempDir, mode: Mode, code: &str) -> PathBuf {
    match mode {
        Mode::Classic | Mode::Process => {
            folder.file("index.php", &format!("<?php {code}"));
            folder.path().to_owned()
        }
        Mode::Coroutine | Mode::Snapshot => folder.file(
            "app.php",
            &format!("<?php return function (): void {{ {code} }};"),
        ),
    }
}

#[test]
fn lookups_wait_side_by_side() {
    let folder = TempDir::new("names");
    let library = library(&folder, "slow_names");
    let code = "
        $host = $_GET['host'];
        $stream = @stream_socket_client(\"tcp://{$host}:1\", $number, $message, 5);
        echo getmypid(), ' ', $number === SOCKET_ECONNREFUSED ? 'refused' : \"{$number} {$message}\";";
    for mode in Mode::ISOLATES {
        let server = Surus::serve(&site(&folder, mode, code))
            .mode(mode)
            .env("LD_PRELOAD", &library)
            .start();
        let ask = |host: &str| {
            let request = Request::get(&format!("/?host={host}"));
            request.send(server.address()).expect(200).text()
        };
        let times = (0..12).map(|_| {
            let (answers, took) = together(20, |_| ask("localhost"));
            assert!(answers.iter().all(|it| *it == answers[0]), "{answers:?}");
            assert!(answers[0].ends_with(" refused"), "{answers:?}");
            assert!(took >= Duration::from_millis(300), "{took:?}");
            took
        });
        // The machine may stand still in some of them.
        let is_quick = |took| took < Duration::from_millis(1500);
        assert!(times.into_iter().any(is_quick), "{mode:?}: they take long");
        // An address is no name.
        assert!(ask("127.0.0.1").ends_with(" refused"));
    }
}

/// PHP's own functions that ask for hosts and of name servers, each answer with what was asked.
#[test]
fn functions_that_ask_wait_side_by_side() {
    let folder = TempDir::new("hosts");
    let library = library(&folder, "slow_names");
    let code = "
        $id = (int) $_GET['id'];
        echo getmypid(), ' ';
        switch ($_GET['function']) {
            case 'gethostbyname':
                echo gethostbyname('localhost');
                break;
            case 'gethostbynamel':
                echo implode(gethostbynamel('localhost'));
                break;
            case 'gethostbyaddr':
                echo gethostbyaddr('127.0.0.1');
                break;
            case 'dns_get_record':
                echo dns_get_record(\"name{$id}.test\", DNS_A)[0]['ip'];
                break;
            case 'getmxrr':
                getmxrr(\"name{$id}.test\", $hosts, $weights);
                echo \"{$weights[0]} {$hosts[0]}\";
                break;
            case 'checkdnsrr':
                echo json_encode([checkdnsrr(\"name{$id}.test\", 'A'), checkdnsrr('name.invalid', 'A')]);
        }";
    type Expected = fn(usize) -> String;
    let functions: [(&str, Expected); 6] = [
        ("gethostbyname", |_| "127.0.0.1".to_owned()),
        ("gethostbynamel", |_| "127.0.0.1".to_owned()),
        ("gethostbyaddr", |_| "localhost".to_owned()),
        ("dns_get_record", |id| format!("10.0.0.{id}")),
        ("getmxrr", |id| format!("{id} name{id}.test")),
        ("checkdnsrr", |_| "[true,false]".to_owned()),
    ];
    for mode in Mode::ISOLATES {
        let server = Surus::serve(&site(&folder, mode, code))
            .mode(mode)
            .workers(1)
            .env("LD_PRELOAD", &library)
            .start();
        for (function, expected) in functions {
            let ask = |id: usize| {
                let request = Request::get(&format!("/?function={function}&id={id}"));
                request.send(server.address()).expect(200).text()
            };
            let is_quick = (0..12).any(|_| {
                let (answers, took) = together(20, ask);
                for (id, answer) in answers.iter().enumerate() {
                    let (_, said) = answer.split_once(' ').expect("a process and an answer");
                    assert_eq!(said, expected(id), "{mode:?} {function}");
                }
                assert!(took >= Duration::from_millis(300), "{took:?}");
                took < Duration::from_millis(2500)
            });
            assert!(is_quick, "{mode:?} {function}: they take long");
        }
    }
}

/// Requests change their environments while helper threads read what was there when they began.
#[test]
fn a_lookup_may_read_the_environment() {
    let folder = TempDir::new("environment");
    let library = library(&folder, "environment_reader");
    let code = "
        $end = hrtime(true) + 300_000_000;
        if ($_GET['id'] < 4) {
            @stream_socket_client('tcp://localhost:1', $number, $message, 5);
        } else {
            for ($n = 0; hrtime(true) < $end; $n++) {
                putenv(\"OWN{$n}={$_GET['id']}\");
                putenv('SAME=' . str_repeat('x', $n));
                $n % 10 || putenv('SAME');
                usleep(200);
            }
        }
        echo getmypid();";
    for mode in Mode::ISOLATES {
        let server = Surus::serve(&site(&folder, mode, code))
            .mode(mode)
            .workers(1)
            .env("LD_PRELOAD", &library)
            .env("MALLOC_PERTURB_", "165")
            .start();
        let (pids, _) = together(8, |id| {
            let request = Request::get(&format!("/?id={id}"));
            request.send(server.address()).expect(200).text()
        });
        assert!(pids.iter().all(|pid| *pid == pids[0]), "{mode:?}: {pids:?}");
    }
}
