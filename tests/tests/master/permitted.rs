//! What a start would say, `surus check` says: what its user may not read, what is not there, and what is somebody else's.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use nix::unistd::Uid;
use surus_tests::http::Request;
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

fn site(name: &str) -> TempDir {
    let folder = TempDir::new(name);
    folder.file(
        "app.php",
        "<?php return function () { error_log('said'); return 'ok'; };",
    );
    folder.file("index.php", "<?php error_log('said'); echo 'ok';");
    folder
}

/// Both end with 2, and say all of this.
fn refused(folder: &Path, config: &str, arguments: &[&str], parts: &[&str]) {
    let file = folder.join("surus.toml");
    fs::write(&file, config).expect("a configuration");
    let file = file.to_str().expect("a path");
    let site = folder.to_str().expect("a path");
    for command in ["check", "serve"] {
        let mut words = vec![command, site, "--config", file];
        words.extend_from_slice(arguments);
        if !config.contains("listen") {
            words.extend(["--listen", "127.0.0.1:0"]);
        }
        let (code, text) = Surus::run(&words);
        assert_eq!(code, Some(2), "{command}: {text}");
        for part in parts {
            assert!(text.contains(part), "{command}: no {part:?} in\n{text}");
        }
    }
}

fn close(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
}

/// Requests would be empty 500s.
#[test]
fn what_the_user_of_workers_cannot_read_is_an_error() {
    if !Uid::effective().is_root() {
        return;
    }
    let user = "[server]\nuser = 'nobody'\n[app.app]\n";
    for mode in Mode::ALL {
        let folder = site("closed");
        let inner = folder.folder("inner/site");
        let script = mode.script(&inner);
        fs::copy(mode.script(folder.path()), &script).expect("a script");
        let (key, path) = match mode {
            Mode::Coroutine | Mode::Snapshot => ("script", &script),
            Mode::Classic | Mode::Process => ("root", &inner),
        };
        let config = format!(
            "{user}mode = '{}'\n{key} = '{}'\n",
            mode.name(),
            path.display()
        );
        // A folder on the way.
        close(&folder.path().join("inner"), 0o700);
        let closed = format!("({}/inner: ", folder.path().display());
        let who = "user \"nobody\", whom PHP runs as, cannot read";
        refused(
            folder.path(),
            &config,
            &[],
            &["surus.toml, line 5: ", key, who, &closed, "chown"],
        );
        close(&folder.path().join("inner"), 0o755);
        // The script itself.
        close(&script, 0o600);
        let file = format!("({}: Permission denied", script.display());
        refused(folder.path(), &config, &[], &["script: ", who, &file]);
        close(&script, 0o644);
        let server = Surus::serve(&script).mode(mode).config(&config).start();
        Request::get("/").send(server.address()).expect(200);
    }
}

/// Else the master's PHP would make it as root's, and the workers' PHP could not write to it.
#[test]
fn a_log_of_phps_own_is_its_users() {
    if !Uid::effective().is_root() {
        return;
    }
    for mode in Mode::ALL {
        let folder = site("php-log");
        let logs = folder.folder("logs");
        let log = logs.join("php.log");
        let config = format!(
            "[server]\nuser = 'nobody'\n[app.app]\nmode = '{}'\n[php]\nerror_log = '{}'\n",
            mode.name(),
            log.display()
        );
        refused(
            folder.path(),
            &config,
            &[],
            &[
                "surus.toml, line 6: [php] error_log: user \"nobody\"",
                log.to_str().expect("a path"),
                "error_log of [server]",
            ],
        );
        close(&logs, 0o777);
        fs::remove_file(folder.path().join("surus.toml")).expect("remove it");
        let script = mode.script(folder.path());
        let server = Surus::serve(&script).mode(mode).config(&config).start();
        Request::get("/").send(server.address()).expect(200);
        let text = || fs::read_to_string(&log).unwrap_or_default();
        wait_for("there is no line", || text().contains("said"));
        assert!(!server.log().contains("said"));
        assert_ne!(fs::metadata(&log).expect("the log").uid(), 0);
        let (code, said) = server.command(&["reload"]);
        assert_eq!(code, Some(0), "{said}");
        Request::get("/").send(server.address()).expect(200);
        wait_for("there is no other line", || {
            text().matches("said").count() > 1
        });
    }
}

#[test]
fn check_looks_at_the_machine() {
    let folder = site("machine");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let missing = folder.path().join("missing");
    let missing = missing.display();
    for (config, parts) in [
        (
            format!("[server]\nlisten = '{address}'\n"),
            vec!["cannot listen on", &address, "another process does already"],
        ),
        (
            format!("[server]\nadmin = '{address}'\n"),
            vec!["admin", &address, "another process does already"],
        ),
        (
            format!("[server]\naccess_log_file = '{missing}/a.log'\n"),
            vec![
                "surus.toml, line 2: cannot open access_log_file",
                "make the folder",
            ],
        ),
        (
            format!("[server]\nerror_log = '{missing}/e.log'\n"),
            vec![
                "surus.toml, line 2: cannot open error_log",
                "make the folder",
            ],
        ),
        (
            "[server]\nerror_log = 'syslog'\n".to_owned(),
            vec![
                "surus.toml, line 2: cannot open error_log",
                "the name of a file",
            ],
        ),
        (
            format!("[app.app]\nspool_folder = '{missing}'\n"),
            vec![
                "surus.toml, line 2: spool_folder: ",
                "there is no such folder",
            ],
        ),
        (
            "[server]\nlisten = ['127.0.0.1:7', '127.0.0.1:7']\nadmin = '127.0.0.1:7'\n".to_owned(),
            vec![
                "line 2: listen: 127.0.0.1:7 is there twice",
                "line 3: admin: 127.0.0.1:7",
            ],
        ),
    ] {
        refused(folder.path(), &config, &[], &parts);
    }
    let file = folder.file("file", "mine");
    let set = format!("control={}", file.display());
    refused(folder.path(), "", &["--set", &set], &["not a socket"]);
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "mine");
}

/// What is in the way of some requests only is a warning, of the start and of `check`.
#[test]
fn check_warns_of_what_php_will_miss() {
    let folder = site("misses");
    let missing = folder.path().join("missing");
    let missing = missing.display();
    let config = format!(
        "[env]\nSECRET = '$SURUS_HAS_NO_SUCH_VARIABLE'\n[php]\n'session.save_path' = '2;{missing}'\nupload_tmp_dir = '{missing}'\n"
    );
    let file = folder.file("surus.toml", &config);
    let words = [file.as_path(), folder.path()].map(|path| path.to_str().expect("a path"));
    let (code, text) = Surus::run(&["check", "--listen", "0", "--config", words[0], words[1]]);
    assert_eq!(code, Some(0), "{text}");
    for part in [
        "line 2: env: SECRET is not set: the server's environment has no SURUS_HAS_NO_SUCH_VARIABLE".to_owned(),
        format!("line 4: [php] session.save_path: no files can be written in {missing}: there is no such folder"),
        format!("line 5: [php] upload_tmp_dir: no files can be written in {missing}"),
    ] {
        assert!(text.contains(&part), "no {part:?} in {text}");
    }
}

#[test]
fn check_warns_of_settings_in_the_root() {
    let folder = TempDir::new("settings");
    folder.file("index.php", "<?php");
    let root = folder.path().to_str().expect("a path").to_owned();
    let check = || Surus::run(&["check", "--listen", "0", &root]);
    let (code, text) = check();
    assert!(code == Some(0) && !text.contains(".user.ini"), "{text}");
    folder.file(".user.ini", "memory_limit = 64M");
    let (code, text) = check();
    let warning = format!("{root}/.user.ini is not read: move its settings to [php]");
    assert!(code == Some(0) && text.contains(&warning), "{text}");
}

/// As before an upgrade: its own ports and socket are not in the way.
#[test]
fn check_passes_beside_the_running_server() {
    let folder = site("beside");
    let admin = surus_tests::ports::free();
    let socket = folder.path().join("control.sock");
    let config = format!(
        "[server]\nadmin = {admin:?}\ncontrol = '{}'\n",
        socket.display()
    );
    let config = config.replace(&format!("{admin:?}"), &format!("'{admin}'"));
    let file = folder.file("site.toml", &config);
    let script = folder.path().join("app.php");
    let server = Surus::serve(&script).config(&config).start();
    let listen = server.address().to_string();
    let check = |script: &Path| {
        let words = ["check", script.to_str().expect("a path"), "--config"];
        let last = [file.to_str().expect("a path"), "--listen", &listen];
        Surus::run(&[&words[..], &last[..]].concat())
    };
    let (code, text) = check(&script);
    assert_eq!(code, Some(0), "{text}");
    // Another site's are.
    let (code, text) = check(&folder.file("other.php", "<?php return fn () => 'other';"));
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains(&listen), "{text}");
}

#[test]
fn a_limit_that_is_never_reached_is_said() {
    let folder = site("limit");
    let script = folder.path().join("app.php");
    for (settings, words) in [
        (
            "max_execution_time = 60",
            "set request_timeout = \"60s\" or more",
        ),
        ("max_execution_time = 0", "request_timeout = 0 is no limit"),
        ("max_execution_time = 30", ""),
    ] {
        let file = folder.file("a.toml", &format!("[php]\n{settings}\n"));
        let words = (file.to_str().expect("a path"), words);
        let script = script.to_str().expect("a path");
        let listen = ["--listen", "127.0.0.1:0"];
        let check = ["check", script, "--config", words.0];
        let (code, text) = Surus::run(&[&check[..], &listen[..]].concat());
        assert_eq!(code, Some(0), "{text}");
        let expected = format!("a.toml, line 2: [php] {settings}: request_timeout (30 s)");
        assert_eq!(text.contains(&expected), !words.1.is_empty(), "{text}");
        assert!(text.contains(words.1), "{text}");
    }
    let server = Surus::serve(&script)
        .config("[php]\nmax_execution_time = 60\n")
        .start();
    assert!(
        server.log().contains("ends requests before"),
        "{}",
        server.log()
    );
}

#[test]
fn a_level_that_is_none_is_said() {
    let folder = site("level");
    for (level, words) in [
        ("wran", "SURUS_LOG: \"wran\" is no level (off, error, warn, info, debug, trace); is warn meant?"),
        ("info,app=debgu", "\"debgu\" is no level"),
        ("warn", ""),
    ] {
        let server = Surus::serve(folder.path()).env("SURUS_LOG", level).start();
        let log = server.log();
        assert_eq!(log.contains("SURUS_LOG"), !words.is_empty(), "{log}");
        assert!(log.contains(words), "{log}");
    }
}

#[test]
fn commands_say_what_is_wrong_with_a_socket() {
    let folder = site("socket");
    let file = folder.file("file", "");
    let missing = folder.path().join("missing.sock");
    for (path, words) in [
        (&missing, "no server has its control socket here"),
        (&file, "this is no control socket"),
    ] {
        let path = path.to_str().expect("a path");
        for command in ["status", "reload", "stop", "upgrade", "top"] {
            let (code, text) = Surus::run(&[command, "--control", path]);
            assert_eq!(code, Some(2), "{text}");
            assert!(text.contains(path) && text.contains(words), "{text}");
        }
    }
}
