//! The two servers, and what must be the same in their answers.

use std::net::SocketAddr;
use std::sync::OnceLock;

use surus_tests::http::{Request, Response};
use surus_tests::reference::{Reference, SERVER_NAME};
use surus_tests::surus::Surus;

use crate::MODE;

/// The folder `fixtures/classic`, served by both.
pub(crate) fn surus() -> &'static Surus {
    static SERVER: OnceLock<Surus> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = Surus::serve(&surus_tests::fixture("classic"))
            .argument("--mode")
            .argument(MODE)
            .argument("--set")
            .argument(format!("server_name={SERVER_NAME}"))
            .start();
        warm(server.address());
        server
    })
}

/// PHP makes superglobals in another order in the request that compiles a script, before OPcache has it.
fn warm(address: SocketAddr) {
    Request::get("/info.php")
        .header("Host", SERVER_NAME)
        .send(address)
        .expect(200);
}

pub(crate) fn reference() -> SocketAddr {
    static SERVER: OnceLock<Reference> = OnceLock::new();
    SERVER
        .get_or_init(|| {
            let server = Reference::serve(&surus_tests::fixture("classic"));
            warm(server.address());
            server
        })
        .address()
}

/// What the reference and Surus answer, in this order.
pub(crate) fn both(request: Request) -> (Response, Response) {
    let request = request.header("Host", SERVER_NAME);
    (request.send(reference()), request.send(surus().address()))
}

/// Checks that both give the same answer, and returns Surus's.
pub(crate) fn same(request: Request) -> Response {
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
