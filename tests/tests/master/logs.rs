//! Where lines go, and that this stops nothing: not a full disk, not a closed pipe, not a pipe that nobody reads.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::sys::signal::{kill, Signal};
use nix::unistd::{pipe2, Pid};

use surus_tests::http::{Connection, Request};
use surus_tests::surus::{Mode, Options, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::{wait_for, wait_up_to};

/// Logs as many lines of a kilobyte as it is asked for, each with its number. And what PHP code writes itself.
const CODE: &str = "
    foreach (range(1, (int) ($_GET['lines'] ?? 1)) as $line) {
        error_log(($_GET['name'] ?? '-') . \" $line \" . str_repeat('x', 1000));
    }
    if (isset($_GET['own'])) {
        file_put_contents('php://stderr', str_repeat('o', 2000) . \"\\n\");
    }
    echo 'ok';";

fn site(folder: &TempDir, mode: Mode) -> Options {
    let path = match mode {
        Mode::Coroutine | Mode::Snapshot => folder.file(
            "app.php",
            &format!("<?php return function (): void {{ {CODE} }};"),
        ),
        Mode::Classic | Mode::Process => {
            folder.file("index.php", &format!("<?php {CODE}"));
            folder.path().to_owned()
        }
    };
    Surus::serve(&path).mode(mode)
}

/// With one process of PHP's own, if there are any: each has its own lines that wait.
fn one(mode: Mode) -> String {
    let processes = if mode == Mode::Process {
        "processes = 1"
    } else {
        ""
    };
    format!("[server]\naccess_log = true\n[app.app]\n{processes}\n")
}

/// Both of its outputs go into a pipe: who may read it, one more writer, and the server.
fn into_a_pipe(options: Options) -> (OwnedFd, OwnedFd, Surus) {
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC).unwrap();
    let more = || writer.try_clone().unwrap();
    let server = options.output(more()).errors(more()).start();
    (reader, writer, server)
}

/// The same of its standard error, which nobody else writes to.
fn errors_into_a_pipe(options: Options) -> (OwnedFd, Surus) {
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC).unwrap();
    (reader, options.errors(writer).start())
}

fn ask(server: &Surus, query: &str) {
    let request = Request::get(&format!("/?{query}"));
    assert_eq!(request.send(server.address()).expect(200).text(), "ok");
}

fn dropped(server: &Surus, log: &str) -> u64 {
    let dropped = server.status()["log_lines_dropped"][log].as_u64();
    dropped.expect("a number")
}

/// It goes on, reloads, replaces a worker that dies, and ends when it is asked to.
fn lives(mut server: Surus) {
    let worker = server.workers()[0];
    let (code, text) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{text}");
    kill(Pid::from_raw(worker), Signal::SIGKILL).expect("a worker");
    wait_for("it is not replaced", || {
        server.workers().first().is_some_and(|&it| it != worker)
    });
    ask(&server, "");
    ends(&mut server);
}

fn ends(server: &mut Surus) {
    let id = Pid::from_raw(server.process().id() as i32);
    kill(id, Signal::SIGTERM).expect("a server");
    wait_for("it does not end", || server.process().ended().is_some());
    let status = server.process().ended().expect("it has ended");
    assert_eq!(status.code(), Some(0), "{status}");
}

#[test]
fn a_full_disk_stops_nothing() {
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    for mode in Mode::ALL {
        let folder = TempDir::new("full");
        let server = site(&folder, mode)
            .config("[server]\naccess_log = true\n")
            .output(full())
            .errors(full())
            .start();
        for _ in 0..20 {
            ask(&server, "own=1");
        }
        wait_for("nothing is counted", || {
            dropped(&server, "error") >= 20 && dropped(&server, "access") >= 20
        });
        lives(server);
    }
}

#[test]
fn a_closed_pipe_stops_nothing() {
    for mode in Mode::ALL {
        let folder = TempDir::new("closed");
        let options = site(&folder, mode).config("[server]\naccess_log = true\n");
        let (reader, _, server) = into_a_pipe(options);
        drop(reader);
        for _ in 0..20 {
            ask(&server, "own=1");
        }
        wait_for("nothing is counted", || {
            dropped(&server, "error") >= 20 && dropped(&server, "access") >= 20
        });
        lives(server);
    }
}

#[test]
fn a_pipe_that_nobody_reads_stops_nothing() {
    for mode in Mode::ALL {
        let folder = TempDir::new("unread");
        let options = site(&folder, mode).config(&one(mode));
        let (reader, shared, server) = into_a_pipe(options);
        // More than a pipe and what waits in memory hold.
        for _ in 0..8 {
            ask(&server, "lines=300");
        }
        wait_for("nothing is counted", || dropped(&server, "error") > 0);
        let (code, text) = server.command(&["status"]);
        assert!(
            code == Some(0) && text.contains("lines of logs were dropped"),
            "{text}"
        );
        lives(server);
        // Nobody else who has the pipe is told not to wait.
        let flags = fcntl(&shared, FcntlArg::F_GETFL).unwrap();
        assert!(!OFlag::from_bits_truncate(flags).contains(OFlag::O_NONBLOCK));
        drop(reader);
    }
}

/// When somebody reads again, the lines are in order, and one says how many are missing, where they are.
#[test]
fn what_is_missing_is_said_where_it_is_missing() {
    for mode in Mode::ALL {
        let folder = TempDir::new("missing");
        let options = site(&folder, mode).config(&one(mode));
        let (reader, mut server) = errors_into_a_pipe(options);
        for name in 0..8 {
            ask(&server, &format!("lines=300&name={name}"));
        }
        wait_for("nothing is counted", || dropped(&server, "error") > 0);
        let lost = dropped(&server, "error");
        let reading = std::thread::spawn(move || lines(reader));
        // It has room again.
        let mut more = 0;
        wait_for("it drops on", || {
            let before = dropped(&server, "error");
            ask(&server, &format!("name=more{more}"));
            more += 1;
            dropped(&server, "error") == before
        });
        ends(&mut server);
        drop(server);
        let lines = reading.join().unwrap();
        let mut last = (0, 0);
        let (mut written, mut missing) = (0, 0);
        for line in &lines {
            if let Some(said) = line
                .split("surus: ")
                .nth(1)
                .filter(|it| it.contains(" dropped from the error log"))
            {
                let count = said.split(' ').next().unwrap();
                missing += count.parse::<u64>().expect(line);
                assert!(written > 300, "{line} comes too early");
            }
            let Some(php) = line.split("php: ").nth(1) else {
                continue;
            };
            assert!(php.ends_with(&"x".repeat(1000)), "{line}");
            let mut words = php.split(' ');
            let (name, number) = (words.next().unwrap(), words.next().unwrap());
            if let Ok(name) = name.parse::<u64>() {
                let this = (name, number.parse::<u64>().expect(line));
                assert!(this > last, "{this:?} after {last:?}");
                last = this;
                written += 1;
            }
        }
        assert!(
            missing >= lost && missing + written >= 8 * 300,
            "{mode:?}: {missing} {lost} {written}"
        );
    }
}

fn lines(reader: OwnedFd) -> Vec<String> {
    let lines = BufReader::new(File::from(reader)).lines();
    lines.map_while(Result::ok).collect()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn usr1(server: &mut Surus) {
    let id = Pid::from_raw(server.process().id() as i32);
    kill(id, Signal::SIGUSR1).expect("a server");
}

const FILES: &str =
    "[server]\naccess_log = 'combined'\naccess_log_file = 'access.log'\nerror_log = 'error.log'\n";

/// As logrotate does: rename and tell, or copy and truncate.
#[test]
fn files_are_rotated() {
    for mode in Mode::ALL {
        let folder = TempDir::new("rotated");
        let mut server = site(&folder, mode).config(FILES).workers(2).start();
        let [access, error] = ["access.log", "error.log"].map(|name| server.folder().join(name));
        ask(&server, "name=first");
        wait_for("there is no line", || {
            text(&access).contains("GET /?name=first HTTP/1.1\" 200 2")
                && text(&error).contains("first 1")
        });
        let moved = [&access, &error].map(|path| path.with_extension("1"));
        for (from, to) in [&access, &error].iter().zip(&moved) {
            fs::rename(from, to).unwrap();
        }
        usr1(&mut server);
        // Each worker has its own part in it.
        let mut asked = 0;
        wait_for("no worker writes to the new file", || {
            for _ in 0..20 {
                ask(&server, &format!("name=later{asked}"));
                asked += 1;
            }
            let before = text(&moved[0]).len() + text(&moved[1]).len();
            for _ in 0..20 {
                ask(&server, &format!("name=then{asked}"));
            }
            let now = text(&moved[0]).len() + text(&moved[1]).len();
            now == before && text(&access).contains("name=then") && text(&error).contains("then")
        });
        // The master as well.
        let (code, said) = server.command(&["reload"]);
        assert_eq!(code, Some(0), "{said}");
        wait_for("the master does not", || {
            text(&error).contains("surus: reloaded")
        });
        assert!(!text(&moved[1]).contains("surus: reloaded"));
        // At the end of what is there, wherever that is by then.
        for path in [&access, &error] {
            OpenOptions::new()
                .write(true)
                .truncate(true)
                .open(path)
                .unwrap();
        }
        ask(&server, "name=last");
        wait_for("there is no line", || {
            text(&access).contains("name=last") && text(&error).contains("last 1")
        });
        assert!(!text(&access).contains('\0') && !text(&error).contains('\0'));
        assert_eq!(
            server.log(),
            "",
            "{mode:?}: standard error is not for this any more"
        );
        ends(&mut server);
    }
}

/// The master is root, its workers are not, and may not open the files.
#[test]
fn workers_need_not_be_allowed_to_open_the_files() {
    let folder = TempDir::new("root");
    let private = folder.folder("private");
    fs::set_permissions(
        &private,
        std::os::unix::fs::PermissionsExt::from_mode(0o700),
    )
    .unwrap();
    for mode in Mode::ALL {
        let path = private.join(format!("{}.log", mode.name()));
        let config = format!(
            "[server]\nuser = 'nobody'\naccess_log_file = '{}'\n",
            path.display()
        );
        let mut server = site(&folder, mode).config(&config).start();
        ask(&server, "name=first");
        wait_for("there is no line", || text(&path).contains("name=first"));
        fs::rename(&path, path.with_extension("1")).unwrap();
        usr1(&mut server);
        wait_for("there is no new file", || {
            ask(&server, "name=later");
            text(&path).contains("name=later")
        });
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_that_names_it() {
    let folder = TempDir::new("unopened");
    folder.file("index.php", "<?php echo 'ok';");
    for key in ["error_log", "access_log_file"] {
        let missing = folder.path().join("missing/a.log");
        let set = format!("{key}={}", missing.display());
        let path = folder.path().to_str().unwrap();
        let (code, text) = Surus::run(&["serve", path, "--listen", "127.0.0.1:0", "--set", &set]);
        assert_eq!(code, Some(2), "{text}");
        assert!(
            text.contains(&format!(
                "cannot open {key} {}: No such file",
                missing.display()
            )),
            "{text}"
        );
    }
    // Later it is no end: the lines go where they went before.
    let mut server = site(&folder, Mode::Classic).config(FILES).start();
    let error = server.folder().join("error.log");
    let moved = server.folder().join("moved.log");
    fs::rename(&error, &moved).unwrap();
    fs::create_dir(&error).unwrap();
    usr1(&mut server);
    wait_for("it is not said", || {
        text(&moved).contains("cannot reopen the error log")
    });
    ask(&server, "name=after");
    wait_for("there is no line", || text(&moved).contains("after 1"));
}

/// What does not boot is said where it was started, too.
#[test]
fn what_does_not_boot_is_said_on_standard_error_as_well() {
    let folder = TempDir::new("broken");
    let log = folder.path().join("error.log");
    let script = folder.file("app.php", "<?php throw new Exception('not today');");
    let said = Surus::serve(&script)
        .argument("--set")
        .argument(format!("error_log={}", log.display()))
        .boot_error();
    assert!(
        said.contains("not today") && text(&log).contains("not today"),
        "{said}"
    );
}

#[test]
fn the_ready_line_is_in_the_chosen_format() {
    for mode in [Mode::Classic, Mode::Coroutine] {
        let folder = TempDir::new("ready");
        for (config, variable, is_json) in [
            ("access_log = 'json'", "", true),
            ("access_log = 'combined'", "", false),
            ("access_log = 'json'\naccess_log_file = 'a'", "", false),
            ("", "json", true),
        ] {
            let mut server = site(&folder, mode)
                .config(&format!("[server]\n{config}\n"))
                .env("SURUS_LOG_FORMAT", variable)
                .start();
            let line = server.process().stdout().lines().next().unwrap().to_owned();
            let object: Option<serde_json::Value> = serde_json::from_str(&line).ok();
            assert_eq!(object.is_some(), is_json, "{config} {variable}: {line}");
            if let Some(object) = object {
                assert!(object["message"]
                    .as_str()
                    .unwrap()
                    .starts_with("surus ready on http://"));
            }
        }
    }
}

/// In JSON each line is an object, also those of the master.
#[test]
fn all_lines_are_json_where_that_is_asked_for() {
    let folder = TempDir::new("json");
    let server = site(&folder, Mode::Classic)
        .env("SURUS_LOG_FORMAT", "json")
        .start();
    ask(&server, "name=some");
    let (code, said) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{said}");
    wait_for("there are no lines", || {
        let log = server.log();
        log.contains("some 1") && log.contains("\"message\":\"reloaded\"")
    });
    for line in server.log().lines() {
        let object: serde_json::Value = serde_json::from_str(line).expect(line);
        assert!(
            object["time"].is_string() && object["level"].is_string(),
            "{line}"
        );
    }
}

/// Lines that wait when a server ends are written first.
#[test]
fn what_is_logged_last_is_written() {
    for mode in Mode::ALL {
        let folder = TempDir::new("last");
        let (reader, mut server) = errors_into_a_pipe(site(&folder, mode));
        let reading = std::thread::spawn(move || {
            let mut all = String::new();
            File::from(reader).read_to_string(&mut all).unwrap();
            all
        });
        ask(&server, "lines=300&name=last");
        ends(&mut server);
        drop(server);
        let all = reading.join().unwrap();
        assert!(all.contains("last 300 "), "{mode:?}");
    }
}

/// Who writes to standard error past the log waits by itself.
#[test]
fn what_php_writes_itself_waits_by_itself() {
    for mode in Mode::ISOLATES {
        let folder = TempDir::new("own");
        let (reader, server) = errors_into_a_pipe(site(&folder, mode));
        let mut waiting = Vec::new();
        for _ in 0..60 {
            let mut connection = Connection::open(server.address()).unwrap();
            connection
                .write(b"GET /?lines=2&own=1 HTTP/1.1\r\nHost: a\r\n\r\n")
                .unwrap();
            waiting.push(connection);
        }
        // All that do not write are answered.
        for _ in 0..20 {
            ask(&server, "lines=2");
        }
        let reading = std::thread::spawn(move || lines(reader).len());
        for mut connection in waiting {
            connection.response("GET").unwrap().expect(200);
        }
        drop(server);
        reading.join().unwrap();
    }
}

#[test]
fn a_server_whose_output_is_stuck_is_upgraded() {
    let folder = TempDir::new("upgrade");
    let (reader, _writer, server) = into_a_pipe(site(&folder, Mode::Classic));
    ask(&server, "lines=300");
    let (code, said) = server.command(&["upgrade"]);
    assert_eq!(code, Some(0), "{said}");
    wait_up_to(
        Duration::from_secs(60),
        || server.workers().len() == 1,
        || "no worker".to_owned(),
    );
    ask(&server, "");
    drop(reader);
}
