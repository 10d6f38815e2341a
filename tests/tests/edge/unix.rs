//! A Unix socket is listened on as an address is.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{symlink, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

use super::server;

/// A server that listens here as well.
fn listening(mode: Mode, path: &Path, config: &str) -> Surus {
    server(mode, config)
        .workers(2)
        .argument("--listen")
        .argument(format!("unix:{}", path.display()))
        .start()
}

/// What comes back for these bytes until the server closes.
fn exchange(path: &Path, bytes: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(path).expect("a connection");
    let soon = Some(Duration::from_secs(20));
    stream.set_read_timeout(soon).expect("a timeout");
    stream.write_all(bytes).expect("a request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    answer
}

/// `$_SERVER` as PHP has it for a request with these headers.
fn seen(path: &Path, headers: &str) -> Value {
    let head = format!("GET /vars HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}\r\n");
    let answer = exchange(path, head.as_bytes());
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let body = &answer[end.expect("a head") + 4..];
    serde_json::from_slice(body).unwrap_or_else(|_| panic!("{}", answer.escape_ascii()))
}

#[test]
fn requests_come_over_a_unix_socket() {
    for mode in Mode::ALL {
        let folder = TempDir::new("unix");
        let path = folder.path().join("surus.sock");
        // What a server has left behind.
        drop(UnixListener::bind(&path).expect("a socket"));
        let mut server = listening(mode, &path, "");
        let found = fs::metadata(&path).expect("a socket");
        assert_eq!(found.permissions().mode() & 0o777, 0o666);
        for _ in 0..10 {
            let vars = seen(&path, "X-Forwarded-For: 192.0.2.1\r\n");
            assert_eq!(vars["REMOTE_ADDR"], "unix:", "{mode:?}");
            assert_eq!(vars["REMOTE_PORT"], "");
            assert_eq!(vars["SERVER_PORT"], "80");
            assert_eq!(vars["HTTP_X_FORWARDED_FOR"], "192.0.2.1");
        }
        assert_eq!(
            super::get(&server, "/vars").expect(200).json()["REMOTE_ADDR"],
            "127.0.0.1"
        );
        assert_eq!(
            server.status()["listen"][0],
            format!("unix:{}", path.display())
        );

        server.process().signal(Signal::SIGTERM);
        wait_for("the socket stays", || !path.exists());
    }
}

#[test]
fn who_comes_over_it_may_be_trusted() {
    let folder = TempDir::new("unix");
    let path = folder.path().join("surus.sock");
    let _server = listening(
        Mode::Coroutine,
        &path,
        "[server]\ntrusted_proxies = 'unix:'\n",
    );
    let vars = seen(
        &path,
        "X-Forwarded-For: 6.6.6.6, 192.0.2.1\r\nX-Forwarded-Proto: https\r\n",
    );
    assert_eq!(vars["REMOTE_ADDR"], "192.0.2.1");
    assert_eq!(
        (&vars["HTTPS"], &vars["SERVER_PORT"]),
        (&"on".into(), &"443".into())
    );
}

/// Bodies are read by helper threads and spliced, and files are sent by the kernel, as over TCP.
#[test]
fn long_bodies_go_over_it_both_ways() {
    let folder = TempDir::new("unix");
    let path = folder.path().join("surus.sock");
    let site = TempDir::new("site");
    let text: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    fs::write(site.path().join("long.bin"), &text).expect("a file");
    site.file(
        "index.php",
        "<?php echo md5(file_get_contents('php://input'));",
    );
    let _server = Surus::serve(site.path())
        .argument("--listen")
        .argument(format!("unix:{}", path.display()))
        .start();
    let answer = exchange(
        &path,
        b"GET /long.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    );
    assert!(answer.ends_with(&text), "{}", answer.len());
    let head = format!(
        "POST /index.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        text.len()
    );
    let answer = exchange(&path, &[head.as_bytes(), &text].concat());
    assert!(
        answer.starts_with(b"HTTP/1.1 200 "),
        "{}",
        answer.escape_ascii()
    );
    let twice = exchange(&path, &[head.as_bytes(), &text].concat());
    assert_eq!(answer[answer.len() - 32..], twice[twice.len() - 32..]);
}

#[test]
fn nobody_elses_file_is_taken_away() {
    let folder = TempDir::new("unix");
    let site = folder.file("app.php", "<?php return fn () => 'here';");
    let refused = |path: &Path| {
        let listen = format!("unix:{}", path.display());
        let words = ["serve", site.to_str().expect("UTF-8"), "--listen", &listen];
        let (code, text) = Surus::run(&words);
        assert_ne!(code, Some(0), "{text}");
        text
    };
    let file = folder.file("file", "mine");
    assert!(refused(&file).contains("a file that is not a socket"));
    assert_eq!(fs::read_to_string(&file).expect("the file"), "mine");

    let path = folder.path().join("other.sock");
    let other = UnixListener::bind(&path).expect("a socket");
    assert!(refused(&path).contains("another process does already"));
    other.set_nonblocking(true).expect("a socket");
    // It was asked whether it is there, and is.
    other.accept().expect("a connection");
    UnixStream::connect(&path).expect("the other one's");

    let link = folder.path().join("link.sock");
    symlink(&path, &link).expect("a link");
    assert!(refused(&link).contains("a file that is not a socket"));
    assert!(refused(&folder.path().join("none/a.sock")).contains("no such folder"));
    assert!(refused(Path::new("relative.sock")).contains("begins with /"));
}
