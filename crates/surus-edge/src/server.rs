//! Listeners, the bound on connections, and the drain.

use std::cell::Cell;
use std::future::{poll_fn, Future};
use std::io;
use std::net::SocketAddr;
use std::pin::{pin, Pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::coop::unconstrained;
use tokio::task::{spawn_local, JoinHandle};

use crate::connection::{Command, Socket, State};
use crate::flush::Flusher;
use crate::lane;
use crate::opening::{self, Protocol};
use crate::service::Service;
use crate::sweep::Table;
use crate::{Backend, Connection, Limits, Settings};

/// Clients that are being told 503 at the same time; further ones are just closed.
const REFUSALS: usize = 64;

/// How long a connection that is done may take to hand over what waits and to read what the client still sends.
const LINGER: Duration = Duration::from_secs(5);

/// How long idle connections are left open in a drain for a request that is on its way. The backend says in its
/// response that it is the last one.
const LAST_REQUESTS: Duration = Duration::from_millis(500);

/// Bytes that the kernel takes for a connection before it has sent them.
const UNSENT: u32 = 128 * 1024;

const OVERLOADED: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
content-type: text/plain; charset=utf-8\r\ncontent-length: 19\r\n\r\nService Unavailable";

/// What the connections of one worker share.
#[derive(Debug)]
pub struct Edge<B> {
    pub backend: Rc<B>,
    pub limits: Limits,
    pub settings: Settings,
    /// About to end: takes no new connections.
    pub(crate) draining: Cell<bool>,
    http: http1::Builder,
    http2: http2::Builder<Local>,
    table: Table,
    flusher: Flusher,
    refusals: Cell<usize>,
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were still open at the deadline and were closed with their requests unfinished.
    pub aborted: usize,
}

impl<B: Backend> Edge<B> {
    pub fn new(backend: Rc<B>, limits: Limits, settings: Settings) -> Self {
        let mut http = http1::Builder::new();
        // The sweep has the timeouts; hyper's own would box a timer per request. `output.rs` has the pipeline's flushing.
        http.keep_alive(true)
            .header_read_timeout(None)
            .max_buf_size(limits.header_bytes.max(8192));
        // hyper keeps up to 100 headers on the stack, and allocates where a number is given.
        if limits.header_count != 100 {
            http.max_headers(limits.header_count);
        }
        let mut http2 = http2::Builder::new(Local);
        // What one connection may make the server keep: bodies that are not read yet, output, headers, streams.
        http2
            .initial_stream_window_size(256 * 1024)
            .initial_connection_window_size(1024 * 1024)
            .max_send_buf_size(64 * 1024)
            .max_concurrent_streams(128)
            .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX));
        Edge {
            backend,
            limits,
            settings,
            draining: Cell::new(false),
            http,
            http2,
            table: Table::default(),
            flusher: Flusher::default(),
            refusals: Cell::new(0),
        }
    }
}

/// Sockets to accept from beside the first ones, for as long as their own worker does not.
#[derive(Debug)]
pub enum Intake {
    /// `key` is for [`Intake::Close`].
    Open {
        key: usize,
        listeners: Vec<std::net::TcpListener>,
    },
    Close {
        key: usize,
    },
}

/// Serves until `shutdown` ends, then drains: accepts what has already connected, takes no more, lets requests in flight
/// finish, closes idle connections, and gives up what is left at the deadline.
///
/// Must run inside a `LocalSet`.
pub async fn serve<B: Backend>(
    edge: Edge<B>,
    listeners: Vec<std::net::TcpListener>,
    mut intake: UnboundedReceiver<Intake>,
    shutdown: impl Future<Output = ()>,
) -> io::Result<Drained> {
    let edge = Rc::new(edge);
    let mut accepting = Vec::new();
    for listener in listeners {
        accepting.push(Accepting::start(&edge, listener, None)?);
    }
    let sweeping = Rc::clone(&edge);
    let sweep = spawn_local(unconstrained(async move {
        sweeping.table.sweep(&sweeping.limits).await
    }));

    let sending = Rc::clone(&edge);
    let flush = spawn_local(unconstrained(async move { sending.flusher.run().await }));

    let mut shutdown = pin!(shutdown);
    loop {
        let change = tokio::select! {
            () = &mut shutdown => break,
            Some(change) = intake.recv() => change,
        };
        match change {
            Intake::Open { key, listeners } => {
                for listener in listeners {
                    match Accepting::start(&edge, listener, Some(key)) {
                        Ok(started) => accepting.push(started),
                        Err(error) => eprintln!("surus: cannot stand in for a worker: {error}"),
                    }
                }
            }
            Intake::Close { key } => accepting.retain(|each| each.key != Some(key)),
        }
    }

    edge.draining.set(true);
    for each in accepting {
        each.task.abort();
        // Clients in the accept queue have connected; closing the listener would reset them.
        while let Some((stream, peer)) = each.listener.pending().await {
            open(&edge, &each.listener, stream, peer, true);
        }
    }
    // A client may be sending on a connection that looks idle from here: closing it now would lose that request.
    edge.table.order_busy(Command::Finish);
    let _ = tokio::time::timeout(LAST_REQUESTS, edge.table.closed()).await;
    edge.table.order_all(Command::Finish);
    let in_time = tokio::time::timeout(edge.limits.drain, edge.table.closed())
        .await
        .is_ok();
    let aborted = edge.table.open();
    if !in_time {
        edge.table.order_all(Command::Abort);
        // Dropping is prompt: this only lets the tasks see the order.
        let _ = tokio::time::timeout(Duration::from_secs(1), edge.table.closed()).await;
    }
    sweep.abort();
    flush.abort();
    Ok(Drained { aborted })
}

/// A socket that is accepted from, until this is dropped.
struct Accepting {
    key: Option<usize>,
    listener: Rc<Listener>,
    task: JoinHandle<()>,
}

impl Accepting {
    fn start<B: Backend>(
        edge: &Rc<Edge<B>>,
        listener: std::net::TcpListener,
        key: Option<usize>,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = Rc::new(Listener::new(TcpListener::from_std(listener)?)?);
        Ok(Accepting {
            key,
            task: spawn_local(accept(Rc::clone(edge), Rc::clone(&listener))),
            listener,
        })
    }
}

impl Drop for Accepting {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Listener {
    inner: TcpListener,
    /// Its address, where that is also the local address of every connection (it is not for 0.0.0.0 and [::]).
    address: Option<SocketAddr>,
}

impl Listener {
    fn new(inner: TcpListener) -> io::Result<Self> {
        // Connections inherit it. Without it the kernel would take megabytes for a client that does not read them, and
        // the edge would see nothing of that. Older kernels and other socket families do without.
        let _ = SockRef::from(&inner).set_tcp_notsent_lowat(UNSENT);
        let address = Some(inner.local_addr()?).filter(|address| !address.ip().is_unspecified());
        Ok(Listener { inner, address })
    }

    /// A connection that waits in the queue right now.
    async fn pending(&self) -> Option<(TcpStream, SocketAddr)> {
        poll_fn(|cx| match self.inner.poll_accept(cx) {
            Poll::Ready(accepted) => Poll::Ready(accepted.ok()),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }
}

async fn accept<B: Backend>(edge: Rc<Edge<B>>, listener: Rc<Listener>) {
    loop {
        match listener.inner.accept().await {
            Ok((stream, peer)) => open(&edge, &listener, stream, peer, false),
            // The client was gone before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            // Out of file descriptors or memory: the connection stays in the queue, so accepting again at once would spin.
            Err(error) => {
                eprintln!("surus: cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

fn open<B: Backend>(
    edge: &Rc<Edge<B>>,
    listener: &Listener,
    stream: TcpStream,
    peer: SocketAddr,
    draining: bool,
) {
    let Some(local) = listener.address.or_else(|| stream.local_addr().ok()) else {
        return;
    };
    let full = edge.table.open() >= edge.limits.connections && !edge.table.shed_idle();
    if full
        || !edge
            .table
            .admit(peer.ip(), edge.limits.connections_per_address)
    {
        return refuse(edge, stream);
    }
    // Fails only when the client has already gone, which the connection will find out by itself.
    let _ = stream.set_nodelay(true);
    spawn_local(run(
        Rc::clone(edge),
        stream,
        Connection::new(peer, local),
        draining,
    ));
}

/// Takes its place in the table now and leaves it when dropped, so that a panic in a backend does not leak a connection.
struct Seat<B> {
    edge: Rc<Edge<B>>,
    key: usize,
}

impl<B> Drop for Seat<B> {
    fn drop(&mut self) {
        self.edge.table.remove(self.key);
    }
}

fn run<B: Backend>(
    edge: Rc<Edge<B>>,
    stream: TcpStream,
    addresses: Connection,
    draining: bool,
) -> impl Future<Output = ()> {
    let (input, output) = stream.into_split();
    let state = State::new(addresses, output, edge.table.clock());
    let seat = Seat {
        key: edge.table.insert(Rc::clone(&state)),
        edge,
    };
    async move {
        let mut socket = Socket::new(input, Rc::clone(&state));
        let settings = &seat.edge.settings;
        let from = state.addresses.peer.ip();
        let opened = if settings.proxy_protocol
            && !settings.proxies.is_empty()
            && !settings.proxies.trusts(from)
        {
            Ok(None)
        } else {
            opening::open(&mut socket, &state, settings.proxy_protocol).await
        };
        let service = Service::new(Rc::clone(&seat.edge), Rc::clone(&state));
        let flusher = &seat.edge.flusher;
        let end = match opened {
            // What comes is not what was expected, or nothing does; a 408 may be waiting.
            Ok(None) | Err(_) => End::Closed,
            Ok(Some(Protocol::Http1)) => serve_http1(&seat.edge, socket, service, draining).await,
            Ok(Some(Protocol::Http2)) => {
                state.speaks_http2();
                let socket = TokioIo::new(socket);
                let connection = seat.edge.http2.serve_connection(socket, service);
                let finish = http2::Connection::graceful_shutdown;
                End::of(drive(connection, &state, flusher, finish).await, &state)
            }
        };
        if end == End::Closed {
            // What a client that does not read its response misses is its own affair.
            let _ = tokio::time::timeout(LINGER, state.close()).await;
        }
        drop(seat);
    }
}

/// The fast lane as far as it goes, then hyper. `draining`: the first request is the last one.
async fn serve_http1<B: Backend>(
    edge: &Rc<Edge<B>>,
    mut socket: Socket,
    service: Service<B>,
    draining: bool,
) -> End {
    let state = Rc::clone(service.state());
    if !draining {
        let lane = lane::run(&mut socket, &service);
        match drive(lane, &state, &edge.flusher, |_| {}).await {
            Some(Ok(lane::End::Hyper)) => {}
            Some(Ok(lane::End::Closed) | Err(_)) => return End::Closed,
            None => return End::Aborted,
        }
    }
    let socket = TokioIo::new(socket);
    // Not by `Finish`, which would close it before its next request is read.
    let is_last = state.finishing.replace(state.finishing.get() || draining) || draining;
    let connection = if is_last {
        edge.http
            .clone()
            .keep_alive(false)
            .serve_connection(socket, service)
    } else {
        edge.http.serve_connection(socket, service)
    };
    let finish = http1::Connection::graceful_shutdown;
    End::of(
        drive(connection, &state, &edge.flusher, finish).await,
        &state,
    )
}

/// Runs the requests of an HTTP/2 connection beside it, on this thread.
#[derive(Clone, Copy, Debug)]
struct Local;

impl<F> Executor<F> for Local
where
    F: Future + 'static,
    F::Output: 'static,
{
    fn execute(&self, future: F) {
        spawn_local(future);
    }
}

#[derive(PartialEq, Eq)]
enum End {
    /// All is answered. Output may be waiting.
    Closed,
    /// Ordered, or the client has gone.
    Aborted,
}

impl End {
    fn of(done: Option<hyper::Result<()>>, state: &State) -> Self {
        let Some(result) = done else {
            return End::Aborted;
        };
        // hyper has answered what it could not parse (400, 431), and left the rest of it unread.
        if result.is_err_and(|error| error.is_parse()) {
            state.linger.set(true);
        }
        End::Closed
    }
}

/// Polls a connection to its end, and sends what each turn has produced. `None`: it is aborted.
async fn drive<C: Future>(
    connection: C,
    state: &Rc<State>,
    flusher: &Flusher,
    finish: impl Fn(Pin<&mut C>),
) -> Option<C::Output> {
    let mut connection = pin!(connection);
    poll_fn(|cx| {
        match state.poll_order(cx) {
            Some(Command::Abort) => return Poll::Ready(None),
            Some(Command::Finish) if !state.finishing.replace(true) => finish(connection.as_mut()),
            Some(Command::Finish) | None => {}
        }
        match connection.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => match state.poll_send(cx, flusher) {
                Poll::Ready(Err(_)) => Poll::Ready(None),
                Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
            },
        }
    })
    .await
}

/// Tells a client that there is no room. Reads on until the client has the answer and closes, or a second has passed:
/// closing on an unread request would reset the connection, and the answer with it.
fn refuse<B: Backend>(edge: &Rc<Edge<B>>, mut stream: TcpStream) {
    if edge.refusals.get() >= REFUSALS {
        return;
    }
    edge.refusals.set(edge.refusals.get() + 1);
    let edge = Rc::clone(edge);
    spawn_local(async move {
        let answer = async {
            stream.write_all(OVERLOADED).await?;
            stream.shutdown().await?;
            let mut scratch = [0; 1024];
            while stream.read(&mut scratch).await? > 0 {}
            io::Result::Ok(())
        };
        let _ = tokio::time::timeout(Duration::from_secs(1), answer).await;
        edge.refusals.set(edge.refusals.get() - 1);
    });
}
