//! `surus status` and its like.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use surus_tests::surus::{binary, Surus, CONTROL};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

#[test]
fn the_control_socket_is_its_owners_and_goes_with_the_server() {
    let folder = TempDir::new("socket");
    folder.file("app.php", "<?php return fn () => 'hello';");
    let mut server = Surus::serve(folder.path()).start();
    let id = server.process().id();
    let socket = server.folder().join(CONTROL).join(format!("{id}.sock"));
    let mode = fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let (code, text) = server.command(&["stop"]);
    assert_eq!((code, text.as_str()), (Some(0), "stopping\n"));
    let mut status = None;
    wait_for("it does not end", || {
        status = server.process().ended();
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(0));
    assert!(!socket.exists());
    let (code, text) = server.command(&["status"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("no server was found"), "{text}");
}

#[test]
fn a_status_is_for_people_and_for_programs() {
    let folder = TempDir::new("status");
    folder.file("app.php", "<?php return fn () => 'hello';");
    let server = Surus::serve(folder.path()).workers(2).start();
    let status = server.status();
    assert_eq!(status["mode"], "coroutine");
    assert_eq!(status["listen"][0], server.address().to_string());
    let workers = status["workers"].as_array().unwrap();
    assert_eq!(workers.len(), 2);
    for worker in workers {
        assert_eq!(worker["state"], "ready");
        assert_eq!(worker["restarts"], 0);
        assert!(worker["rss_bytes"].as_u64().unwrap() > 1_000_000);
        assert!(worker["php_memory_bytes"].as_u64().unwrap() > 100_000);
    }
    let (code, text) = server.command(&["status"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(&server.address().to_string()), "{text}");
    assert!(text.contains("ready"), "{text}");
    let (code, text) = server.command(&["status", "/elsewhere"]);
    assert_eq!(code, Some(2), "{text}");
}

/// Who mends a configuration is told of all that is wrong with it: file, line and the name that was meant.
#[test]
fn everything_wrong_is_told_at_once() {
    let folder = TempDir::new("wrong");
    folder.file("app.php", "<?php return fn () => 'ok';");
    let path = folder.path().to_str().expect("a path").to_owned();
    let expect = |settings: &str, arguments: &[&str], parts: &[&str]| {
        folder.file("surus.toml", settings);
        for command in ["check", "serve"] {
            let output = Command::new(binary())
                .args([command, &path])
                .args(arguments)
                .env("SURUS_WRKERS", "3")
                .env("RUNTIME_DIRECTORY", folder.path())
                .output()
                .expect("the command");
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{command}: {told}");
            for part in parts {
                assert!(told.contains(part), "{command}: no {part:?} in\n{told}");
            }
        }
    };
    let unknown = "[server]\nlistn = \"127.0.0.1:1\"\nworkers = \"many\"\n\n[app.app]\nisolates = { maxx = 3 }\n[phpp]\nx = 1\n";
    expect(
        unknown,
        &["--set", "nonsense=1", "--set", "isolates.maks=2"],
        &[
            "surus.toml: TOML parse error at line 2, column 1",
            "unknown field `listn`; is `listen` meant?",
            "3 | workers = \"many\"",
            "6 | isolates = { maxx = 3 }",
            "is `max` meant?",
            "unknown field `phpp`; is `php` meant?",
            "--set nonsense: there is no such key",
            "--set isolates.maks: there is no such key; is `--set isolates.max` meant?",
            "SURUS_WRKERS: there is no such key; is `SURUS_WORKERS` meant?",
        ],
    );
}

/// The same of values that are well-formed and cannot be.
#[test]
fn every_impossible_value_is_told_at_once() {
    let folder = TempDir::new("impossible");
    folder.file("app.php", "<?php return fn () => 'ok';");
    let settings = "[server]\nlisten = \"nowhere\"\nuser = \"nobody-of-this-name\"\nliveness = \"live\"\n\
        trusted_proxies = [\"10.0.0.0/99\", \"x\"]\nmax_connections = 0\nadmin = \"here\"\n\n[app.app]\n\
        max_requests_in_flight = 0\nisolates = { min = 5, max = 2 }\npublic = \"no-such-folder\"\n\
        processes = 0\n[php]\npost_max_size = \"x\"\n";
    folder.file("surus.toml", settings);
    let path = folder.path().to_str().expect("a path").to_owned();
    for command in ["check", "serve"] {
        let (code, told) = Surus::run(&[command, &path, "--set", "readiness=ready"]);
        assert_eq!(code, Some(2), "{command}: {told}");
        for part in [
            "surus.toml, line 2: cannot listen on \"nowhere\"",
            "surus.toml, line 3: ",
            "nobody-of-this-name",
            "surus.toml, line 4: liveness: \"live\" is no path",
            "--set readiness: readiness: \"ready\" is no path",
            "surus.toml, line 5: trusted_proxies: \"10.0.0.0/99\"",
            "surus.toml, line 5: trusted_proxies: \"x\"",
            "surus.toml, line 6: max_connections must be at least 1",
            "surus.toml, line 7: cannot listen on \"here\"",
            "surus.toml, line 10: max_requests_in_flight must be at least 1",
            "surus.toml, line 11: isolates.min (5) is more than isolates.max (2)",
            "surus.toml, line 12: ",
            "no-such-folder",
            "surus.toml, line 13: processes must be at least 1",
            "surus.toml, line 15: [php] post_max_size",
        ] {
            assert!(told.contains(part), "{command}: no {part:?} in\n{told}");
        }
    }
}
