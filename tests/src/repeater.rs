//! A server, inside the test binary, whose answers repeat a word of the question after some time. Connections stay open.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use crate::serving::serve;

/// A line comes in pieces, so that a reader waits for each.
const BETWEEN: Duration = Duration::from_millis(10);

/// Answers the line `MILLISECONDS WORD` with the line `WORD`, `GET /MILLISECONDS/WORD` with a response that is `WORD`, and
/// as a memcached server whose item `MILLISECONDS_WORD` is `WORD`; after the item of the word `last` it ends the connection.
#[derive(Debug)]
pub struct Repeater {
    address: SocketAddr,
}

impl Repeater {
    /// The test binary's server.
    pub fn shared() -> &'static Self {
        static SERVER: OnceLock<Repeater> = OnceLock::new();
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

fn answer(mut stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(line) = lines.next().transpose()? {
        if let Some(key) = line.strip_prefix("get ") {
            let (delay, word) = key.split_once('_').unwrap_or(("0", key));
            wait(delay);
            let value = format!("VALUE {key} 0 {}\r\n{word}\r\nEND\r\n", word.len());
            stream.write_all(value.as_bytes())?;
            if word == "last" {
                return stream.shutdown(Shutdown::Both);
            }
            continue;
        }
        if let Some(key) = line.strip_prefix("set ") {
            lines.next().transpose()?;
            wait(key.split('_').next().unwrap_or_default());
            stream.write_all(b"STORED\r\n")?;
            continue;
        }
        let Some(path) = line.strip_prefix("GET /") else {
            let (delay, word) = line.split_once(' ').unwrap_or(("0", &line));
            wait(delay);
            for byte in format!("{word}\n").bytes() {
                stream.write_all(&[byte])?;
                thread::sleep(BETWEEN);
            }
            continue;
        };
        while lines
            .next()
            .transpose()?
            .is_some_and(|line| !line.is_empty())
        {}
        let (delay, word) = path.split_once('/').unwrap_or(("0", path));
        let word = word.split(' ').next().unwrap_or_default();
        wait(delay);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", word.len());
        stream.write_all((head + word).as_bytes())?;
    }
    Ok(())
}

fn wait(milliseconds: &str) {
    thread::sleep(Duration::from_millis(milliseconds.parse().unwrap_or(0)));
}
