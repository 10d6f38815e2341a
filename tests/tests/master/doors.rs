//! Who may speak with the master: the control socket has one owner, and the admin listener asks whom it does not know.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use surus_tests::http::{Connection, Request};
use surus_tests::ports;
use surus_tests::surus::{binary, Surus, CONTROL};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

const APP: &str = "<?php return function ($request) {
    if ($request->path() === '/long') { usleep(60_000_000); }
    return (string) getmypid();
};";

/// What `surus serve` says that does not come up.
fn refusal(folder: &TempDir, arguments: &[&str]) -> (Option<i32>, String) {
    let output = serve(folder, arguments).output().expect("the server");
    (output.status.code(), said(&output))
}

fn serve(folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command
        .arg("serve")
        .arg(folder.path().join("app.php"))
        .args(["--workers", "1", "--listen", "127.0.0.1:0"])
        .args(arguments)
        .env("RUNTIME_DIRECTORY", folder.path().join("other.run"));
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn with_control(folder: &TempDir, socket: &Path) -> Surus {
    folder.file("app.php", APP);
    Surus::serve(&folder.path().join("app.php"))
        .config(&format!("[server]\ncontrol = '{}'\n", socket.display()))
        .start()
}

fn pid_of(socket: &Path) -> serde_json::Value {
    let socket = socket.to_str().expect("a path");
    let (code, text) = Surus::run(&["status", "--json", "--control", socket]);
    assert_eq!(code, Some(0), "{text}");
    let status: serde_json::Value = serde_json::from_str(&text).expect("a status");
    status["pid"].clone()
}

#[test]
fn the_control_socket_of_a_live_server_is_not_taken() {
    let folder = TempDir::new("taken");
    let socket = folder.path().join("control.sock");
    let mut first = with_control(&folder, &socket);
    let id = first.process().id();
    let flag = format!("control={}", socket.display());
    let (code, text) = refusal(&folder, &["--set", &flag]);
    assert_eq!(code, Some(2), "{text}");
    for part in [
        socket.to_str().expect("a path"),
        &format!("the server with the process id {id} uses it"),
        "`control` takes another path",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert_eq!(pid_of(&socket), id);
    // Nor of one that has come to a stop.
    let master = Pid::from_raw(i32::try_from(id).expect("an id"));
    kill(master, Signal::SIGSTOP).expect("stop it");
    let begun = Instant::now();
    let (code, text) = refusal(&folder, &["--set", &flag]);
    kill(master, Signal::SIGCONT).expect("let it go on");
    assert_eq!(code, Some(2), "{text}");
    assert!(begun.elapsed() < Duration::from_secs(50));
    assert_eq!(pid_of(&socket), id);
    // What is no socket is nobody's to replace either.
    let file = folder.file("precious.txt", "mine");
    let (code, text) = refusal(&folder, &["--set", &format!("control={}", file.display())]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("not a socket"), "{text}");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "mine");
    let names = fs::read_dir(folder.path()).expect("the folder").flatten();
    let left: Vec<PathBuf> = names.map(|entry| entry.path()).collect();
    let is_new = |path: &&PathBuf| path.extension().is_some_and(|it| it == "new");
    assert_eq!(left.iter().find(is_new), None);
}

/// Whoever was killed has left its socket. Of many that start at once one gets the name, and the others say whose it is.
#[test]
fn a_socket_that_was_left_behind_is_replaced_once() {
    let folder = TempDir::new("stale");
    folder.file("app.php", APP);
    let socket = folder.path().join("control.sock");
    drop(UnixListener::bind(&socket).expect("a socket"));
    let flag = format!("control={}", socket.display());
    let mut servers: Vec<_> = (0..4)
        .map(|_| {
            serve(&folder, &["--set", &flag])
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .expect("a server")
        })
        .collect();
    wait_for("none of them, or several, have the name", || {
        let ended = servers.iter_mut().map(|server| server.try_wait());
        ended.filter(|status| matches!(status, Ok(Some(_)))).count() == 3
    });
    let owner = pid_of(&socket);
    let mut refused = 0;
    for mut server in servers {
        if owner == server.id() {
            let pid = Pid::from_raw(i32::try_from(server.id()).expect("an id"));
            kill(pid, Signal::SIGTERM).expect("end it");
            server.wait().expect("its end");
            continue;
        }
        let output = server.wait_with_output().expect("its end");
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(
            text.contains(&format!("process id {owner} uses it")),
            "{text}"
        );
        refused += 1;
    }
    assert_eq!(refused, 3);
    assert!(!socket.exists());
}

/// Its port is free again while its last requests run, and so is the name of its socket; its end does not take the name
/// from who has it then.
#[test]
fn a_server_that_ends_gives_its_socket_up() {
    let folder = TempDir::new("ending");
    let socket = folder.path().join("control.sock");
    let mut first = with_control(&folder, &socket);
    let mut last = Connection::open(first.address()).expect("a connection");
    let request = Request::get("/long").bytes(first.address());
    last.write(&request).expect("a request");
    first.wait_for_in_flight(1);
    let path = socket.to_str().expect("a path");
    let (code, text) = Surus::run(&["stop", "--control", path]);
    assert_eq!(code, Some(0), "{text}");
    let mut second = with_control(&folder, &socket);
    assert_eq!(pid_of(&socket), second.process().id());
    first.process().signal(Signal::SIGTERM);
    wait_for("it does not end", || first.process().ended().is_some());
    assert_eq!(pid_of(&socket), second.process().id());
}

#[test]
fn a_server_is_found_by_its_number_wherever_its_socket_is() {
    let folder = TempDir::new("by-number");
    let socket = folder.path().join("elsewhere/control.sock");
    let mut server = with_control(&folder, &socket);
    let id = server.process().id().to_string();
    let (code, text) = server.command(&["reload", "--pid", &id]);
    assert_eq!((code, text.as_str()), (Some(0), "reloaded\n"));
    // Nor need it be said which one, where there is one.
    let (code, text) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{text}");
    let link = server.folder().join(CONTROL).join(format!("{id}.sock"));
    assert!(link.is_symlink());
    let (code, text) = server.command(&["stop", "--pid", &id]);
    assert_eq!(code, Some(0), "{text}");
    wait_for("it does not end", || server.process().ended().is_some());
    assert!(!link.is_symlink() && !socket.exists());
    let (code, text) = server.command(&["status", "--pid", &id]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains(&id) && text.contains("--control"), "{text}");
}

#[test]
fn an_upgrade_takes_a_socket_of_a_chosen_name_along() {
    let folder = TempDir::new("upgraded");
    let socket = folder.path().join("control.sock");
    let server = with_control(&folder, &socket);
    let before = pid_of(&socket);
    let path = socket.to_str().expect("a path");
    let (code, text) = Surus::run(&["upgrade", "--control", path]);
    assert_eq!(code, Some(0), "{text}");
    let after = pid_of(&socket);
    assert_ne!(before, after);
    let (code, text) = server.command(&["reload", "--pid", &after.to_string()]);
    assert_eq!(code, Some(0), "{text}");
}

/// Who asks for an upgrade need not look for the log.
#[test]
fn an_upgrade_says_why_it_failed() {
    let folder = TempDir::new("why");
    folder.file("app.php", APP);
    let good = "[server]\nworkers = 1\n";
    let file = folder.file("surus.toml", good);
    let server = Surus::serve(folder.path()).start();
    let expect = |parts: &[&str]| {
        let (code, text) = server.command(&["upgrade"]);
        assert_eq!(code, Some(1), "{text}");
        for part in parts {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
    };
    fs::write(&file, "[server]\nwokers = 1\n").expect("a file");
    expect(&["exited with 2", "surus.toml", "is `workers` meant?"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    fs::write(&file, format!("[server]\nadmin = '{address}'\n")).expect("a file");
    expect(&[
        "exited with 2",
        "admin: cannot listen on",
        &address.to_string(),
    ]);
    fs::write(&file, good).expect("a file");
    fs::write(folder.path().join("app.php"), "<?php return fn () => ;").expect("a file");
    expect(&["exited with 1", "app.php did not boot", "syntax error"]);
    fs::write(&file, "[php]\n'opcache.lockfile_path' = '/proc/nothing'\n").expect("a file");
    expect(&["its last messages are in the log"]);
    assert!(server.log().contains("lock file"), "{}", server.log());
    fs::write(&file, good).expect("a file");
    fs::write(folder.path().join("app.php"), APP).expect("a file");
    let (code, text) = server.command(&["upgrade"]);
    assert_eq!(code, Some(0), "{text}");
}

/// Half of a request, a hundred times, keeps nobody from his answer.
#[test]
fn silent_clients_do_not_hold_up_the_control_socket() {
    let folder = TempDir::new("silent");
    folder.file("app.php", APP);
    let mut server = Surus::serve(folder.path()).start();
    let id = server.process().id();
    let socket = server.folder().join(CONTROL).join(format!("{id}.sock"));
    let silent: Vec<UnixStream> = (0..100)
        .map(|_| {
            let stream = UnixStream::connect(&socket).expect("a connection");
            std::io::Write::write_all(&mut &stream, b"\"sta").expect("half of it");
            stream
        })
        .collect();
    for _ in 0..10 {
        let (code, text) = server.command(&["status"]);
        assert_eq!(code, Some(0), "{text}");
    }
    drop(silent);
    let (code, text) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{text}");
}

fn with_admin(folder: &TempDir, settings: &str) -> (Surus, SocketAddr) {
    folder.file("app.php", APP);
    let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()));
    let server = Surus::serve(&folder.path().join("app.php"))
        .config(&format!("[server]\nadmin = '{admin}'\n{settings}"))
        .start();
    (server, admin)
}

#[test]
fn an_admin_listener_that_others_reach_needs_a_token() {
    let folder = TempDir::new("public-admin");
    folder.file("app.php", APP);
    for address in ["0.0.0.0:0", "[::]:0", "[::ffff:10.0.0.1]:0"] {
        let (code, text) = refusal(&folder, &["--set", &format!("admin={address}")]);
        assert_eq!(code, Some(2), "{text}");
        assert!(
            text.contains("set admin_token (SURUS_ADMIN_TOKEN)"),
            "{text}"
        );
    }
    let (code, text) = refusal(&folder, &["--set", "admin=9", "--set", "admin_token=short"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("at least 16"), "{text}");
    let token = "0123456789abcdef-secret";
    let (code, text) = Surus::run(&[
        "check",
        folder.path().to_str().expect("a path"),
        "--listen",
        "127.0.0.1:0",
        "--set",
        &format!("admin_token={token}"),
        "--set",
        "admin=0.0.0.0:9",
    ]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("admin_token = \"(not shown)\""), "{text}");

    let port = ports::free();
    let server = Surus::serve(&folder.path().join("app.php"))
        .config(&format!(
            "[server]\nadmin = '0.0.0.0:{port}'\nadmin_token = '{token}'\n"
        ))
        .start();
    let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    for path in ["/", "/status", "/metrics", "/nothing"] {
        let answer = Request::get(path).send(admin).expect(401);
        assert!(answer.header("www-authenticate").is_some());
        assert!(!answer.text().contains(token));
        Request::get(path)
            .header("Authorization", "Bearer 0123456789abcdef-secreT")
            .send(admin)
            .expect(401);
    }
    let bearer = format!("Bearer {token}");
    let status = Request::get("/status").header("Authorization", &bearer);
    let status = status.send(admin).expect(200).json();
    assert_eq!(status["pid"], server.status()["pid"]);
    assert!(!status.to_string().contains(token));
    // A browser's way: any name, the token as the password. Whoever has it may call the server as they like.
    Request::get("/metrics")
        .header(
            "Authorization",
            "Basic bWU6MDEyMzQ1Njc4OWFiY2RlZi1zZWNyZXQ=",
        )
        .header("Host", "metrics.example:9090")
        .send(admin)
        .expect(200);
}

/// A page that a visitor's browser has loaded from elsewhere may have its name lead to 127.0.0.1 later ("DNS rebinding").
#[test]
fn the_admin_listener_is_not_for_pages_from_elsewhere() {
    let folder = TempDir::new("rebinding");
    let (_server, admin) = with_admin(&folder, "");
    for path in ["/", "/status", "/metrics"] {
        for host in [
            "evil.example",
            "evil.example:9090",
            "localhost.evil.example",
        ] {
            let answer = Request::get(path)
                .header("Host", host)
                .send(admin)
                .expect(403);
            assert!(answer.text().contains("admin_token"));
        }
        for host in ["localhost", &admin.to_string(), "[::1]:9090"] {
            Request::get(path)
                .header("Host", host)
                .send(admin)
                .expect(200);
        }
    }
}

/// Tokens of password resets, names, searches: they are the visitors'. The control socket's owner sees them.
#[test]
fn the_admin_listener_hides_queries() {
    let folder = TempDir::new("queries");
    let (server, admin) = with_admin(&folder, "");
    let mut waiting = Connection::open(server.address()).expect("a connection");
    let request = Request::get("/long?token=hunter2").bytes(server.address());
    waiting.write(&request).expect("a request");
    server.wait_for_in_flight(1);
    let seen = |status: serde_json::Value| {
        status["workers"][0]["requests_in_flight"][0]["uri"]
            .as_str()
            .map(str::to_owned)
    };
    wait_for("it is not shown", || {
        let web = Request::get("/status").send(admin).expect(200).json();
        assert!(!web.to_string().contains("hunter2"));
        seen(web).as_deref() == Some("/long?…")
    });
    assert_eq!(
        seen(server.status()).as_deref(),
        Some("/long?token=hunter2")
    );
}

/// So many that there are no places left, from one address, for as long as it takes.
#[test]
fn silent_clients_do_not_hold_up_the_admin_listener() {
    let folder = TempDir::new("slowloris");
    let (server, admin) = with_admin(&folder, "");
    let silent: Vec<Connection> = (0..200)
        .map(|_| {
            let mut connection = Connection::open(admin).expect("a connection");
            // Some are sent away while they still speak.
            let _ = connection.write(b"GET /sta");
            connection
        })
        .collect();
    for _ in 0..5 {
        Request::get("/status").send(admin).expect(200);
        assert_eq!(server.workers().len(), 1);
    }
    // They are sent away even where nothing else wakes the master.
    let begun = Instant::now();
    let open = |id: u32| {
        let files = fs::read_dir(format!("/proc/{id}/fd")).expect("its files");
        files.count()
    };
    let mut server = server;
    let id = server.process().id();
    let few = 40;
    while open(id) > few {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", open(id));
        thread::sleep(Duration::from_millis(50));
    }
    drop(silent);
}
