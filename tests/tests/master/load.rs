//! Constant load on a server while something happens to it, and what became of every request.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use surus_tests::http::{Connection, Request};

/// What clients have seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// How often each body was answered with 200.
    pub(crate) bodies: BTreeMap<String, usize>,
    pub(crate) failures: Vec<String>,
    pub(crate) slowest: Duration,
}

impl Seen {
    pub(crate) fn answered(&self) -> usize {
        self.bodies.values().sum()
    }

    fn add(&mut self, other: Seen) {
        for (body, count) in other.bodies {
            *self.bodies.entry(body).or_default() += count;
        }
        self.failures.extend(other.failures);
        self.slowest = self.slowest.max(other.slowest);
    }
}

/// Runs `clients`, half of them with kept connections, half with one for each request, until `act` has ended. The last
/// request of each begins after that.
pub(crate) fn during<T>(
    address: SocketAddr,
    clients: usize,
    target: &str,
    act: impl FnOnce() -> T,
) -> (T, Seen) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        // Also when `act` panics: else the clients would go on for ever.
        let stopping = Stopping(&stop);
        let clients: Vec<_> = (0..clients)
            .map(|number| {
                scope.spawn({
                    let stop = &stop;
                    move || client(address, target, number % 2 == 0, stop)
                })
            })
            .collect();
        let result = act();
        drop(stopping);
        let mut seen = Seen::default();
        for client in clients {
            seen.add(client.join().expect("a client"));
        }
        (result, seen)
    })
}

/// Sets the flag when it is dropped.
pub(crate) struct Stopping<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn client(address: SocketAddr, target: &str, keep: bool, stop: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    let mut kept = None;
    loop {
        let is_last = stop.load(Ordering::Relaxed);
        let begun = Instant::now();
        match ask(address, target, keep, &mut kept) {
            Ok((200, body)) => *seen.bodies.entry(body).or_default() += 1,
            Ok((status, body)) => seen.failures.push(format!("{status} {body}")),
            Err(error) => {
                kept = None;
                seen.failures.push(error.to_string());
            }
        }
        seen.slowest = seen.slowest.max(begun.elapsed());
        if is_last {
            break;
        }
        thread::sleep(Duration::from_millis(2));
    }
    seen
}

fn ask(
    address: SocketAddr,
    target: &str,
    keep: bool,
    kept: &mut Option<Connection>,
) -> io::Result<(u16, String)> {
    // An idle connection may be closed while nobody looks: no request is lost by that.
    let mut connection = match kept.take() {
        Some(connection) if !connection.is_closed() => connection,
        _ => Connection::open(address)?,
    };
    let mut request = Request::get(target);
    if !keep {
        request = request.header("Connection", "close");
    }
    connection.write(&request.bytes(address))?;
    let response = connection.response("GET")?;
    let last = response
        .header("connection")
        .is_some_and(|value| value.eq_ignore_ascii_case("close"));
    if keep && !last {
        *kept = Some(connection);
    }
    Ok((response.status, response.text()))
}
