//! The machine around the server: users, service managers, sockets that were there before.

use std::env;
use std::fs;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::thread;
use std::time::Duration;

use surus_tests::http::{Connection, Request};
use surus_tests::surus::{binary, Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

#[test]
fn workers_run_as_another_user() {
    for mode in Mode::ISOLATES {
        let folder = TempDir::new("user");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        folder.file(
            "app.php",
            "<?php return fn () => posix_geteuid() . ' ' . posix_getegid();",
        );
        folder.file(
            "index.php",
            "<?php echo posix_geteuid(), ' ', posix_getegid();",
        );
        let server = Surus::serve(&mode.script(folder.path()))
            .mode(mode)
            .config("[server]\nuser = 'nobody'\ngroup = 'www-data'\n")
            .start();
        let text = Request::get("/").send(server.address()).expect(200).text();
        assert_eq!(text, "65534 33", "{mode:?}");
        for pid in server.workers() {
            assert_eq!(fs::metadata(format!("/proc/{pid}")).unwrap().uid(), 65534);
        }
        let (code, text) = server.command(&["reload"]);
        assert_eq!(code, Some(0), "{text}");
    }
}

#[test]
fn a_service_manager_is_told_when_it_is_ready_alive_and_ending() {
    let folder = TempDir::new("notify");
    folder.file("app.php", "<?php return fn () => 'hello';");
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let next = || {
        let mut bytes = [0; 256];
        let count = manager.recv(&mut bytes).expect("a message");
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    };
    let server = Surus::serve(&folder.path().join("app.php"))
        .env("NOTIFY_SOCKET", path.to_str().unwrap())
        .env("WATCHDOG_USEC", "1000000")
        .start();
    let pid = server.status()["pid"].clone();
    loop {
        let message = next();
        if message.contains("READY=1") {
            assert!(message.contains(&format!("MAINPID={pid}")), "{message}");
            break;
        }
    }
    assert_eq!(next(), "WATCHDOG=1\n");
    assert_eq!(next(), "WATCHDOG=1\n");
    server.command(&["stop"]);
    while next() != "STOPPING=1\n" {}
}

/// As systemd's socket units do it: the socket is descriptor 3, and a connection may wait in it already.
#[test]
fn a_socket_is_taken_from_who_starts_the_server() {
    let folder = TempDir::new("activation");
    folder.file("app.php", "<?php return fn () => 'hello';");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let early = thread::spawn(move || Request::get("/").send(address).expect(200).text());
    let server = Surus::serve(&folder.path().join("app.php"))
        .workers(2)
        .socket(OwnedFd::from(socket))
        .start();
    assert_eq!(early.join().unwrap(), "hello");
    for _ in 0..20 {
        assert_eq!(Request::get("/").send(address).expect(200).text(), "hello");
    }
    assert_eq!(server.status()["listen"][0], address.to_string());
}

/// One worker boots at once, the other when it is told to; meanwhile nobody is answered, not even by the one that could.
#[test]
fn nothing_is_served_or_announced_before_every_worker_has_booted() {
    let folder = TempDir::new("barrier");
    folder.file(
        "app.php",
        "<?php
        $first = @mkdir(__DIR__ . '/first');
        while (!$first && !file_exists(__DIR__ . '/go')) { usleep(5000); }
        touch(__DIR__ . ($first ? '/one-has-booted' : '/both-have-booted'));
        return fn () => 'hello';",
    );
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let exists = |name: &str| folder.path().join(name).exists();
    thread::scope(|scope| {
        let starting = scope.spawn(|| {
            Surus::serve(&folder.path().join("app.php"))
                .workers(2)
                .config("[server]\nreadiness = '/readyz'\n")
                .env("NOTIFY_SOCKET", path.to_str().unwrap())
                .socket(OwnedFd::from(socket))
                .start()
        });
        wait_for("none has booted", || exists("one-has-booted"));
        let mut early: Vec<Connection> = (0..8)
            .map(|_| {
                let mut connection = Connection::open(address).unwrap();
                let request = Request::get("/readyz").header("Connection", "close");
                connection.write(&request.bytes(address)).unwrap();
                connection
            })
            .collect();
        // Long enough for an answer, from whoever would give one.
        thread::sleep(Duration::from_millis(500));
        assert!(!early.iter().any(Connection::has_input));
        assert!(!starting.is_finished(), "it says that it is ready");
        manager.set_nonblocking(true).unwrap();
        let told = manager.recv(&mut [0; 256]);
        assert!(told.is_err(), "the service manager was told something");
        assert!(!exists("both-have-booted"));
        folder.file("go", "");
        let server = starting.join().unwrap();
        assert!(exists("both-have-booted"));
        for connection in &mut early {
            assert_eq!(connection.response("GET").unwrap().status, 200);
        }
        let mut bytes = [0; 256];
        let count = manager.recv(&mut bytes).unwrap();
        assert!(String::from_utf8_lossy(&bytes[..count]).starts_with("READY=1\n"));
        assert_eq!(server.workers().len(), 2);
    });
}

#[test]
fn a_wrong_name_is_answered_with_the_right_one_and_secrets_are_not_printed() {
    let folder = TempDir::new("check");
    folder.file("app.php", "<?php return fn () => 'hello';");
    folder.file("surus.toml", "[server]\nwokers = 2\n");
    let folder_name = folder.path().to_str().unwrap();
    let check = || Surus::run(&["check", folder_name, "--listen", "127.0.0.1:0"]);
    let (code, text) = check();
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("is `workers` meant?"), "{text}");
    folder.file(
        "surus.toml",
        "[php]\n'mysqli.default_pw' = 'hunter2'\n'session.name' = 'shown'\n",
    );
    let (code, text) = check();
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("shown") && !text.contains("hunter2"),
        "{text}"
    );
    assert!(env::var_os("SURUS_CONFIG").is_none());
    // Nor in an address, whatever the key.
    folder.file(
        "surus.toml",
        "[php]\n'session.save_path' = 'tcp://cache:6379?auth=hunter2'\n'my.database' = 'mysql://app:hunter2@db/shop'\n",
    );
    let (code, text) = check();
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("session.save_path") && !text.contains("hunter2"),
        "{text}"
    );
    // Nor where the line is wrong.
    folder.file("surus.toml", "[php]\n'mysqli.default_pw' = hunter2\n");
    let (code, text) = check();
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("line 2") && !text.contains("hunter2"),
        "{text}"
    );
}

#[test]
fn a_value_comes_from_the_nearest_source_and_says_so() {
    let folder = TempDir::new("sources");
    folder.file("app.php", "<?php return fn () => ini_get('precision');");
    folder.file(
        "surus.toml",
        "[server]\nmax_headers = 33\nkeep_alive = '7s'\n",
    );
    let check = |name: &str| {
        Command::new(binary())
            .args(["check", folder.path().to_str().unwrap()])
            .args(["--set", "keep_alive=9s", "--listen", "127.0.0.1:0"])
            .env(name, "8s")
            .output()
            .unwrap()
    };
    let output = check("SURUS_KEEP_ALIVE");
    let printed = String::from_utf8(output.stdout).unwrap();
    for (key, value) in [
        ("keep_alive", "\"9s\" # --set keep_alive"),
        ("max_headers", "33 # "),
        ("drain_timeout", "\"30s\" # default"),
    ] {
        let line = printed.lines().find(|line| line.starts_with(key));
        let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
        let expected = format!("{key} = {value}");
        assert!(words.join(" ").starts_with(&expected), "{printed}");
    }
    assert!(printed.contains("surus.toml"), "{printed}");

    let output = check("SURUS_KEEP_ALIFE");
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("is `SURUS_KEEP_ALIVE` meant?"), "{error}");

    let server = Surus::serve(folder.path())
        .argument("--set")
        .argument("php.precision=5")
        .env("SURUS_PHP", "{ precision = 6 }")
        .start();
    let answer = Request::get("/").send(server.address()).expect(200);
    assert_eq!(answer.text(), "5");
}

/// The end of a container's first process is the end of all in it, of a successor as well.
#[test]
fn the_first_process_of_a_container_is_not_replaced() {
    let folder = TempDir::new("container");
    folder.file("app.php", "<?php return fn () => (string) getmypid();");
    let mut server = Surus::serve(&folder.path().join("app.php"))
        .under(&["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"])
        .start();
    let before = Request::get("/").send(server.address()).expect(200).text();
    let (code, text) = server.command(&["upgrade"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("first process of a container"), "{text}");
    let after = Request::get("/").send(server.address()).expect(200).text();
    assert_eq!(before, after);
    assert!(server.process().ended().is_none());
    let (code, text) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{text}");
}

/// Where there are few, connections are bounded by it, idle ones give way, and whoever finds no place is told so.
#[test]
fn the_limit_of_open_files_is_a_bound_of_connections() {
    let folder = TempDir::new("files");
    folder.file(
        "app.php",
        "<?php return function ($request) { if ($request->path() === '/wait') { sleep(200); } return 'hello'; };",
    );
    let start = |limit: &str| {
        Surus::serve(&folder.path().join("app.php"))
            .under(&["prlimit", limit])
            .config("[app.app]\nrequest_timeout = '200s'\n")
            .start()
    };
    let open = |server: &Surus, path: &str| {
        let mut connection = Connection::open(server.address()).unwrap();
        let request = Request::get(path).bytes(server.address());
        connection.write(&request).unwrap();
        connection
    };
    // A low limit is raised as far as it may be.
    let server = start("--nofile=100:4000");
    let mut kept: Vec<Connection> = (0..300).map(|_| open(&server, "/")).collect();
    for connection in &mut kept {
        assert_eq!(connection.response("GET").unwrap().status, 200);
    }
    drop(server);
    let server = start("--nofile=200:200");
    assert!(server
        .log()
        .contains("max_connections is 16384, but the limit of open files allows 100"));
    let mut idle: Vec<Connection> = (0..100).map(|_| open(&server, "/")).collect();
    for connection in &mut idle {
        assert_eq!(connection.response("GET").unwrap().status, 200);
    }
    // Once they count as idle they give way, one for each that is not refused.
    let mut busy: Vec<Connection> = Vec::new();
    wait_for("they do not give way", || {
        let connection = open(&server, "/wait");
        let all = busy.len() as u64 + 1;
        wait_for("it is neither begun nor refused", || {
            connection.has_input() || server.status()["workers"][0]["in_flight"] == all
        });
        if !connection.has_input() {
            busy.push(connection);
        }
        busy.len() == 100
    });
    let refused = open(&server, "/").response("GET").unwrap();
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), Some("1"));
}
