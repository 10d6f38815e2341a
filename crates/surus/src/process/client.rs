//! The edge's side: passes each request to a free process, and reads its response.

use std::cell::{Cell, OnceCell};
use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};
use http_body::Body;
use socket2::{Domain, SockAddr, Socket, Type};
use surus_edge::{plain, BoxError, Reply};
use surus_zend::{AppLimits, KeptBody, Request, RequestBody, ResponseBody, Script};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::UnixStream;
use tokio::task::{spawn_local, JoinHandle};

use super::wire::{put, Frames, BROKEN, DATA, END, HEAD};
use super::{arriving, head, line, Queue};

/// Bytes of a piece of a body in memory.
const PIECE: usize = 1024 * 1024;
/// The same for a body in a file: as much as fits into a socket's buffer.
const FILE_PIECE: usize = 64 * 1024;

/// A process answers at the deadline of its request at the latest; this is the additional time for the response to
/// arrive.
const GRACE: Duration = Duration::from_secs(1);

/// The processes as a worker sees them.
#[derive(Clone, Debug)]
pub(crate) struct Processes {
    address: PathBuf,
    in_flight: Rc<Cell<usize>>,
    /// Maximum number of requests in the queue or in PHP.
    max_in_flight: usize,
    /// More than the time in the queue and PHP's own deadline together: only exceeded if a process hangs.
    patience: Option<Duration>,
}

impl Processes {
    pub(crate) fn new(queue: &Queue, limits: &AppLimits) -> Self {
        Processes {
            address: queue.address(),
            in_flight: Rc::default(),
            max_in_flight: limits.max_in_flight.saturating_add(limits.max_queue),
            patience: limits
                .request_timeout
                .map(|timeout| limits.wait() + timeout + GRACE),
        }
    }

    /// Requests in the queue or in PHP.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    /// Passes a request to a process. Dropping the future closes the connection: the process tells PHP that the client
    /// has disconnected.
    pub(crate) async fn call(
        &self,
        request: Request,
        script: Option<Script>,
    ) -> Response<Reply<ResponseBody>> {
        let Some(seat) = Seat::take(&self.in_flight, self.max_in_flight) else {
            return busy();
        };
        let uri = request.uri.clone();
        let answer = answer(&self.address, request, script, seat);
        let answer = match self.patience {
            Some(patience) => tokio::time::timeout(patience, answer)
                .await
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
            None => answer.await,
        };
        answer.unwrap_or_else(|error| match error.kind() {
            // The kernel's queue is full.
            io::ErrorKind::WouldBlock => busy(),
            io::ErrorKind::TimedOut => plain(StatusCode::GATEWAY_TIMEOUT),
            _ => {
                tracing::error!(%uri, %error, "the process of this request has died");
                plain(StatusCode::BAD_GATEWAY)
            }
        })
    }
}

fn busy<B>() -> Response<Reply<B>> {
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE);
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Connects, which queues the request, and sends as much as is possible without waiting: so a request is sent even if
/// its client does not wait for a response.
pub(super) fn begin(address: &Path, out: &[u8]) -> io::Result<(UnixStream, usize)> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    socket.connect(&SockAddr::unix(address)?)?;
    let stream = std::os::unix::net::UnixStream::from(OwnedFd::from(socket));
    let sent = match (&stream).write(out) {
        Ok(sent) => sent,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        Err(error) => return Err(error),
    };
    Ok((UnixStream::from_std(stream)?, sent))
}

/// What is sent at once: the head, and a body in memory.
pub(super) fn first(request: &Request, script: Option<&Script>) -> Vec<u8> {
    let mut out = Vec::with_capacity(2048);
    let head = head::write_request(request, script, line::now());
    put(&mut out, HEAD, &head);
    if let RequestBody::Full(bytes) = &request.body {
        bytes
            .chunks(PIECE)
            .for_each(|piece| put(&mut out, DATA, piece));
        put(&mut out, END, &ending(&request.trailers));
    }
    out
}

async fn answer(
    address: &Path,
    mut request: Request,
    script: Option<Script>,
    seat: Seat,
) -> io::Result<Response<Reply<ResponseBody>>> {
    let out = first(&request, script.as_ref());
    let body = std::mem::replace(&mut request.body, RequestBody::Empty);
    let trailers = request.trailers.take();
    let (stream, sent) = begin(address, &out)?;
    let (input, mut output) = stream.into_split();
    output.write_all(&out[sent..]).await?;
    // Kept open to the end: closing it means that the client has disconnected.
    let upload = Upload(spawn_local(async move {
        match body {
            RequestBody::Empty | RequestBody::Full(_) => {}
            RequestBody::Kept(body) => upload_kept(body, &trailers, &mut output).await?,
            RequestBody::Stream(body) => upload(body, &trailers, &mut output).await?,
        }
        Ok(output)
    }));
    let mut frames = Frames::new(input);
    let (HEAD, head) = frames.next().await? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let (response, left, opening) = head::read_response(head)?;
    if let Some(opening) = opening {
        // PHP has ended, and its process is free.
        return Ok(response.map(|()| Reply::Backend(ResponseBody::events(opening))));
    }
    let body = arriving::body(frames, left, (upload, seat)).await?;
    Ok(response.map(|()| Reply::Backend(body)))
}

type Trailers = Option<Rc<OnceCell<HeaderMap>>>;

fn ending(trailers: &Trailers) -> Vec<u8> {
    head::write_trailers(trailers.as_ref().and_then(|trailers| trailers.get()))
}

/// An error means that the process has exited. If the client disconnects, the process is told.
async fn upload(
    mut body: Pin<Box<dyn Body<Data = Bytes, Error = BoxError>>>,
    trailers: &Trailers,
    output: &mut OwnedWriteHalf,
) -> io::Result<()> {
    let mut out = Vec::new();
    loop {
        out.clear();
        match poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            None => put(&mut out, END, &ending(trailers)),
            Some(Err(_)) => put(&mut out, BROKEN, b""),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(bytes) => put(&mut out, DATA, &bytes),
                // Trailers: they are read from `trailers` at the end.
                Err(_) => continue,
            },
        }
        output.write_all(&out).await?;
        if out[0] != DATA {
            return Ok(());
        }
    }
}

/// The same for a stored body.
async fn upload_kept(
    mut body: Box<KeptBody>,
    trailers: &Trailers,
    output: &mut OwnedWriteHalf,
) -> io::Result<()> {
    let mut piece = vec![0; FILE_PIECE];
    let mut out = Vec::with_capacity(FILE_PIECE + 16);
    loop {
        out.clear();
        match body.read(&mut piece) {
            Ok(0) => put(&mut out, END, &ending(trailers)),
            Ok(count) => put(&mut out, DATA, &piece[..count]),
            Err(error) => {
                tracing::error!(%error, "the body of a request cannot be read from its file");
                put(&mut out, BROKEN, b"");
            }
        }
        output.write_all(&out).await?;
        if out[0] != DATA {
            return Ok(());
        }
    }
}

/// The upload of a request, aborted when this is dropped.
struct Upload(JoinHandle<io::Result<OwnedWriteHalf>>);

impl Drop for Upload {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Counts a request as long as it is in flight.
struct Seat(Rc<Cell<usize>>);

impl Seat {
    fn take(in_flight: &Rc<Cell<usize>>, max: usize) -> Option<Seat> {
        if in_flight.get() >= max {
            return None;
        }
        in_flight.set(in_flight.get() + 1);
        Some(Seat(Rc::clone(in_flight)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
