//! Connections of one address are bounded, whichever way they come, and those of proxies are not.

use std::io;
use std::net::Ipv4Addr;

use surus_tests::http::{Connection, Response};
use surus_tests::surus::{Mode, Surus};
use surus_tests::waiting::wait_for;

use super::{get, server};

const TWO: &str = "[server]\nmax_connections_per_address = 2\nkeep_alive = '60s'\n";
const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn expect_busy(response: &Response) {
    assert_eq!(
        (response.status, response.header("retry-after")),
        (503, Some("1"))
    );
}

/// A connection from 127.0.0.`number`, and the answer to its first request.
fn open(server: &Surus, number: u8) -> io::Result<(Connection, Response)> {
    let mut connection = Connection::open_from(Ipv4Addr::new(127, 0, 0, number), server.address())?;
    connection.write(ASK)?;
    let response = connection.response("GET")?;
    Ok((connection, response))
}

/// The same of a client that a proxy names in a header of the PROXY protocol.
fn proxied(server: &Surus, client: &str) -> io::Result<(Connection, Response)> {
    let mut connection = Connection::open(server.address())?;
    let family = if client.contains(':') { "TCP6" } else { "TCP4" };
    let own = if client.contains(':') {
        "::1"
    } else {
        "127.0.0.1"
    };
    let header = format!("PROXY {family} {client} {own} 4711 80\r\n");
    connection.write(&[header.as_bytes(), ASK].concat())?;
    let response = connection.response("GET")?;
    Ok((connection, response))
}

fn refused(server: &Surus) -> u64 {
    server.status()["workers"][0]["refused"]["too_many_of_one_address"]
        .as_u64()
        .unwrap_or(0)
}

#[test]
fn connections_of_one_address_are_bounded() {
    // Wherever it is said.
    for place in ["file", "flag", "environment"] {
        let options = match place {
            "file" => server(Mode::Coroutine, "[server]\nmax_connections_per_address = 2"),
            "flag" => server(Mode::Coroutine, "")
                .argument("--set")
                .argument("max_connections_per_address=2"),
            _ => server(Mode::Coroutine, "").env("SURUS_MAX_CONNECTIONS_PER_ADDRESS", "2"),
        };
        check_connections_of_one_address(&options.start());
    }
}

fn check_connections_of_one_address(server: &Surus) {
    let open = |number| open(server, number);
    let first = open(5).expect("a connection");
    let second = open(5).expect("a connection");
    assert_eq!((first.1.status, second.1.status), (200, 200));
    expect_busy(&open(5).expect("an answer").1);
    assert_eq!(open(6).expect("a connection").1.status, 200);
    drop(first);
    wait_for("its place is not free", || {
        open(5).expect("an answer").1.status == 200
    });
}

/// Who keeps connections open without using them has them replaced by what it asks for.
#[test]
fn idle_connections_of_one_address_give_way() {
    let server = server(Mode::Coroutine, TWO).start();
    let idle = [(); 2].map(|()| open(&server, 5).expect("a connection").0);
    let other = open(&server, 6).expect("a connection").0;
    wait_for("none gives way", || {
        open(&server, 5).expect("an answer").1.status == 200
    });
    let closed = idle.iter().filter(|connection| connection.is_closed());
    assert!(closed.count() > 0);
    assert!(!other.is_closed());
}

#[test]
fn connections_of_trusted_proxies_are_not_counted() {
    let config = format!("{TWO}trusted_proxies = ['127.0.0.5']\n");
    let server = server(Mode::Coroutine, &config).start();
    let held: Vec<_> = (0..5).map(|_| open(&server, 5)).collect();
    for each in held.iter().flatten() {
        assert_eq!(each.1.status, 200);
    }
    let _others = [(); 2].map(|()| open(&server, 6).expect("a connection"));
    expect_busy(&open(&server, 6).expect("an answer").1);
}

/// Its header says whose connection it is.
#[test]
fn the_client_of_the_proxy_protocol_is_counted() {
    for proxies in ["", "trusted_proxies = ['127.0.0.1', '10.0.0.0/8']\n"] {
        let config = format!("{TWO}proxy_protocol = true\n{proxies}");
        let server = server(Mode::Coroutine, &config).start();
        for client in ["192.0.2.1", "2001:db8::1"] {
            let mut held: Vec<_> = (0..2)
                .map(|_| proxied(&server, client).expect("a connection"))
                .collect();
            assert!(held.iter().all(|(_, answer)| answer.status == 200));
            expect_busy(&proxied(&server, client).expect("an answer").1);
            held.pop();
            wait_for("its place is not free", || {
                proxied(&server, client).expect("an answer").1.status == 200
            });
        }
        // One of its own network for each client of IPv6.
        let next = proxied(&server, "2001:db8:0:1::1").expect("a connection");
        assert_eq!(next.1.status, 200);
        let several: Vec<_> = (0..4).map(|_| proxied(&server, "10.1.1.1")).collect();
        let answered = several.iter().flatten();
        let answered = answered.filter(|(_, answer)| answer.status == 200).count();
        assert_eq!(answered, if proxies.is_empty() { 2 } else { 4 });
    }
}

/// Else a proxy that does not send the header is answered nothing, and nobody knows why.
#[test]
fn who_does_not_speak_the_proxy_protocol_is_in_the_log() {
    for proxies in ["", "trusted_proxies = '10.0.0.0/8'\n"] {
        let config = format!("[server]\nproxy_protocol = true\n{proxies}");
        let server = server(Mode::Coroutine, &config).start();
        for _ in 0..3 {
            let mut connection = Connection::open(server.address()).expect("a connection");
            connection.write(ASK).expect("a request");
            assert_eq!(connection.rest().expect("its end"), b"");
        }
        let log = server.log();
        let told = "a connection from 127.0.0.1 does not begin with a header of the PROXY protocol";
        assert_eq!(log.matches(told).count(), 1, "{log}");
    }
}

/// By default: thousands of slow clients from one address are refused, be they behind a load balancer, and others are not.
#[test]
fn by_default_one_address_cannot_have_all() {
    let config = "[server]\nproxy_protocol = true\nheader_timeout = '60s'\n";
    let server = server(Mode::Coroutine, config).start();
    let slow = b"PROXY TCP4 192.0.2.1 127.0.0.1 4711 80\r\nGET / HTTP/1.1\r\nHost: a";
    let clients: Vec<_> = (0..2200)
        .map(|_| {
            let mut connection = Connection::open(server.address()).expect("a connection");
            connection.write(slow).expect("half of a request");
            connection
        })
        .collect();
    wait_for("none is refused", || refused(&server) == 2200 - 2048);
    assert_eq!(
        proxied(&server, "192.0.2.2").expect("an answer").1.status,
        200
    );
    expect_busy(&proxied(&server, "192.0.2.1").expect("an answer").1);
    drop(clients);
    let log = server.log();
    let told = "connections from 192.0.2.1 are refused (503): 2048 are open";
    assert_eq!(log.matches(told).count(), 1, "{log}");
    assert!(log.contains("trusted_proxies"), "{log}");
    wait_for("its places are not free", || {
        proxied(&server, "192.0.2.1").expect("an answer").1.status == 200
    });
}

/// A benchmark, or a web server in front that nobody has told of: both come from this machine.
#[test]
fn by_default_this_machine_is_not_counted() {
    let server = server(Mode::Coroutine, "[server]\nheader_timeout = '60s'\n").start();
    let _clients: Vec<_> = (0..2200)
        .map(|_| {
            let mut connection = Connection::open(server.address()).expect("a connection");
            connection.write(b"GET /").expect("half of a request");
            connection
        })
        .collect();
    get(&server, "/").expect(200);
    assert_eq!(refused(&server), 0);
}
