//! Bounds in number, size and time, each with its answer.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use surus_tests::http::{Connection, Request, Response};
use surus_tests::http2::{self, Client};
use surus_tests::surus::{Mode, Surus};
use surus_tests::waiting::wait_for;

use super::{get, go_on, hold, sent, server};

/// Timeouts of a second for all that a client can be slow with; they fire up to a second late.
const HASTY: &str = "[server]\nheader_timeout = \"1s\"\nbody_timeout = \"1s\"\nwrite_timeout = \"1s\"\nkeep_alive = \"1s\"\nmin_rate = \"64K\"\n";
/// Less than any of the defaults, and enough on a machine that is slow itself.
const HASTE: Duration = Duration::from_secs(10);

fn expect_busy(response: &Response) {
    assert_eq!(
        (response.status, response.header("retry-after")),
        (503, Some("1"))
    );
}

/// Waits for the end of the connection; what came before it.
fn until_closed(connection: &mut Connection) -> (io::Result<Vec<u8>>, Duration) {
    let start = Instant::now();
    (connection.rest(), start.elapsed())
}

#[test]
fn connections_are_bounded_and_idle_ones_give_way() {
    let server = server(
        Mode::Coroutine,
        "[server]\nmax_connections = 2\nkeep_alive = \"60s\"",
    )
    .start();
    let mut busy = hold(&server, "busy").expect("a connection");
    let open = || Connection::open(server.address()).expect("a connection");
    let mut idle = open();
    // Both are there, and neither has been idle for long: unless the machine stood still for seconds.
    wait_for("it gives way at once", || {
        let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        match idle.write(request).and_then(|()| idle.response("GET")) {
            Ok(answer) if answer.status == 200 => {}
            _ => idle = open(),
        }
        let other = get(&server, "/");
        if other.status != 200 {
            expect_busy(&other);
        }
        other.status == 503
    });
    wait_for("it does not give way", || get(&server, "/").status == 200);
    assert_eq!(until_closed(&mut idle).0.expect("its end"), b"");
    go_on(&server);
    assert_eq!(busy.response("GET").expect("an answer").text(), "held");
}

/// Also those of HTTP/2 whose clients do not answer when they are told to go: most likely there are none any more.
#[test]
fn idle_connections_of_http_2_give_way() {
    let server = server(
        Mode::Coroutine,
        "[server]\nmax_connections = 2\nkeep_alive = \"60s\"",
    )
    .start();
    let mut idle = [(); 2].map(|()| Client::open(server.address()).expect("a connection"));
    for client in &mut idle {
        client.get(1, "/").expect("written");
        assert_eq!(client.next(http2::DATA).expect("data").payload, b"hello");
    }
    // Each of them makes room for one, and both places are free again.
    let mut answered = 0;
    wait_for("no place is free", || {
        answered += u32::from(get(&server, "/").status == 200);
        answered == 5
    });
    for client in &mut idle {
        assert!(!client.rest().is_empty(), "it was not told");
    }
}

#[test]
fn headers_are_bounded() {
    let server = server(
        Mode::Coroutine,
        "[server]\nmax_header = \"16K\"\nmax_headers = 20",
    )
    .start();
    let get = |headers: usize, size: usize| {
        let value = "x".repeat(size);
        (0..headers)
            .fold(Request::get("/"), |request, number| {
                request.header(&format!("X-{number}"), &value)
            })
            .send(server.address())
            .status
    };
    assert_eq!(get(15, 900), 200);
    assert_eq!(get(25, 1), 431);
    assert_eq!(get(10, 2000), 431);
    // Whatever of the head is long.
    let long = "x".repeat(100_000);
    for line in [
        format!("{long} / HTTP/1.1"),
        format!("GET /{long} HTTP/1.1"),
        format!("GET /?{long} HTTP/1.1"),
        format!("GET http://{long}/ HTTP/1.1"),
    ] {
        let request = format!("{line}\r\nHost: a\r\n\r\n");
        let mut connection = sent(&server, &request).expect("a connection");
        let response = connection.response("GET").expect("an answer");
        assert!([414, 431].contains(&response.status), "{}", &line[..20]);
    }
    // Also for requests that are answered at once, and for one whose handler waits: it is not begun.
    for target in ["/", "/sleep?seconds=1"] {
        for (headers, status) in [(15, 200), (25, 431)] {
            let headers = "X-A: b\r\n".repeat(headers);
            let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{headers}\r\n");
            let mut connection = sent(&server, &request).expect("a connection");
            let response = connection.response("GET").expect("an answer");
            response.expect(status);
        }
    }
}

#[test]
fn bodies_are_bounded_announced_or_not() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "[app.app]\nmax_body = \"400K\"").start();
        for (size, status) in [(300_000, 200), (500_000, 413)] {
            let body = vec![b'x'; size];
            let request = Request::post("/body").body("text/plain", body.clone());
            request.send(server.address()).expect(status);
            let mut chunked = sent(
                &server,
                "POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
            )
            .expect("a connection");
            let mut bytes = format!("{size:x}\r\n").into_bytes();
            bytes.extend_from_slice(&body);
            bytes.extend_from_slice(b"\r\n0\r\n\r\n");
            chunked.write(&bytes).expect("write");
            chunked.response("POST").expect("an answer").expect(status);
        }
    }
}

#[test]
fn a_client_that_says_nothing_is_dropped() {
    let server = server(Mode::Coroutine, HASTY).start();
    let mut silent = Connection::open(server.address()).expect("a connection");
    let mut kept = sent(&server, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("a connection");
    kept.response("GET").expect("an answer").expect(200);
    for connection in [&mut silent, &mut kept] {
        let (rest, after) = until_closed(connection);
        assert_eq!(rest.expect("its end"), b"");
        assert!(after < HASTE, "{after:?}");
    }
}

/// One byte each tenth of a second does not keep anything open: the time counts from the beginning.
fn drip(server: &Surus, head: &str) -> (Response, Duration) {
    let mut connection = sent(server, head).expect("a connection");
    let start = Instant::now();
    while start.elapsed() < 2 * HASTE {
        thread::sleep(Duration::from_millis(100));
        if connection.write(b"x").is_err() || connection.has_input() {
            break;
        }
    }
    let response = connection.response("POST").expect("an answer");
    (response, start.elapsed())
}

#[test]
fn a_drip_of_headers_is_cut_with_408() {
    let server = server(Mode::Coroutine, HASTY).start();
    let (response, after) = drip(&server, "GET / HTTP/1.1\r\nX-Slow: ");
    assert_eq!(response.status, 408);
    assert!(after < HASTE, "{after:?}");
}

#[test]
fn a_drip_of_a_body_is_cut_with_408() {
    for mode in Mode::ISOLATES {
        let server = server(mode, HASTY).start();
        // Read before PHP begins, and while it reads.
        for length in [1000, 400_000] {
            let head =
                format!("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
            let (response, after) = drip(&server, &head);
            assert_eq!(response.status, 408, "{length}");
            assert_eq!(response.header("connection"), Some("close"));
            assert!(after < HASTE, "{after:?}");
        }
        get(&server, "/").expect(200);
    }
}

/// Slower than the timeout, but faster than the rate.
#[test]
fn a_long_body_may_take_long() {
    // Longer than the machine may stand still before much of it has come.
    let config = HASTY.replace("body_timeout = \"1s\"", "body_timeout = \"4s\"");
    let server = server(Mode::Coroutine, &config).start();
    let mut connection = sent(
        &server,
        "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n",
    )
    .expect("a connection");
    let start = Instant::now();
    for _ in 0..50 {
        connection.write(&[b'x'; 20_000]).expect("write");
        thread::sleep(Duration::from_millis(100));
    }
    assert!(start.elapsed() >= Duration::from_secs(5));
    let response = connection.response("POST").expect("an answer").expect(200);
    assert_eq!(response.json()["length"], 1_000_000);
}

#[test]
fn a_client_that_does_not_read_is_cut() {
    for mode in Mode::ISOLATES {
        let server = server(mode, HASTY).start();
        let mut connection = sent(
            &server,
            "GET /large?kilobytes=20000 HTTP/1.1\r\nHost: a\r\n\r\n",
        )
        .expect("a connection");
        connection.wait_for_cut();
        let error = connection.response("GET").expect_err("half an answer");
        let kinds = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset];
        assert!(kinds.contains(&error.kind()), "{error}");
        get(&server, "/").expect(200);
    }
}

/// Also if it asks for many small things and reads none of them: what waits for it is bounded, and then it is not read from.
#[test]
fn a_client_that_asks_on_and_does_not_read_is_cut() {
    for mode in Mode::ISOLATES {
        let mut server = server(mode, HASTY).start();
        let before = server.process().memory();
        let requests = "GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(1000);
        let mut connection = Connection::open(server.address()).expect("a connection");
        let start = Instant::now();
        // The kernel takes a few megabytes on either side before this fails.
        let error = loop {
            if let Err(error) = connection.write(requests.as_bytes()) {
                break error;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "still read from");
        };
        let kinds = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset];
        assert!(kinds.contains(&error.kind()), "{error}");
        let after = server.process().memory();
        assert!(after < before + (16 << 20), "{before} → {after} bytes");
        get(&server, "/").expect(200);
    }
}

/// A thousand clients that are as slow as they can be, each in one of three ways, take no place and little memory.
#[test]
fn a_thousand_slow_clients_cost_little() {
    let config = "[server]\nworkers = 1\nheader_timeout = \"120s\"\nbody_timeout = \"120s\"\n\
                  write_timeout = \"120s\"\n[app.app]\nmax_body = \"8M\"\n";
    let mut server = server(Mode::Coroutine, config).start();
    let before = server.process().memory();
    let clients: Vec<Connection> = (0..1000)
        .map(|number| {
            let mut connection = Connection::open(server.address()).expect("a connection");
            let head = match number % 3 {
                0 => "GET / HTTP/1.1\r\nX-Slow: ".to_owned(),
                1 => "GET /large?kilobytes=4 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(10),
                _ => format!(
                    "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n{}",
                    "x".repeat(1000)
                ),
            };
            connection.write(head.as_bytes()).expect("write");
            connection
        })
        .collect();
    get(&server, "/").expect(200);
    let after = server.process().memory();
    let each = after.saturating_sub(before) / clients.len() as u64;
    assert!(each < 100 * 1024, "{each} bytes for each client");
}

/// The same of clients that stop in the middle of long bodies, which handlers have asked for as a whole.
#[test]
fn a_thousand_long_bodies_that_do_not_come_cost_little() {
    for mode in Mode::ISOLATES {
        let config =
            "[server]\nworkers = 1\nbody_timeout = \"300s\"\n[app.app]\nrequest_timeout = \"300s\"\nresponse_disk = \"0\"\n";
        let mut server = server(mode, config).start();
        let before = server.process().memory();
        let head = "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
        let half = [head.as_bytes(), &[b'x'; 500_000]].concat();
        let mut clients: Vec<Connection> = (0..1000)
            .map(|_| {
                let mut connection = Connection::open(server.address()).expect("a connection");
                connection.write(&half).expect("write");
                connection
            })
            .collect();
        get(&server, "/").expect(200);
        let growth = server.process().memory().saturating_sub(before) >> 20;
        println!("{mode:?}: {growth} MB for a thousand halves of a megabyte");
        assert!(growth < 300, "{mode:?}: {growth} MB");
        for client in clients.iter_mut().step_by(50) {
            client.write(&[b'y'; 500_000]).expect("write");
            let answer = client.response("POST").expect("an answer").expect(200);
            assert_eq!(answer.json()["length"], 1_000_000, "{mode:?}");
        }
        assert!(
            !server.log().contains("Allowed memory size"),
            "{}",
            server.log()
        );
    }
}

/// What a client does not read waits where it is seen and counted, not in the kernel.
#[test]
fn the_kernel_keeps_little_for_a_client_that_does_not_read() {
    let server = server(Mode::Classic, HASTY).start();
    let mut connection = Connection::open_narrow(4096, server.address()).expect("a connection");
    connection
        .write(b"GET /large?kilobytes=1500 HTTP/1.1\r\nHost: a\r\n\r\n")
        .expect("write");
    connection.wait_for_cut();
    connection.response("GET").expect_err("half an answer");
}
