//! A server that takes connections and never says a word, and callbacks that wait below C code: whatever an extension does
//! then, requests next to it are served, and it ends.
//!
//! tests/waits/extensions runs this with all of Debian's extensions that requests can share a process with.
#![forbid(unsafe_code)]

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use surus_tests::fixture;
use surus_tests::http::Request;
use surus_tests::parallel::together;
use surus_tests::surus::{Mode, Surus};

/// How many do the same at a time: one after another they would take twice as long as any may be held up.
const AT_ONCE: usize = 4;
/// What an operation waits for is at least a second.
const HELD_UP: Duration = Duration::from_millis(1900);
/// Past the requests' deadline of eight seconds, and what they get to end.
const ENDED: Duration = Duration::from_secs(25);

fn perform(address: SocketAddr, operation: &str, port: u16) -> String {
    let target = format!("/?operation={operation}&port={port}");
    Request::get(&target).send(address).text()
}

/// The longest that a request took which waits for nothing, while `work` went on.
fn neighbour_of(address: SocketAddr, work: impl FnOnce()) -> Duration {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let neighbour = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                let begin = Instant::now();
                assert_eq!(perform(address, "tick", 0), "tick");
                longest = longest.max(begin.elapsed());
                thread::sleep(Duration::from_millis(20));
            }
            longest
        });
        work();
        is_over.store(true, Ordering::Relaxed);
        neighbour
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn wait_in(mode: Mode) {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = silent.local_addr().expect("its address").port();
    let server = Surus::serve(&mode.script(&fixture("silent")))
        .mode(mode)
        .config("[app.app]\nrequest_timeout = \"8s\"")
        .start();
    let address = server.address();
    let operations = perform(address, "", 0);
    let mut held_up = Vec::new();
    for operation in operations.split(' ') {
        let mut took = Duration::ZERO;
        let stall = neighbour_of(address, || {
            took = together(AT_ONCE, |_| perform(address, operation, port)).1;
        });
        println!(
            "{}: {operation}: {took:.2?}, neighbours {stall:.2?}",
            mode.name()
        );
        if stall > HELD_UP || took > ENDED {
            held_up.push(format!("{operation}: {took:.2?}, neighbours {stall:.2?}"));
        }
    }
    assert!(held_up.is_empty(), "{}: {held_up:#?}", mode.name());
}

#[test]
fn classic() {
    wait_in(Mode::Classic);
}

#[test]
fn coroutine() {
    wait_in(Mode::Coroutine);
}
