//! Webhooks: what happens in channels is told to the server of an application, in batches that are signed.
//!
//! Of what all workers know, one tells; when it ends or dies, another one goes on. Each batch is sent until it is accepted, as
//! often as [`PAUSES`] allow; then it is dropped, as is what does not fit into the queue. Both are logged.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{json, Value};
use surus_master::Address;
use surus_pusher::{App, Happened, Reporter};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout, Instant};

use crate::config::{Config, Hook};

/// How long events wait for each other.
const SOON: Duration = Duration::from_millis(50);

/// Events of one request.
const BATCH: usize = 100;

/// Bytes of events that wait; then they are dropped.
const MOST: usize = 4 * 1024 * 1024;

/// Before each attempt.
const PAUSES: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(25),
];

/// For one attempt.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of the longest answer that another one follows.
const LONGEST_HEAD: usize = 64 * 1024;

/// How long a worker that ends goes on to send.
const LAST_WORDS: Duration = Duration::from_secs(3);

thread_local! {
    static SENDERS: RefCell<Vec<Rc<Sender>>> = const { RefCell::new(Vec::new()) };
    /// The worker ends.
    static ENDS: Cell<bool> = const { Cell::new(false) };
}

/// Those of all applications.
struct Webhooks(Vec<Option<Rc<Sender>>>);

impl Reporter for Webhooks {
    fn report(&self, app: usize, happened: Happened) {
        let Some(sender) = self.0.get(app).and_then(Option::as_ref) else {
            return;
        };
        let is_wanted = sender
            .hook
            .events
            .iter()
            .any(|name| name == happened.name());
        if is_wanted && (happened.is_here_only() || tells()) {
            // It always serialises.
            sender.add(serde_json::to_value(happened).unwrap_or_default());
        }
    }
}

/// What one application is told.
struct Sender {
    app: App,
    hook: Hook,
    to: Target,
    queue: RefCell<VecDeque<Value>>,
    /// Bytes, about.
    waiting: Cell<usize>,
    is_sending: Cell<bool>,
    has_lost: Cell<bool>,
    more: Notify,
}

/// Where requests go.
#[derive(Clone, Debug)]
enum Target {
    Tcp(String, u16),
    Unix(PathBuf),
}

/// `None`: nobody is to be told anything.
pub(super) fn reporter(config: &Config) -> Option<Box<dyn Reporter>> {
    let senders = config.pushers.iter().map(|pusher| {
        let hook = pusher.webhook.clone()?;
        let to = match &hook.host {
            Some((host, port)) => Target::Tcp(host.clone(), *port),
            None => own(config.listen.first()?),
        };
        let sender = Rc::new(Sender {
            app: pusher.app.clone(),
            hook,
            to,
            queue: RefCell::default(),
            waiting: Cell::new(0),
            is_sending: Cell::new(false),
            has_lost: Cell::new(false),
            more: Notify::new(),
        });
        SENDERS.with_borrow_mut(|all| all.push(sender.clone()));
        let sending = sender.clone();
        spawn_local(async move { sending.run().await });
        Some(sender)
    });
    let senders: Vec<_> = senders.collect();
    let reporter = || Box::new(Webhooks(senders.clone())) as Box<dyn Reporter>;
    senders.iter().any(Option::is_some).then(reporter)
}

/// This server.
fn own(address: &Address) -> Target {
    match address {
        Address::Unix(path) => Target::Unix(path.clone()),
        Address::Tcp(address) if address.ip().is_unspecified() => {
            Target::Tcp(Ipv4Addr::LOCALHOST.to_string(), address.port())
        }
        Address::Tcp(address) => Target::Tcp(address.ip().to_string(), address.port()),
    }
}

/// Whether this worker tells what all of them see. One that ends does not hear of the others any more: they see that its clients
/// are gone, and tell it, unless there are none.
fn tells() -> bool {
    (!ENDS.get() || surus_zend::is_alone()) && surus_zend::take_webhooks()
}

/// The worker ends: others tell what all see.
pub(crate) fn rest() {
    ENDS.set(true);
    // If it is alone, it takes them again.
    surus_zend::leave_webhooks();
}

/// Sends what waits, before the worker ends.
pub(crate) async fn settle() {
    let senders = SENDERS.take();
    let deadline = Instant::now() + LAST_WORDS;
    let busy = |sender: &Rc<Sender>| sender.is_sending.get() || !sender.queue.borrow().is_empty();
    while senders.iter().any(busy) && Instant::now() < deadline {
        sleep(Duration::from_millis(5)).await;
    }
    for sender in senders.iter().filter(|sender| busy(sender)) {
        let url = &sender.hook.url;
        surus_log::say!("webhooks are lost: {url} has not taken them, and the worker ends");
    }
}

impl Sender {
    fn add(&self, event: Value) {
        let bytes = size(&event);
        if self.waiting.get() + bytes > MOST {
            if !self.has_lost.replace(true) {
                let url = &self.hook.url;
                surus_log::say!("webhooks are lost: {url} has not taken {MOST} bytes");
            }
            return;
        }
        self.waiting.set(self.waiting.get() + bytes);
        self.queue.borrow_mut().push_back(event);
        self.more.notify_one();
    }

    async fn run(&self) {
        loop {
            if self.queue.borrow().is_empty() {
                self.has_lost.set(false);
                self.more.notified().await;
                sleep(SOON).await;
            }
            self.is_sending.set(true);
            let events: Vec<Value> = {
                let mut queue = self.queue.borrow_mut();
                let count = queue.len().min(BATCH);
                queue.drain(..count).collect()
            };
            let bytes: usize = events.iter().map(size).sum();
            self.waiting.set(self.waiting.get() - bytes);
            if !events.is_empty() {
                self.send(events).await;
            }
            self.is_sending.set(false);
        }
    }

    async fn send(&self, events: Vec<Value>) {
        let count = events.len();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let time = now.map_or(0, |now| now.as_millis() as u64);
        let body = json!({"time_ms": time, "events": events}).to_string();
        let signature = self.app.sign(body.as_bytes());
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nUser-Agent: surus\r\n\
             X-Pusher-Key: {}\r\nX-Pusher-Signature: {signature}\r\nConnection: close\r\n\r\n{body}",
            self.hook.path,
            self.hook.authority,
            body.len(),
            self.app.key,
        );
        let mut last = String::new();
        for pause in PAUSES {
            sleep(pause).await;
            match timeout(PATIENCE, self.attempt(request.as_bytes())).await {
                Ok(Ok(status)) if (200..300).contains(&status) => return,
                Ok(Ok(status)) => last = format!("it answers {status}"),
                Ok(Err(error)) => last = error.to_string(),
                Err(_) => last = format!("it does not answer in {} s", PATIENCE.as_secs()),
            }
        }
        let url = &self.hook.url;
        surus_log::say!("{count} webhooks are lost: {url}: {last}");
    }

    async fn attempt(&self, request: &[u8]) -> io::Result<u16> {
        match &self.to {
            Target::Unix(path) => exchange(UnixStream::connect(path).await?, request).await,
            Target::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                exchange(stream, request).await
            }
        }
    }
}

/// Sends the request; the status of the response. What is said before that, such as 103, is not it.
async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &[u8],
) -> io::Result<u16> {
    stream.write_all(request).await?;
    let no_answer = || io::Error::other("it does not answer in HTTP/1.1");
    let mut read: Vec<u8> = Vec::new();
    loop {
        // "HTTP/1.1 200 "
        if read.len() >= 13 {
            let status = status_of(&read).ok_or_else(no_answer)?;
            if !matches!(status, 100 | 102..=199) {
                return Ok(status);
            }
            let end = read.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                read.drain(..end + 4);
                continue;
            }
        }
        let mut some = [0; 256];
        let count = stream.read(&mut some).await?;
        if count == 0 || read.len() > LONGEST_HEAD {
            return Err(no_answer());
        }
        read.extend_from_slice(&some[..count]);
    }
}

fn status_of(head: &[u8]) -> Option<u16> {
    let text = std::str::from_utf8(head.get(9..12)?).ok()?;
    let status = text.parse::<u16>().ok()?;
    head.starts_with(b"HTTP/1.").then_some(status)
}

/// Bytes of an event, about: only what clients make long counts.
fn size(event: &Value) -> usize {
    let texts = event.as_object().into_iter().flatten();
    let length = |value: &Value| value.as_str().map_or(0, str::len);
    64 + texts.map(|(_, value)| length(value)).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answered(answer: &str) -> io::Result<u16> {
        let (own, mut other) = tokio::io::duplex(1024);
        other.write_all(answer.as_bytes()).await?;
        other.shutdown().await?;
        exchange(own, b"").await
    }

    #[tokio::test]
    async fn the_last_status_counts() {
        let ok = "HTTP/1.1 200 OK\r\n\r\n";
        assert_eq!(answered(ok).await.unwrap(), 200);
        let hints = format!("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{ok}");
        assert_eq!(answered(&hints).await.unwrap(), 200);
        let twice = "HTTP/1.1 100 \r\n\r\n".repeat(2) + "HTTP/1.1 503 \r\n";
        assert_eq!(answered(&twice).await.unwrap(), 503);
        for wrong in [
            "",
            "HTTP/1.1 2",
            "HTTP/1.1 100 \r\n\r\n",
            "SSH-2.0-OpenSSH\r\n",
        ] {
            assert!(answered(wrong).await.is_err(), "{wrong}");
        }
    }
}
