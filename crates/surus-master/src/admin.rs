//! The admin listener: metrics, the status as JSON and a page that shows it, over plain HTTP.
//!
//! The master serves it from its own loop, like the control socket: it only reads, answers one request for each
//! connection, and never waits for a client.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use serde_json::Value;
use socket2::SockRef;

use crate::board::Tally;
use crate::listen;

const CLIENTS: usize = 32;
const LONGEST_REQUEST: usize = 8192;
const PATIENCE: Duration = Duration::from_secs(5);
/// What a client may leave unread: no answer is longer.
const BUFFER: usize = 1024 * 1024;

const DASHBOARD: &str = include_str!("dashboard.html");

/// What is asked for, where it takes the workers' answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    Status,
    Metrics,
}

#[derive(Debug)]
struct Client {
    id: u64,
    stream: TcpStream,
    received: Vec<u8>,
    asked: bool,
    since: Instant,
}

#[derive(Debug)]
pub(crate) struct Admin {
    listener: TcpListener,
    clients: Vec<Client>,
    next: u64,
}

impl Admin {
    /// A successor binds beside its predecessor.
    pub(crate) fn bind(address: SocketAddr, upgrade: bool) -> io::Result<Self> {
        if !upgrade {
            listen::probe(address)?;
        }
        let listener = listen::listen(address)?;
        listener.set_nonblocking(true)?;
        Ok(Admin {
            listener,
            clients: Vec::new(),
            next: 0,
        })
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let clients = self.clients.iter().map(|client| client.stream.as_fd());
        std::iter::once(self.listener.as_fd()).chain(clients)
    }

    /// Accepts and reads; answers what it can, and returns what it needs the workers for.
    pub(crate) fn read(&mut self) -> Vec<(u64, Page)> {
        while let Ok((stream, _)) = self.listener.accept() {
            let usable = stream.set_nonblocking(true).is_ok()
                && SockRef::from(&stream).set_send_buffer_size(BUFFER).is_ok();
            if self.clients.len() < CLIENTS && usable {
                self.clients.push(Client {
                    id: self.next,
                    stream,
                    received: Vec::new(),
                    asked: false,
                    since: Instant::now(),
                });
                self.next += 1;
            }
        }
        let mut asked = Vec::new();
        self.clients.retain_mut(|client| {
            let alive = client.read() && client.since.elapsed() < PATIENCE;
            if client.asked || !alive {
                return alive;
            }
            match target(&client.received) {
                None => true,
                Some("/status") => {
                    client.asked = true;
                    asked.push((client.id, Page::Status));
                    true
                }
                Some("/metrics") => {
                    client.asked = true;
                    asked.push((client.id, Page::Metrics));
                    true
                }
                Some("/") => client.answer("200 OK", "text/html; charset=utf-8", DASHBOARD),
                Some(_) => client.answer("404 Not Found", "text/plain", "Not Found\n"),
            }
        });
        asked
    }

    pub(crate) fn answer(&mut self, id: u64, content_type: &str, body: &str) {
        self.clients
            .retain_mut(|client| client.id != id || client.answer("200 OK", content_type, body));
    }
}

impl Client {
    fn read(&mut self) -> bool {
        let mut bytes = [0; 1024];
        loop {
            match self.stream.read(&mut bytes) {
                // A client may close its side and still wait for its answer.
                Ok(0) => return self.asked,
                Ok(count) if self.received.len() + count <= LONGEST_REQUEST => {
                    self.received.extend_from_slice(&bytes[..count]);
                }
                Ok(_) => return false,
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }

    /// Always the end of the client: false.
    fn answer(&mut self, status: &str, content_type: &str, body: &str) -> bool {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\
             cache-control: no-store\r\nconnection: close\r\n\r\n"
        );
        let _ = self.stream.write_all(head.as_bytes());
        let _ = self.stream.write_all(body.as_bytes());
        false
    }
}

/// The target of a complete GET request.
pub(crate) fn target(received: &[u8]) -> Option<&str> {
    let head = std::str::from_utf8(received).ok()?;
    let (head, _) = head.split_once("\r\n\r\n")?;
    let mut words = head.lines().next()?.split(' ');
    match words.next()? {
        "GET" => words.next(),
        _ => Some(""),
    }
}

/// The status and the counters of the seats in Prometheus' text format.
pub(crate) fn metrics(status: &Value, tallies: &[Tally]) -> String {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, lines: Vec<(String, f64)>| {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in lines {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    };
    let seats = || {
        tallies
            .iter()
            .enumerate()
            .map(|(at, tally)| (at + 1, tally))
    };
    let responses = seats().flat_map(|(seat, tally)| {
        let line = move |(class, count)| {
            (
                format!("{{worker=\"{seat}\",code=\"{class}xx\"}}"),
                count as f64,
            )
        };
        tally.classes().map(line).collect::<Vec<_>>()
    });
    family(
        "surus_responses_total",
        "counter",
        "Responses, by worker and class of their status.",
        responses.collect(),
    );
    let gauges = [
        (
            "surus_requests_in_flight",
            "in_flight",
            "Requests that PHP has not finished.",
        ),
        (
            "surus_parked_requests",
            "parked",
            "Requests that wait, or were interrupted.",
        ),
        (
            "surus_resident_bytes",
            "rss_bytes",
            "Resident memory, what is shared included.",
        ),
        (
            "surus_php_memory_bytes",
            "php_memory_bytes",
            "Memory of the application's isolate.",
        ),
        (
            "surus_uptime_seconds",
            "uptime_s",
            "Since the worker was started.",
        ),
        (
            "surus_restarts_total",
            "restarts",
            "Workers that were replaced in this seat.",
        ),
    ];
    for (name, key, help) in gauges {
        let workers = status["workers"].as_array().into_iter().flatten();
        let lines = workers.filter_map(|worker| {
            // A seat that waits for its next process has none.
            let pid = worker["pid"].as_u64();
            let pid = pid.map_or_else(String::new, |pid| pid.to_string());
            let labels = format!("{{worker=\"{}\",pid=\"{pid}\"}}", worker["worker"]);
            Some((labels, worker[key].as_f64()?))
        });
        let kind = if name.ends_with("_total") {
            "counter"
        } else {
            "gauge"
        };
        family(name, kind, help, lines.collect());
    }
    for result in ["done", "failed"] {
        let value = status["reloads"][result].as_f64().unwrap_or(0.0);
        let name = format!("surus_reloads_{result}_total");
        family(&name, "counter", "Reloads.", vec![(String::new(), value)]);
    }
    let name = "surus_request_duration_seconds";
    let _ = writeln!(
        text,
        "# HELP {name} From a request's head to its response's.\n# TYPE {name} histogram"
    );
    for (seat, tally) in tallies
        .iter()
        .enumerate()
        .map(|(at, tally)| (at + 1, tally))
    {
        let (buckets, count, sum) = tally.histogram();
        for (bound, below) in buckets {
            let _ = writeln!(
                text,
                "{name}_bucket{{worker=\"{seat}\",le=\"{bound}\"}} {below}"
            );
        }
        let _ = writeln!(
            text,
            "{name}_bucket{{worker=\"{seat}\",le=\"+Inf\"}} {count}"
        );
        let _ = writeln!(
            text,
            "{name}_count{{worker=\"{seat}\"}} {count}\n{name}_sum{{worker=\"{seat}\"}} {sum}"
        );
    }
    text
}
