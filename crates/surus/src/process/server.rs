//! The process's side: serves one request after the other.

use std::any::Any;
use std::cell::{Cell, OnceCell};
use std::future::{poll_fn, Future};
use std::io;
use std::pin::{pin, Pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};
use http_body::{Body, Frame};
use surus_zend::{BoxError, Request, RequestBody, ResponseBody, Script};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::UnixStream;
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::mpsc;
use tokio::task::spawn_local;

use super::head::{self, Arrived, Upload};
use super::wire::{put, Frames, BROKEN, DATA, END, HEAD};
use super::{line, Queue};

/// A request that has waited for longer than this was queued.
const IN_LINE: Duration = Duration::from_millis(100);

/// Bytes of a response that are sent at a time.
const PIECE: usize = 64 * 1024;

/// Runs the requests of a process.
pub(crate) trait Runs {
    /// It has taken a request from this connection. What is returned is dropped when PHP has finished it.
    fn begin(&self, _: &std::os::unix::net::UnixStream) -> io::Result<Box<dyn Any>> {
        Ok(Box::new(()))
    }

    /// Dropping the future tells PHP that the client has disconnected.
    fn run(
        &self,
        request: Request,
        script: Option<Script>,
    ) -> impl Future<Output = Response<ResponseBody>>;

    /// Requests that PHP has not finished.
    fn unfinished(&self) -> usize;
}

/// Serves from the queue until the process is replaced, or the server ends and no worker is left, for which it waits at
/// most `drain`. Requests that were queued for longer than `wait` are refused. `tell` is called with news for the
/// master.
pub(crate) async fn serve<P: Runs>(
    queue: &Queue,
    php: &P,
    wait: Duration,
    drain: Duration,
    tell: impl Fn(News<'_>) + 'static,
) -> io::Result<()> {
    let tell = Rc::new(tell);
    let Signals { ending, replaced } = watch_signals(Rc::clone(&tell))?;
    tell(News::Ready);
    tell(News::Orders(&replaced));
    while !ending.get() && !replaced.get() {
        match queue.accept()? {
            Some(stream) => {
                one(stream, php, wait).await;
                tell(News::Served);
            }
            // Perhaps because of a signal: lets the event loop handle it.
            None => {
                tokio::time::sleep(Duration::from_millis(1)).await;
                tell(News::Idle);
            }
        }
        // Lets tasks run that wait for a signal.
        tokio::task::yield_now().await;
    }
    if replaced.get() {
        return Ok(());
    }
    let deadline = Instant::now() + drain;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match queue.accept_last(left) {
            Ok(Some(stream)) => one(stream, php, wait).await,
            Ok(None) if left.is_zero() => return Ok(()),
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Events in a process that are reported to its master.
#[derive(Clone, Copy, Debug)]
pub(crate) enum News<'a> {
    /// It is about to take its first request.
    Ready,
    /// It has finished one.
    Served,
    /// There was no request for a while.
    Idle,
    /// There may be orders. The flag is set by the order to take no more requests.
    Orders(&'a Cell<bool>),
}

/// What a process was told to do.
struct Signals {
    /// SIGTERM: the server ends.
    ending: Rc<Cell<bool>>,
    /// By an order, announced with SIGUSR1: another process serves in its place.
    replaced: Rc<Cell<bool>>,
}

/// Signals that only the master handles are caught already.
fn watch_signals(tell: Rc<impl Fn(News<'_>) + 'static>) -> io::Result<Signals> {
    let (mut terminate, mut orders) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::user_defined1())?,
    );
    let (ending, replaced) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
    let flag = Rc::clone(&ending);
    spawn_local(async move {
        terminate.recv().await;
        flag.set(true);
    });
    let flag = Rc::clone(&replaced);
    spawn_local(async move {
        while orders.recv().await.is_some() {
            tell(News::Orders(&flag));
        }
    });
    Ok(Signals { ending, replaced })
}

/// Serves one request, until PHP has finished it.
async fn one<P: Runs>(stream: std::os::unix::net::UnixStream, php: &P, wait: Duration) {
    // Any error closes the connection, which the worker handles.
    let Ok(_begun) = php.begin(&stream) else {
        return;
    };
    let _ = exchange(stream, php, wait).await;
    while php.unfinished() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn exchange<P: Runs>(
    stream: std::os::unix::net::UnixStream,
    php: &P,
    wait: Duration,
) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let (input, mut output) = UnixStream::from_std(stream)?.into_split();
    let mut frames = Frames::new(input);
    let (HEAD, bytes) = frames.next().await? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let Arrived {
        mut request,
        script,
        upload,
        since,
    } = head::read_request(bytes).ok_or(io::ErrorKind::InvalidData)?;
    let waited = line::now().saturating_sub(since);
    if waited > wait {
        let mut late = Response::new(ResponseBody::empty());
        *late.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        let headers = late.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        return send(late, &mut output).await;
    }
    let mut sender = None;
    let trailers = Trailers::default();
    request.trailers = Some(Rc::clone(&trailers));
    match upload {
        Upload::Empty => {}
        Upload::Full => {
            request.body = RequestBody::Full(whole(&mut frames, &trailers).await?);
        }
        Upload::Stream => {
            let (pieces, body) = mpsc::channel(1);
            request.body = RequestBody::Stream(Box::pin(Pieces(body)));
            sender = Some(pieces);
        }
    }
    // If the client has disconnected from a queued request, it is dropped. If it disconnects at once, it does not wait
    // for the response, and the script runs.
    if waited > IN_LINE && !frames.is_open() {
        return Ok(());
    }
    let answer = async {
        let response = php.run(request, script).await;
        send(response, &mut output).await
    };
    let (mut answer, mut left) = (pin!(answer), pin!(receive(&mut frames, sender, &trailers)));
    poll_fn(|cx| match answer.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(result),
        Poll::Pending => left.as_mut().poll(cx).map(Ok),
    })
    .await
}

type Trailers = Rc<OnceCell<HeaderMap>>;

fn note(trailers: &Trailers, ending: Bytes) {
    if let Some(found) = head::read_trailers(ending) {
        // There is only one end.
        let _ = trailers.set(found);
    }
}

/// A body that follows its head at once.
async fn whole(frames: &mut Frames, trailers: &Trailers) -> io::Result<Bytes> {
    let mut body = BytesMut::new();
    loop {
        match frames.next().await? {
            (DATA, bytes) => body.extend_from_slice(&bytes),
            (END, ending) => {
                note(trailers, ending);
                return Ok(body.freeze());
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

type Piece = Result<Bytes, BoxError>;

/// Passes on a streamed body, no faster than PHP reads it. Returns when the client has disconnected.
async fn receive(frames: &mut Frames, mut body: Option<mpsc::Sender<Piece>>, trailers: &Trailers) {
    loop {
        let frame = frames.next().await;
        let piece = match frame {
            Ok((DATA, bytes)) => Ok(bytes),
            Ok((END, ending)) => {
                note(trailers, ending);
                body = None;
                continue;
            }
            Ok(_) => Err("the client broke off the request's body".into()),
            Err(_) => break,
        };
        if let Some(body) = &body {
            // PHP may have stopped reading; the rest is dropped then.
            let _ = body.send(piece).await;
        }
    }
    if let Some(body) = body {
        let gone = "the client left before the end of its body".into();
        let _ = body.send(Err(gone)).await;
    }
}

struct Pieces(mpsc::Receiver<Piece>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0
            .poll_recv(cx)
            .map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

async fn send(response: Response<ResponseBody>, output: &mut OwnedWriteHalf) -> io::Result<()> {
    let length = response.body().size_hint().exact();
    let mut out = Vec::with_capacity(2048);
    let opening = response.body().opening();
    let head = head::write_response(&response, length, opening);
    put(&mut out, HEAD, &head);
    let mut body = response.into_body();
    if length.is_none() {
        output.write_all(&out).await?;
        out.clear();
    }
    let (mut ended, mut trailers) = (false, None);
    while !ended {
        match poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(bytes) => {
                    for piece in bytes.chunks(PIECE) {
                        put(&mut out, DATA, piece);
                        // If the length is unknown, sends each piece at once, so that the body is not in memory twice,
                        // nor all of it in the worker's.
                        if length.is_none() {
                            output.write_all(&out).await?;
                            out.clear();
                        }
                    }
                }
                Err(frame) => trailers = frame.into_trailers().ok(),
            },
            broken_or_done => {
                let kind = if broken_or_done.is_some() {
                    BROKEN
                } else {
                    END
                };
                put(&mut out, kind, &head::write_trailers(trailers.as_ref()));
                ended = true;
            }
        }
    }
    // A complete response is sent with one write.
    output.write_all(&out).await
}
