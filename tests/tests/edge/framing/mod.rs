//! Where one request ends and the next one begins: nobody must be able to make a proxy and this server disagree on it.
//!
//! Each request of the corpus is sent with one more behind it. What the server takes for requests is held against what
//! RFC 9112 says, and against what nginx and Apache make of the same bytes, who then also pass them on to it.

mod answers;
mod combined;
mod corpus;
mod peers;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use surus_tests::fixture;
use surus_tests::surus::{Mode, Surus};

use corpus::{Case, Reading, CHUNKS, CODINGS, HEADERS, LENGTHS, LINES};
use peers::{Program, Proxy, Recorder, Seen};

/// Clients that send at a time.
const CLIENTS: usize = 24;

/// Time limits of a few seconds, for what a server takes for half a request. A client that stands still for as long is one
/// that has sent half of it.
const CONFIG: &str =
    "[server]\nheader_timeout = \"5s\"\nbody_timeout = \"5s\"\nkeep_alive = \"5s\"\n";

fn app() -> Surus {
    serve(Mode::Coroutine)
}

fn serve(mode: Mode) -> Surus {
    Surus::serve(&mode.script(&fixture("framing")))
        .mode(mode)
        .config(CONFIG)
        .start()
}

/// Sends these bytes; all that comes back until the connection is closed.
fn exchange(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    let mut talk = || -> io::Result<()> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        // Who refuses them early may have closed before the last byte.
        let _ = stream.write_all(bytes);
        stream.read_to_end(&mut answer).map(drop)
    };
    match talk() {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => {
            panic!("{}: {error}", bytes.escape_ascii())
        }
        _ => answer,
    }
}

/// The responses in these bytes: status and body.
fn responses(mut bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"))
            .and_then(|value| value.trim().parse().ok());
        bytes = &bytes[end + 4..];
        let length = usize::min(length.unwrap_or(bytes.len()), bytes.len());
        all.push((status.unwrap_or_default(), bytes[..length].to_vec()));
        bytes = &bytes[length..];
    }
    all
}

/// What the server took for requests, by its own words, and the status of its last answer.
fn seen(answer: &[u8]) -> (Vec<Seen>, Option<u16>) {
    let responses = responses(answer);
    let last = responses.last().map(|(status, _)| *status);
    let seen = responses
        .iter()
        .filter(|(status, _)| *status == 200)
        .map(|(_, body)| {
            let value: Value = serde_json::from_slice(body).unwrap_or_default();
            let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
            Seen {
                method: text("method"),
                target: text("target"),
                body: text("body").into_bytes(),
            }
        })
        .collect();
    (seen, last)
}

struct Sent {
    title: String,
    /// As the standard has it, where it was said.
    reading: Option<Reading>,
    names: [String; 2],
    bytes: Vec<u8>,
}

impl Sent {
    /// The request, and one more behind it. `number` must be unique.
    fn new(number: usize, title: String, text: &str, reading: Option<Reading>) -> Self {
        let names = [format!("case-{number:03}-"), format!("probe-{number:03}-")];
        let mut text = text.replace("NAME", &names[0]);
        text += &format!(
            "GET /{} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            names[1]
        );
        Sent {
            title,
            reading,
            names,
            bytes: text.into_bytes(),
        }
    }
}

fn corpus() -> Vec<Sent> {
    let cases = [LENGTHS, CODINGS, CHUNKS, LINES, HEADERS].concat();
    let numbered = cases.into_iter().enumerate();
    let sent = |(number, case): (usize, Case)| {
        let title = case.name.to_owned();
        Sent::new(number, title, case.bytes, Some(case.reading))
    };
    numbered.map(sent).collect()
}

fn named(body: &str, sent: &Sent) -> String {
    body.replace("NAME", &sent.names[0])
}

/// Does this with each of them, some at a time; the complaints.
fn each(sent: &[Sent], work: impl Fn(&Sent) -> Option<String> + Sync) -> Vec<String> {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    let mut complaints = Vec::new();
                    while let Some(sent) = sent.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let complaint = work(sent);
                        complaints.extend(complaint.map(|text| format!("{}: {text}", sent.title)));
                    }
                    complaints
                })
            })
            .collect();
        clients
            .into_iter()
            .flat_map(|client| client.join().expect("a client"))
            .collect()
    })
}

fn expect_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

fn are_read_right(mode: Mode) {
    let server = serve(mode);
    let complaints = each(&corpus(), |sent| {
        let answer = exchange(server.address(), &sent.bytes);
        let (seen, status) = seen(&answer);
        let bodies: Vec<&[u8]> = seen.iter().map(|seen| seen.body.as_slice()).collect();
        let right = match sent.reading? {
            Reading::Refused(expected) => bodies.is_empty() && status == Some(expected),
            Reading::Dropped => bodies.is_empty(),
            Reading::Taken(body) => bodies == [named(body, sent).as_bytes(), b""],
            Reading::Last(body) => bodies == [named(body, sent).as_bytes()],
        };
        let smuggled = seen.iter().any(|seen| seen.target.contains("smuggled"));
        (!right || smuggled).then(|| {
            format!(
                "{:?} was expected for {}, but: {}",
                sent.reading,
                sent.bytes.escape_ascii(),
                answer.escape_ascii()
            )
        })
    });
    expect_none(&complaints);
}

#[test]
fn requests_are_read_as_the_standard_says() {
    are_read_right(Mode::Coroutine);
}

#[test]
fn so_they_are_by_a_classic_site() {
    are_read_right(Mode::Classic);
}

#[test]
fn so_they_are_in_front_of_processes() {
    are_read_right(Mode::Process);
}

/// True if one has read what the other has, and perhaps refused some of it. Anything else is a danger: a byte that is a
/// request's to one and another request's to the other.
fn agree(one: &[Seen], other: &[Seen]) -> bool {
    is_part(one, other) || is_part(other, one)
}

/// All of `part` is in `whole`, in this order.
fn is_part(part: &[Seen], whole: &[Seen]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|each| whole.any(|other| other == each))
}

fn agrees_with(program: Program) {
    let server = app();
    let recorder = Recorder::start().expect("a recorder");
    let proxy = Proxy::start(program, recorder.address);
    let before = Proxy::start(program, server.address());
    let mut all = corpus();
    all.extend(combined::some(all.len()));
    let complaints = each(&all, |sent| {
        let (ours, _) = seen(&exchange(server.address(), &sent.bytes));
        exchange(proxy.address, &sent.bytes);
        let theirs = recorder.requests(&sent.names);
        if !agree(&ours, &theirs) {
            let bytes = sent.bytes.escape_ascii();
            return Some(format!("{ours:?} here, {theirs:?} there, of {bytes}"));
        }
        // What the proxy has understood, and nothing else, is what arrives behind it.
        let (behind, _) = seen(&exchange(before.address, &sent.bytes));
        (!is_part(&behind, &theirs)).then(|| format!("{theirs:?} passed on, {behind:?} arrived"))
    });
    expect_none(&complaints);
    // Else nothing was compared.
    assert_eq!(recorder.requests(&all[0].names).len(), 2);
}

#[test]
fn nginx_agrees() {
    agrees_with(Program::Nginx);
}

#[test]
fn apache_agrees() {
    agrees_with(Program::Apache);
}
