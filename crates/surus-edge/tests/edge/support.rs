//! An edge on a thread of its own, with a backend that does what a path says.

use std::cell::Cell;
use std::future::pending;
use std::io::{BufReader, Read, Seek, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty};
use surus_edge::{
    plain, serve, serve_file, Backend, BoxError, Connection, Drained, Edge, Limits, Reply,
    RequestBody, Settings, Spool, SpoolLimits, Spooled,
};
use tokio::sync::oneshot;
use tokio::task::LocalSet;

#[derive(Default)]
pub(crate) struct Seen {
    /// Requests in the backend right now.
    pub(crate) running: AtomicUsize,
    /// Requests whose future was dropped before it had an answer.
    pub(crate) dropped: AtomicUsize,
    /// What `/block` waits for, and what it says when it keeps the thread.
    pub(crate) go: AtomicBool,
    pub(crate) blocked: AtomicBool,
}

/// Bytes of `/large`, which no socket takes at once.
pub(crate) const LARGE: usize = 16 << 20;

struct Script {
    seen: Arc<Seen>,
    spool: Spool,
    file: PathBuf,
}

struct Running<'a> {
    seen: &'a Seen,
    answered: Cell<bool>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.seen.running.fetch_sub(1, Ordering::SeqCst);
        if !self.answered.get() {
            self.seen.dropped.fetch_add(1, Ordering::SeqCst);
        }
    }
}

type Stream = http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>;

/// A body that breaks behind what it still has, all at once.
struct Broken(Option<&'static str>);

impl Body for Broken {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(Some(match self.0.take() {
            Some(text) => Ok(Frame::data(text.into())),
            None => Err("broken".into()),
        }))
    }
}

impl Backend for Script {
    type Body = Stream;

    fn call(
        self: &Rc<Self>,
        head: &mut Parts,
        body: Option<RequestBody>,
        connection: &Connection,
    ) -> surus_edge::Answer<Stream> {
        let answer = Rc::clone(self).answer(surus_edge::take_head(head), body, connection.clone());
        surus_edge::Answer::Later(Box::pin(answer))
    }
}

impl Script {
    async fn answer(
        self: Rc<Self>,
        head: Parts,
        body: Option<RequestBody>,
        connection: Connection,
    ) -> Response<Reply<Stream>> {
        self.seen.running.fetch_add(1, Ordering::SeqCst);
        let running = Running {
            seen: &self.seen,
            answered: Cell::new(false),
        };
        let response = match head.uri.path() {
            "/hello" => Response::new(Reply::Bytes(Bytes::from_static(b"hello"))),
            "/large" => Response::new(Reply::Bytes(vec![b'x'; LARGE].into())),
            "/empty" => Response::new(Reply::Empty),
            "/peer" => Response::new(Reply::Bytes(
                format!(
                    "{} {}",
                    connection.peer.tcp().expect("TCP"),
                    connection.local
                )
                .into(),
            )),
            "/body" => {
                let read = match body {
                    Some(body) => body.collect().await.map(|body| body.to_bytes()),
                    None => Ok(Bytes::new()),
                };
                match read {
                    Ok(body) => Response::new(Reply::Bytes(format!("{} bytes", body.len()).into())),
                    Err(_) => plain(StatusCode::BAD_REQUEST),
                }
            }
            "/sum" => match body.expect("a body").collect().await {
                Ok(body) => Response::new(Reply::Bytes(sum(&body.to_bytes()).into())),
                Err(_) => plain(StatusCode::BAD_REQUEST),
            },
            "/kept" => match self.spool.read(body.expect("a body"), None).await {
                Ok(Spooled::Memory(bytes)) => Response::new(Reply::Bytes(sum(&bytes).into())),
                Ok(Spooled::File(file)) => {
                    let mut bytes = Vec::new();
                    file.kept.text.file().rewind().unwrap();
                    file.kept.text.file().read_to_end(&mut bytes).unwrap();
                    assert_eq!(bytes.len() as u64, file.length);
                    Response::new(Reply::Bytes(sum(&bytes).into()))
                }
                Err(_) => plain(StatusCode::BAD_REQUEST),
            },
            "/slow" => {
                tokio::time::sleep(Duration::from_millis(300)).await;
                Response::new(Reply::Bytes(Bytes::from_static(b"slow")))
            }
            "/block" => {
                while !self.seen.go.load(Ordering::SeqCst) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                self.seen.blocked.store(true, Ordering::SeqCst);
                std::thread::sleep(Duration::from_secs(1));
                Response::new(Reply::Empty)
            }
            "/hang" => pending().await,
            "/panic" => panic!("on request"),
            "/stream" => {
                let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
                Response::new(Reply::Backend(body))
            }
            "/broken" => Response::new(Reply::Backend(Broken(Some("early")).boxed_unsync())),
            "/file" => serve_file(&head.method, &head.headers, &self.file),
            _ => plain(StatusCode::NOT_FOUND),
        };
        running.answered.set(true);
        response
    }
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Drained>>,
}

impl Server {
    pub(crate) fn start(limits: Limits) -> Self {
        Self::with_file(limits, PathBuf::from("/nonexistent"))
    }

    pub(crate) fn with_file(limits: Limits, file: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        let thread = std::thread::spawn(move || {
            let backend = Script {
                seen: shared,
                spool: Spool::new(SpoolLimits::default()),
                file,
            };
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let edge = Edge::new(Rc::new(backend), limits, Settings::default());
            let (_intake, changes) = tokio::sync::mpsc::unbounded_channel();
            let serving = serve(edge, vec![listener.into()], changes, async {
                let _ = stopped.await;
            });
            LocalSet::new().block_on(&runtime, serving).unwrap()
        });
        Server {
            address,
            seen,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        Client {
            input: BufReader::new(stream.try_clone().unwrap()),
            stream,
        }
    }

    /// Asks for the drain and goes on.
    pub(crate) fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    pub(crate) fn join(mut self) -> Drained {
        self.stop();
        self.thread.take().unwrap().join().unwrap()
    }

    pub(crate) fn wait_for_running(&self, count: usize) {
        wait_until(|| self.seen.running.load(Ordering::SeqCst) == count);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How long it is, and what tells it from others of its length.
pub(crate) fn sum(bytes: &[u8]) -> String {
    let sum = bytes.iter().fold(7_u64, |sum, &byte| {
        sum.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    format!("{} bytes, {sum:x}", bytes.len())
}

pub(crate) fn wait_until(condition: impl Fn() -> bool) {
    for _ in 0..6000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("nothing happened for half a minute");
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    input: BufReader<TcpStream>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl Client {
    pub(crate) fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n"));
        self.read(true)
    }

    /// One response. `body`: false for the answer to HEAD.
    pub(crate) fn read(&mut self, body: bool) -> Answer {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            assert_ne!(
                self.input.read(&mut byte).unwrap(),
                0,
                "closed after {:?}",
                String::from_utf8_lossy(&head)
            );
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer {
            status,
            head,
            body: Vec::new(),
        };
        let length = answer
            .header("content-length")
            .map_or(0, |length| length.parse().unwrap());
        if body && status != 304 {
            answer.body = vec![0; length];
            self.input.read_exact(&mut answer.body).unwrap();
        }
        answer
    }

    /// All until the server closes the connection.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        self.input.read_to_end(&mut rest).unwrap();
        String::from_utf8(rest).unwrap()
    }

    /// True if the server has closed the connection and nothing more has come.
    pub(crate) fn closed(&mut self) -> bool {
        matches!(self.input.read(&mut [0]), Ok(0))
    }

    /// True if it is so already.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let is_closed = matches!(self.stream.peek(&mut [0]), Ok(0));
        self.stream.set_nonblocking(false).unwrap();
        is_closed
    }
}
