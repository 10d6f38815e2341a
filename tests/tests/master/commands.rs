//! `surus status` and its like, and what is said of wrong usage.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use surus_tests::surus::{binary, Surus, CONTROL};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

fn hello(name: &str) -> TempDir {
    let folder = TempDir::new(name);
    folder.file("app.php", "<?php return fn () => 'hello';");
    folder
}

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

/// Each says what is wrong with which input.
#[test]
fn wrong_usage_ends_with_2() {
    let folder = hello("usage");
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(file("empty")).unwrap();
    fs::write(file("notes.txt"), "").unwrap();
    fs::write(file("broken.toml"), "[server]\nworkers = [").unwrap();
    nix::unistd::mkfifo(Path::new(&file("pipe.php")), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (arguments, says) in [
        (
            "serve EMPTY",
            "has no app.php, no public/index.php, no index.php; make one, or name a script",
        ),
        ("check EMPTY", "has no app.php"),
        ("routes EMPTY", "has no app.php"),
        ("openapi EMPTY", "has no app.php"),
        (
            "serve EMPTY --mode coroutine",
            "empty has no app.php; make one",
        ),
        ("serve /nonexistent", "/nonexistent: no such file or folder"),
        (
            "serve NOTES",
            "notes.txt is neither a PHP script nor a folder",
        ),
        (
            "serve PIPE",
            "pipe.php is neither a PHP script nor a folder",
        ),
        (
            "serve APP --workers none",
            "\"none\" is not \"auto\" or a number from 1 to 1024",
        ),
        ("serve APP --workers 0", "number from 1 to 1024"),
        ("serve APP --workers -1", "number from 1 to 1024"),
        (
            "serve APP --mode fast",
            "invalid value 'fast' for '--mode <MODE>'",
        ),
        (
            "serve APP --listen nowhere",
            "cannot listen on \"nowhere\": not ADDRESS:PORT",
        ),
        (
            "serve APP --listen 99999",
            "cannot listen on \"99999\": not ADDRESS:PORT, and no port up to 65535",
        ),
        (
            "serve APP --listen 192.0.2.1:80",
            "cannot listen on 192.0.2.1:80: this machine has no such address",
        ),
        (
            "serve APP --config /nonexistent",
            "cannot read /nonexistent: No such file",
        ),
        (
            "serve APP --config BROKEN",
            "broken.toml: TOML parse error at line 2, column 12",
        ),
        (
            "serve APP --set max_request=1",
            "--set max_request: there is no such key; is `--set max_requests` meant?",
        ),
        (
            "serve APP --set max_requests",
            "--set max_requests: it takes KEY=VALUE",
        ),
        (
            "serve APP --set request_timeout=soon",
            "\"soon\" is not a duration such as \"30s\"",
        ),
        ("serve APP --fast", "unexpected argument '--fast'"),
        ("serve APP more", "unexpected argument 'more'"),
        (
            "status --pid 999999999",
            "no server with the process id 999999999 was found in FOLDER:",
        ),
        (
            "stop /var/www",
            "no server of /var/www was found in FOLDER:",
        ),
        ("top --every 0", "\"0\" is not a number from 0.1 to 3600"),
        (
            "top --every nan",
            "\"nan\" is not a number from 0.1 to 3600",
        ),
        ("internals --isolates 0", "0 is not in 1..=65535"),
        ("new /proc", "/proc: the folder is not empty"),
        ("stubs /proc/nowhere", "/proc/nowhere: "),
        ("fly", "unrecognized subcommand 'fly'"),
        ("", "Usage: surus <COMMAND>"),
    ] {
        let words: Vec<String> = arguments
            .split_whitespace()
            .map(|word| match word {
                "APP" => file("app.php"),
                "EMPTY" => file("empty"),
                "NOTES" => file("notes.txt"),
                "PIPE" => file("pipe.php"),
                "BROKEN" => file("broken.toml"),
                word => word.to_owned(),
            })
            .collect();
        let mut command = Command::new(binary());
        let output = command
            .args(&words)
            .env("RUNTIME_DIRECTORY", folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {log}");
        let says = says.replace("FOLDER", folder.path().to_str().unwrap());
        assert!(log.contains(&says), "{arguments}: {log}");
    }
}

/// What a user may not read is said to be so, not to be missing.
#[test]
fn what_may_not_be_read_is_named() {
    let folder = hello("unreadable");
    folder.file("index.php", "");
    let forbid = |name: &str, mode: u32| {
        let path = folder.path().join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    // Where anybody may run it.
    let programs = TempDir::new("program");
    let program = programs.path().join("surus");
    fs::copy(binary(), &program).unwrap();
    let said = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).stdin(Stdio::null());
        if nix::unistd::Uid::effective().is_root() {
            command.uid(65534).gid(65534).current_dir("/");
        }
        let output = command.output().unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {log}");
        log
    };
    let path = folder.path().to_str().unwrap();
    for script in ["app.php", "index.php"] {
        let script = format!("{path}/{script}");
        forbid("", 0o755);
        forbid("app.php", 0o200);
        forbid("index.php", 0o200);
        for arguments in [&["serve", &script][..], &["serve", path]] {
            let log = said(arguments);
            assert!(log.contains("surus: cannot read "), "{log}");
            assert!(log.contains(".php: it is not permitted to user "), "{log}");
        }
        forbid("", 0o000);
        for path in [path, &script] {
            let log = said(&["serve", path]);
            let expected = format!("surus: cannot read {path}: it is not permitted to user ");
            assert!(log.contains(&expected), "{log}");
        }
        forbid("", 0o755);
    }
}

/// The reader of a command's output may leave before its end.
#[test]
fn a_reader_that_leaves_is_no_error() {
    let folder = hello("leaves");
    let mut child = Command::new(binary())
        .arg("check")
        .arg(folder.path())
        .args(["--dev", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stderr, b"");
}

#[test]
fn a_second_server_on_the_same_port_is_refused() {
    let folder = hello("first");
    let server = Surus::serve(folder.path()).workers(2).start();
    let listen = server.address().to_string();
    let other = hello("second");
    let path = other.path().to_str().unwrap();
    let (code, said) = Surus::run(&["serve", path, "--listen", &listen]);
    let said: String = said
        .split_inclusive('\n')
        .filter(|line| !line.contains("PHP runs as root"))
        .collect();
    let expected = format!(
        "surus: cannot listen on {listen}: another process does already (--listen takes another address)\n"
    );
    assert_eq!((code, said), (Some(2), expected));
}

/// Servers of one site: what they were started with tells them apart.
#[test]
fn a_server_is_found_by_its_configuration() {
    let folder = hello("named");
    let run = folder.folder("run");
    let variable = format!("RUNTIME_DIRECTORY={}", run.display());
    let files =
        ["one.toml", "two.toml"].map(|name| folder.file(name, "[app.app]\nscript = 'app.php'\n"));
    let start = |file: &PathBuf| Surus::serve(file).under(&["env", &variable]).start();
    let servers = files.each_ref().map(start);
    let command = |arguments: &[&str]| {
        let mut command = Command::new(binary());
        let command = command.args(arguments).env("RUNTIME_DIRECTORY", &run);
        let output = command.current_dir(folder.path()).output().expect("run");
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    };
    let (code, list) = command(&["status"]);
    assert_eq!(code, Some(2), "{list}");
    for (server, file) in servers.iter().zip(&files) {
        let path = file.to_str().expect("a path");
        let address = server.address().to_string();
        let name = file
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        for name in [path, name] {
            let (code, text) = command(&["status", name]);
            assert_eq!(code, Some(0), "{text}");
            assert!(text.contains(&address), "{text}");
        }
        let line = list.lines().find(|line| line.contains(&address));
        let line = line.unwrap_or_else(|| panic!("no {address} in {list}"));
        assert!(line.contains("--pid") && line.contains(path), "{line}");
        assert_eq!(
            command(&["reload", path]),
            (Some(0), "reloaded\n".to_owned())
        );
    }
    // Both are of this folder.
    let (code, text) = command(&["status", "."]);
    assert_eq!((code, text), (Some(2), list));
}

/// As behind `php`, or the servers of frameworks.
#[test]
fn a_path_in_place_of_a_command_is_told_the_command() {
    let folder = hello("told");
    let path = folder.path().to_str().expect("a path");
    let (code, text) = Surus::run(&[path]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains(&format!("surus serve {path}")), "{text}");
    let (code, text) = Surus::run(&["nothing"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(!text.contains("surus serve nothing"), "{text}");
}
