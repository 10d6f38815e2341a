//! What PHP code does with its operating system: descriptors, locks, signals, queues. A request gets what it asked for, or is
//! told that it cannot have it, and nobody else notices.
#![forbid(unsafe_code)]

#[path = "system/descriptors.rs"]
mod descriptors;
#[path = "system/libc.rs"]
mod libc;
#[path = "system/locks.rs"]
mod locks;
#[path = "system/partners.rs"]
mod partners;
#[path = "system/processes.rs"]
mod processes;
#[path = "system/random.rs"]
mod random;
#[path = "system/stalls.rs"]
mod stalls;
#[path = "system/waiting.rs"]
mod waiting;

use std::net::SocketAddr;

use surus_tests::fixture;
use surus_tests::http::Request;
use surus_tests::surus::{Mode, Options, Surus};

fn serve(mode: Mode) -> Options {
    Surus::serve(&mode.script(&fixture("system"))).mode(mode)
}

/// What has come of a case of `tests/fixtures/system`.
fn ask(address: SocketAddr, case: &str) -> String {
    Request::get(&format!("/?case={case}"))
        .send(address)
        .expect(200)
        .text()
}
