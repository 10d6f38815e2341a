//! Clients that ask for ever, without waiting for answers: others get theirs all the same.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use surus_tests::http::{Connection, Request};
use surus_tests::surus::{Mode, Surus};

use super::server;

/// At a time: each on a connection of its own.
const GREEDY: usize = 3;

/// Requests of a neighbour, on new connections and on a kept one.
const ASKED: usize = 8;

/// For all of these. Where each of the others has its turn before a neighbour has a step of its own, that is half a second
/// at the most; where they have sixty turns it is a minute.
const PATIENCE: Duration = Duration::from_secs(20);

/// Writes requests as long as the other side takes them.
fn ask_on(mut stream: &TcpStream, target: &str) {
    let requests = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").repeat(200);
    while stream.write_all(requests.as_bytes()).is_ok() {}
}

/// Reads answers as they come, and counts their bytes.
fn read_on(mut stream: &TcpStream, seen: &AtomicU64) {
    let mut block = vec![0; 64 * 1024];
    loop {
        match stream.read(&mut block) {
            Ok(0) => return,
            Ok(count) => {
                seen.fetch_add(count as u64, Ordering::Relaxed);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Until each of them has got more than it had.
fn wait_for_more(seen: &[AtomicU64], what: &str) {
    let before: Vec<u64> = seen.iter().map(|it| it.load(Ordering::Relaxed)).collect();
    let begun = Instant::now();
    for (it, before) in seen.iter().zip(before) {
        while it.load(Ordering::Relaxed) == before {
            assert!(begun.elapsed() < PATIENCE, "{what}: it gets nothing");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Asks as others do.
fn neighbour(server: &Surus, what: &str) -> io::Result<()> {
    let begun = Instant::now();
    let mut kept = Connection::open(server.address())?;
    for _ in 0..ASKED {
        Request::get("/").send(server.address()).expect(200);
        kept.write(b"GET /status?code=200&text=kept HTTP/1.1\r\nHost: a\r\n\r\n")?;
        let answer = kept.response("GET")?.expect(200);
        assert_eq!(answer.text(), "kept");
        assert!(begun.elapsed() < PATIENCE, "{what}: {:?}", begun.elapsed());
    }
    Ok(())
}

fn beside(server: &Surus, target: &str, what: &str) -> io::Result<()> {
    let open = |address: SocketAddr| TcpStream::connect(address);
    let streams = [(); GREEDY].map(|()| open(server.address()).expect("a connection"));
    let seen = [(); GREEDY].map(|()| AtomicU64::new(0));
    thread::scope(|scope| {
        for (stream, seen) in streams.iter().zip(&seen) {
            scope.spawn(|| ask_on(stream, target));
            scope.spawn(|| read_on(stream, seen));
        }
        // Whatever happens, the threads end.
        let result = std::panic::catch_unwind(|| {
            wait_for_more(&seen, what);
            let result = neighbour(server, what);
            // They have not been put off for the neighbour's sake.
            wait_for_more(&seen, what);
            result
        });
        for stream in &streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn clients_that_never_stop_asking_do_not_stall_others() -> io::Result<()> {
    for mode in Mode::ISOLATES {
        let server = server(mode, "[server]\nliveness = \"/livez\"\n").start();
        for target in [
            "/livez",
            "/status?code=200&text=x",
            "/sleep?seconds=0.001",
            "/print?kilobytes=320",
            "/compute?milliseconds=3",
            "/compute?milliseconds=50",
        ] {
            beside(&server, target, &format!("{mode:?} {target}"))?;
        }
    }
    Ok(())
}
