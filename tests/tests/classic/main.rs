//! Classic mode behaves like php-fpm: every request here goes to Surus and to nginx + php-fpm, which serve the
//! same folder, and the answers must be the same.
#![forbid(unsafe_code)]

mod clients;
mod endings;
mod files;
mod headers;
mod server;
mod sessions;
mod uploads;

use std::net::SocketAddr;
use std::sync::OnceLock;

use surus_tests::http::{Request, Response};
use surus_tests::reference::{Reference, SERVER_NAME};
use surus_tests::surus::{Mode, Surus};

/// The folder `fixtures/classic`, served by both.
fn surus() -> &'static Surus {
    static SERVER: OnceLock<Surus> = OnceLock::new();
    SERVER.get_or_init(|| {
        Surus::serve(&surus_tests::fixture("classic"))
            .mode(Mode::Classic)
            .start()
    })
}

fn reference() -> SocketAddr {
    static SERVER: OnceLock<Reference> = OnceLock::new();
    SERVER
        .get_or_init(|| Reference::serve(&surus_tests::fixture("classic")))
        .address()
}

/// What the reference and Surus answer, in this order.
fn both(request: Request) -> (Response, Response) {
    let request = request.header("Host", SERVER_NAME);
    (request.send(reference()), request.send(surus().address()))
}

/// Checks that both give the same answer, and returns Surus's.
fn same(request: Request) -> Response {
    let target = request.target().to_owned();
    let (expected, got) = both(request);
    assert_eq!(visible(&expected), visible(&got), "{target}");
    got
}

/// Everything of a response that the application decides.
fn visible(response: &Response) -> (u16, Vec<(String, String)>, String) {
    // The server's own: its name, the time, and how the body is framed.
    const FRAMING: [&str; 7] = [
        "server",
        "date",
        "connection",
        "keep-alive",
        "transfer-encoding",
        "content-length",
        "accept-ranges",
    ];
    let mut headers: Vec<_> = response
        .headers
        .iter()
        .map(|(name, value)| (name.to_lowercase(), value.clone()))
        .filter(|(name, _)| !FRAMING.contains(&name.as_str()))
        .collect();
    // Stable: values of one name keep their order.
    headers.sort_by(|one, other| one.0.cmp(&other.0));
    (response.status, headers, response.text())
}
