//! What a newcomer gets wrong: each mistake is an error or a warning at start that names the input and the mend.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{kill, Signal};
use nix::unistd::{Pid, Uid};
use surus_tests::http::Request;
use surus_tests::surus::{binary, Surus, CONTROL};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

const APP: &str = "<?php return function ($request) {
    return $request->path() === '/long' ? (string) strlen($request->body()) : 'hello';
};";

fn app(name: &str) -> TempDir {
    let folder = TempDir::new(name);
    folder.file("app.php", APP);
    folder.file("index.php", "<?php echo 'classic';");
    folder
}

fn serve(
    folder: &TempDir,
    wrapper: &[&str],
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Command {
    let mut words: Vec<String> = wrapper.iter().map(|&word| word.to_owned()).collect();
    words.push(binary().display().to_string());
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .arg("serve")
        .arg(folder.path())
        .args(["--workers", "1", "--listen", "127.0.0.1:0"])
        .args(arguments)
        .env("RUNTIME_DIRECTORY", folder.path().join(CONTROL))
        .envs(variables.iter().copied())
        .stdin(Stdio::null());
    command
}

/// It ends with 2, and says all of this.
fn refused(mut command: Command, parts: &[&str]) {
    let output = command.output().expect("the server");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for part in parts {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}

#[test]
fn a_port_in_use_is_named_with_its_setting() {
    let folder = app("in-use");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    refused(
        serve(&folder, &[], &["--listen", &address], &[]),
        &[
            &address,
            "another process does already (--listen takes another address)",
        ],
    );
    refused(
        serve(&folder, &[], &["--set", &format!("admin={address}")], &[]),
        &[
            "admin: ",
            &address,
            "(--set admin=ADDRESS:PORT takes another address)",
        ],
    );
}

#[test]
fn a_spool_folder_that_cannot_be_written_to_is_refused() {
    let folder = app("spool");
    let file = folder.file("file", "");
    let missing = folder.path().join("missing");
    for (path, why) in [
        (&missing, "there is no such folder"),
        (&file, "Not a directory"),
    ] {
        refused(
            serve(
                &folder,
                &[],
                &["--set", &format!("spool_folder={}", path.display())],
                &[],
            ),
            &[
                "spool_folder: ",
                &path.display().to_string(),
                why,
                "make the folder",
            ],
        );
    }
}

/// Workers write there, not the master.
#[test]
fn the_spool_folder_is_the_workers() {
    if !Uid::effective().is_root() {
        return;
    }
    let folder = app("spool-user");
    let spool = folder.path().join("spool");
    fs::create_dir(&spool).expect("a folder");
    let flag = format!("spool_folder={}", spool.display());
    refused(
        serve(&folder, &[], &["--set", &flag, "--set", "user=nobody"], &[]),
        &[
            "spool_folder: ",
            "Permission denied",
            "for the user that workers run as",
        ],
    );
}

/// A server with a file system of its own making, until it is dropped.
struct Started {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Started {
    /// `script` prepares the file system; the served folder is at /mnt.
    fn within(folder: &TempDir, script: &str, arguments: &[&str]) -> Started {
        let log = folder.path().join("log");
        let script = format!("mount --bind \"$1\" /mnt && {script} && shift && exec \"$@\"");
        let mut child = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script, "sh"])
            .arg(folder.path())
            .arg(binary())
            .args(["serve", "/mnt", "--workers", "1", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .env("RUNTIME_DIRECTORY", "/proc/nothing")
            .env_remove("TMPDIR")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log).expect("a log"))
            .spawn()
            .expect("the server");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let address = line
            .split_once("http://")
            .and_then(|(_, rest)| rest.split_once(' '));
        let said = fs::read_to_string(&log).unwrap_or_default();
        let (address, _) = address.unwrap_or_else(|| panic!("it is not ready: {line}{said}"));
        Started {
            address: address.parse().expect("an address"),
            child,
            log,
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("a log")
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).expect("an id");
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

/// As in a container: the self-test, OPcache and processes need no folder in /tmp; that long bodies need one is said.
#[test]
fn a_machine_that_cannot_be_written_to_serves_and_says_what_will_not_work() {
    for mode in ["coroutine", "classic", "process"] {
        let folder = app("read-only");
        let server = Started::within(
            &folder,
            "mount -t tmpfs -o ro tmpfs /tmp",
            &["--mode", mode],
        );
        Request::get("/").send(server.address).expect(200);
        let log = server.log();
        for part in [
            "spool_folder: no files can be written in /tmp",
            "Read-only",
            "set spool_folder",
        ] {
            assert!(log.contains(part), "{mode}: no {part:?} in\n{log}");
        }
        assert!(!log.contains("cannot be isolated"), "{log}");
    }
}

#[test]
fn a_machine_without_any_place_for_opcaches_locks_is_told_what_to_do() {
    let folder = app("no-place");
    let mounts = ["/tmp", "/dev/shm", "/run"].map(|at| format!("mount -t tmpfs -o ro tmpfs {at}"));
    let script = format!(
        "mount --bind \"$1\" /mnt && {} && shift && exec \"$@\"",
        mounts.join(" && ")
    );
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", &script, "sh"])
        .arg(folder.path())
        .arg(binary())
        .args(["serve", "/mnt", "--workers", "1", "--listen", "127.0.0.1:0"])
        .env("RUNTIME_DIRECTORY", "/proc/nothing")
        .env_remove("TMPDIR");
    refused(
        command,
        &[
            "OPcache",
            "docker run --tmpfs /tmp",
            "opcache.lockfile_path",
        ],
    );
}

/// What a site is bounded by, or has run with each request, is no fault of isolation.
#[test]
fn the_self_test_has_settings_of_its_own_and_leaves_nothing_behind() {
    let folder = app("self-test");
    let path = folder.path().to_str().expect("a path");
    for setting in [
        &format!("open_basedir={path}"),
        "auto_prepend_file=/nonexistent/prepend.php",
        "disable_functions=ini_set,putenv,chdir,usleep,set_error_handler",
        "output_buffering=4096",
        "session.auto_start=1",
        "memory_limit=1M",
    ] {
        let server = Surus::serve(folder.path())
            .argument("--mode")
            .argument("classic")
            .argument("--set")
            .argument(format!("php.{setting}"))
            .start();
        let log = server.log();
        assert!(!log.contains("cannot be isolated"), "{setting}: {log}");
        assert_eq!(server.workers().len(), 1, "{setting}: {log}");
        // The folder is its TMPDIR.
        let names = fs::read_dir(server.folder()).expect("the folder").flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let left: Vec<String> = names.filter(|name| name.contains("self-test")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_php_ini_name_with_a_dot_needs_no_quotes() {
    let folder = app("dotted");
    folder.file(
        "app.php",
        "<?php return fn () => ini_get('session.name') . ini_get('precision');",
    );
    let server = Surus::serve(&folder.path().join("app.php"))
        .config("[php]\nsession.name = 'mine'\nprecision = 7\n[php.opcache]\nenable = true\n")
        .start();
    let answer = Request::get("/").send(server.address()).expect(200);
    assert_eq!(answer.text(), "mine7");
    // What is no setting is still said.
    folder.file("surus.toml", "[php]\nopcache.enable = [1]\n");
    refused(
        serve(&folder, &[], &[], &[]),
        &[
            "surus.toml",
            "opcache.enable",
            "expected a string, a number or a boolean",
        ],
    );
}

/// What applications read by `get_cfg_var()` is nobody's mistake.
#[test]
fn a_misspelt_setting_of_php_is_named_with_the_right_one() {
    let folder = app("misspelt");
    let server = Surus::serve(&folder.path().join("app.php"))
        .config("[php]\nmemory_limits = '64M'\nsesion.name = 'x'\nmy.database = 'shop'\nopcache.preload_user = ''\n")
        .start();
    let log = server.log();
    for part in [
        "memory_limits: PHP has no such setting; is memory_limit meant?",
        "sesion.name: PHP has no such setting; is session.name meant?",
    ] {
        assert!(log.contains(part), "no {part:?} in\n{log}");
    }
    assert_eq!(log.matches("no such setting").count(), 2, "{log}");
}

/// Each body has a file without a name: servers are not in each other's way.
#[test]
fn servers_may_have_one_spool_folder() {
    let folder = app("one-spool");
    let spool = folder.folder("spool");
    let start = || {
        Surus::serve(&folder.path().join("app.php"))
            .config(&format!(
                "[app.app]\nspool_folder = '{}'\n",
                spool.display()
            ))
            .start()
    };
    let servers = [start(), start()];
    for length in [1_000_000, 3_000_000] {
        for server in &servers {
            let request = Request::post("/long").body("text/plain", vec![b'x'; length]);
            let answer = request.send(server.address()).expect(200);
            assert_eq!(answer.text(), length.to_string());
        }
    }
    assert_eq!(fs::read_dir(&spool).expect("the folder").count(), 0);
}

/// Not where PHP code is another user's, nor in development.
#[test]
fn that_php_runs_as_root_is_said() {
    if !Uid::effective().is_root() {
        return;
    }
    let folder = app("root");
    let warns = |server: &Surus| {
        server.log().contains("PHP runs as root") && server.log().contains("user = ")
    };
    assert!(warns(&Surus::serve(folder.path()).start()));
    assert!(!warns(&Surus::serve(folder.path()).dev().start()));
    let user = Surus::serve(folder.path()).config("[server]\nuser = 'nobody'\n");
    assert!(!warns(
        &user.argument("--mode").argument("coroutine").start()
    ));
}

#[test]
fn what_the_environment_spoils_is_named() {
    let folder = app("environment");
    for value in ["0", "no"] {
        refused(
            serve(&folder, &[], &[], &[("USE_ZEND_ALLOC", value)]),
            &["USE_ZEND_ALLOC", "unset it"],
        );
    }
    // Errors would be shown to clients.
    refused(
        serve(&folder, &[], &[], &[("SURUS_DEV", "no")]),
        &["SURUS_DEV", "\"no\""],
    );
    for limit in ["--nofile=10:10", "--nofile=40:40"] {
        refused(
            serve(&folder, &["prlimit", limit], &[], &[]),
            &["limit of open files", "LimitNOFILE="],
        );
    }
    refused(
        serve(&folder, &["prlimit", "--stack=100000"], &[], &[]),
        &["ulimit -s", "LimitSTACK="],
    );
    for variables in [
        [("LC_ALL", "xx_YY.UTF-99"), ("TZ", "Nowhere/Nothing")],
        [("LC_ALL", "tr_TR.UTF-8"), ("HOME", "")],
    ] {
        let mut server = Surus::serve(folder.path());
        for (name, value) in variables {
            server = server.env(name, value);
        }
        let server = server.start();
        Request::get("/").send(server.address()).expect(200);
    }
}

/// Descriptors 0 to 2 are not given to sockets that would then be written to.
#[test]
fn a_server_without_standard_streams_serves() {
    for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let folder = app("closed");
        let script = format!("exec \"$@\" {closed}");
        let port = surus_tests::ports::free();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut command = serve(&folder, &["sh", "-c", &script, "sh"], &[], &[]);
        let mut child = command
            .args(["--listen", &address.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server");
        wait_for("it does not serve", || {
            assert!(
                matches!(child.try_wait(), Ok(None)),
                "it has ended: {closed}"
            );
            let answer = Request::get("/").try_send(address);
            answer.is_ok_and(|answer| answer.status == 200)
        });
        let pid = i32::try_from(child.id()).expect("an id");
        kill(Pid::from_raw(pid), Signal::SIGTERM).expect("end it");
        assert!(child.wait().expect("its end").success(), "{closed}");
    }
}

/// Files and scripts that are not what they should be.
#[test]
fn what_cannot_be_read_is_named() {
    let folder = app("unreadable");
    let config = folder.path().join("surus.toml");
    fs::create_dir(&config).expect("a folder");
    refused(
        serve(&folder, &[], &[], &[]),
        &["surus.toml", "it is a folder"],
    );
    fs::remove_dir(&config).expect("remove it");
    std::os::unix::fs::symlink("nowhere", &config).expect("a link");
    refused(
        serve(&folder, &[], &[], &[]),
        &["surus.toml", "a link to a file that is not there"],
    );
    fs::remove_file(&config).expect("remove it");
    fs::write(&config, b"[server]\n# caf\xe9\n").expect("a file");
    refused(
        serve(&folder, &[], &[], &[]),
        &["surus.toml, line 2", "not UTF-8"],
    );
    fs::write(
        &config,
        b"[server]\nmax_headers = \"3\"\ncompression = \"yes\"\n",
    )
    .expect("a file");
    refused(
        serve(&folder, &[], &[], &[]),
        &[
            "max_headers = \"3\"",
            "expected a whole number",
            "expected true or false",
        ],
    );
    refused(
        serve(
            &app("numbers"),
            &[],
            &[
                "--set",
                "max_headers=-1",
                "--set",
                "max_requests=99999999999999999999",
            ],
            &[],
        ),
        &[
            "--set max_headers",
            "--set max_requests",
            "expected a whole number",
        ],
    );
}
