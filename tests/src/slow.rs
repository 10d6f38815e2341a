//! A slow HTTP server, inside the test binary, for PHP scripts to wait for.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use crate::serving::serve;

/// Answers `GET /MILLISECONDS/TEXT` after that time with `slow TEXT`.
#[derive(Debug)]
pub struct SlowServer {
    address: SocketAddr,
}

impl SlowServer {
    /// The test binary's server.
    pub fn shared() -> &'static Self {
        static SERVER: OnceLock<SlowServer> = OnceLock::new();
        SERVER.get_or_init(Self::start)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    fn start() -> Self {
        Self {
            address: serve(answer),
        }
    }
}

fn answer(stream: &TcpStream) -> io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let mut path = request
        .split(' ')
        .nth(1)
        .unwrap_or_default()
        .splitn(3, '/')
        .skip(1);
    let delay = path.next().and_then(|delay| delay.parse().ok());
    let (status, body) = match (delay, path.next()) {
        (Some(delay), Some(text)) => {
            thread::sleep(Duration::from_millis(delay));
            ("200 OK", format!("slow {text}"))
        }
        _ => ("404 Not Found", "expected /MILLISECONDS/TEXT".to_owned()),
    };
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
