//! One message wakes all that wait for it. Those that find nothing wait on, and hold up nobody.

use std::fs::{self, File};
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use nix::sys::stat::Mode as Permissions;
use surus_tests::http::encode;
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

use crate::{ask, serve};

/// Both wait; `say` brings one message at a time.
fn check(
    server: &Surus,
    case: &str,
    name: &Path,
    is_there: impl FnMut() -> bool,
    say: fn(&Path, &str),
) {
    let address: SocketAddr = server.address();
    let case = format!("{case}&name={}", encode(name.to_str().expect("UTF-8")));
    let said = thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| ask(address, &case)));
        server.wait_for_in_flight(2);
        wait_for("nobody waits", is_there);
        thread::sleep(Duration::from_millis(200));
        say(name, "one\n");
        for _ in 0..5 {
            ask(address, "pid");
            thread::sleep(Duration::from_millis(20));
        }
        say(name, "two\n");
        both.map(|each| each.join().expect("an answer").trim().to_owned())
    });
    let mut said = said.to_vec();
    said.sort();
    assert_eq!(said, ["one", "two"], "{case}");
}

fn send(to: &Path, text: &str) {
    let socket = UnixDatagram::unbound().expect("a socket");
    socket.send_to(text.as_bytes(), to).expect("a datagram");
}

fn come(to: &Path, text: &str) {
    let mut client = UnixStream::connect(to).expect("a connection");
    client.write_all(text.as_bytes()).expect("a word");
}

fn write(to: &Path, text: &str) {
    let mut fifo = File::options().write(true).open(to).expect("the FIFO");
    fifo.write_all(text.as_bytes()).expect("a line");
}

#[test]
fn one_datagram_is_one_requests() {
    let folder = TempDir::new("waiting");
    let server = serve(Mode::Coroutine).start();
    for case in ["take_datagram", "read_datagram", "take_message"] {
        let name = folder.path().join(case);
        check(&server, case, &name, || name.exists(), send);
    }
}

#[test]
fn one_client_is_one_requests() {
    let folder = TempDir::new("waiting");
    let server = serve(Mode::Coroutine).start();
    let name = folder.path().join("listener");
    check(&server, "take_client", &name, || name.exists(), come);
}

#[test]
fn one_line_of_a_fifo_is_one_requests() {
    let folder = TempDir::new("waiting");
    for mode in Mode::ISOLATES {
        let server = serve(mode).start();
        let name = folder.path().join(mode.name());
        nix::unistd::mkfifo(&name, Permissions::from_bits_truncate(0o600)).expect("a FIFO");
        let begins = format!("{}.", mode.name());
        let open = || {
            let names = fs::read_dir(folder.path()).expect("the folder");
            let names = names.map(|each| each.expect("an entry").file_name());
            let is_one = |name: &std::ffi::OsString| name.to_string_lossy().starts_with(&begins);
            names.filter(is_one).count() == 2
        };
        check(&server, "take_line", &name, open, write);
    }
}

/// A Unix socket for datagrams tells nobody that its queue has room again, but to who is connected.
#[test]
fn a_full_queue_of_datagrams_is_waited_for() {
    let folder = TempDir::new("waiting");
    let server = serve(Mode::Coroutine).start();
    let (address, name) = (server.address(), folder.path().join("queue"));
    let parameter = encode(name.to_str().expect("UTF-8"));
    let (sent, got) = thread::scope(|scope| {
        let got = scope.spawn(|| ask(address, &format!("receive_datagrams&name={parameter}")));
        wait_for("there is no socket", || name.exists());
        let sent = ask(address, &format!("send_datagrams&name={parameter}"));
        (sent, got.join().expect("an answer"))
    });
    assert_eq!((sent.as_str(), got.as_str()), ("3000", "3000"));
}
