//! Servers inside the test binary.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

/// Answers each client on a thread of its own, for as long as the binary runs.
pub(crate) fn serve(answer: fn(&TcpStream) -> io::Result<()>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen");
    let address = listener.local_addr().expect("the address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that leaves early is nothing to the server.
            thread::spawn(move || answer(&stream).ok());
        }
    });
    address
}
