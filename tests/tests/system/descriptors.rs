//! `select` sees descriptors below 1024, so PHP's own are low, and the server's are not.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use surus_tests::http::{Connection, Request};
use surus_tests::mariadb::MariaDb;
use surus_tests::surus::Mode;

use crate::{ask, serve};

const CLIENTS: usize = 1200;

/// Descriptors of a process that `select` could see.
fn low(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("the worker lives")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|fd| *fd < 1024)
        .count()
}

/// So many connections, each of which has had an answer.
fn clients(address: SocketAddr) -> Vec<Connection> {
    let connect = |_| {
        let mut client = Connection::open(address).expect("connect");
        client
            .write(b"GET /?case=pid HTTP/1.1\r\nhost: a\r\n\r\n")
            .expect("ask");
        client.response("GET").expect("an answer");
        client
    };
    (0..CLIENTS).map(connect).collect()
}

fn check(mode: Mode) {
    let server = serve(mode).start();
    let address = server.address();
    let clients = clients(address);
    assert_eq!(ask(address, "stream_select"), "ready: 1");
    assert_eq!(ask(address, "socket_select"), "ready: 1");
    let port = MariaDb::shared().port();
    let said = Request::get(&format!("/?case=mysqli_poll&port={port}")).send(address);
    assert_eq!(said.expect(200).text(), "ready: 1");
    let worker = server.workers()[0];
    assert!(low(worker) < 100, "{} low descriptors", low(worker));
    drop(clients);
}

#[test]
fn select_works_beside_many_clients_in_classic_mode() {
    check(Mode::Classic);
}

#[test]
fn select_works_beside_many_clients_in_coroutine_mode() {
    check(Mode::Coroutine);
}

#[test]
fn select_works_beside_many_clients_in_processes() {
    check(Mode::Process);
}

/// Where it is PHP that has too many, it says so, at once.
#[test]
fn a_descriptor_that_is_too_high_is_an_exception() {
    for mode in Mode::ALL {
        let server = serve(mode).start();
        for case in ["high_stream_select", "high_socket_select"] {
            let said = ask(server.address(), case);
            assert!(
                said.starts_with("Descriptor ")
                    && said.contains(" cannot be waited for: select() takes those below 1024")
                    && said.ends_with(", after 0 s"),
                "{} {case}: {said}",
                mode.name()
            );
            let log = server.log();
            assert!(!log.contains("FD_SETSIZE"), "{log}");
        }
    }
}

/// PHP's collector counts objects; files and connections are fewer, and worth more.
#[test]
fn what_cycles_keep_open_is_closed_in_time() {
    let server = serve(Mode::Coroutine).start();
    let address = server.address();
    let worker = server.workers()[0];
    for _ in 0..200 {
        assert_eq!(ask(address, "no_cycle"), "0", "nothing was to be collected");
    }
    let before = low(worker);
    for _ in 0..400 {
        ask(address, "cycle");
        let now = low(worker);
        assert!(now < before + 80, "{before} open, then {now}");
    }
    let runs: usize = ask(address, "no_cycle").parse().expect("a number");
    assert!(runs < 60, "{runs} collections for 400 cycles");
}

/// Answers each call on a connection, and keeps it.
fn answer_soap(stream: TcpStream) -> Option<()> {
    const ANSWER: &str = "<e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\"><e:Body><r><return>yes</return></r></e:Body></e:Envelope>";
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().ok()?;
            }
        }
        reader.read_exact(&mut vec![0; length]).ok()?;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {}\r\nConnection: keep-alive\r\n\r\n", ANSWER.len());
        writer.write_all((head + ANSWER).as_bytes()).ok()?;
    }
}

/// A SoapClient keeps its connection, and PHP closes it with the script: here with the client.
#[test]
fn connections_of_soap_clients_end_with_them() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer_soap(stream));
        }
    });
    for mode in [Mode::Coroutine, Mode::Classic] {
        let server = serve(mode).start();
        let worker = server.workers()[0];
        let call = || {
            let said = Request::get(&format!("/?case=soap&port={port}")).send(server.address());
            assert_eq!(said.expect(200).text(), "yes yes yes", "{}", mode.name());
        };
        call();
        let before = low(worker);
        (0..50).for_each(|_| call());
        let after = low(worker);
        assert!(after <= before + 3, "{before} open, then {after}");
    }
}
