//! Listeners, the bound on connections, and the drain.

use std::future::{poll_fn, Future};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use rustix::net::{accept_with, acceptfrom_with, SocketFlags};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::coop::unconstrained;
use tokio::task::{spawn_local, JoinHandle};

use crate::connection::transport::{Tcp, Transport, Unix};
use crate::connection::Command;
use crate::log::refusal::{Refusal, Refused};
use crate::os::descriptors::lifted;
use crate::server::lifecycle;
use crate::{Backend, Connection, Edge, Peer};

/// Clients that get a 503 response at the same time; the connections of further ones are closed without it.
const REFUSALS: usize = 64;

/// How long idle connections stay open in a drain, for requests that are on their way. Their responses tell the client
/// that the connection closes.
const LAST_REQUESTS: Duration = Duration::from_millis(500);

/// Unsent bytes that the kernel buffers for a connection.
const UNSENT: u32 = 128 * 1024;

/// The address that stands for a Unix socket: see [`Connection::local`].
const LOCAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 80);

pub(crate) const OVERLOADED: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
content-type: text/plain; charset=utf-8\r\ncontent-length: 19\r\n\r\nService Unavailable";

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were still open at the deadline and were closed with their requests unfinished.
    pub aborted: usize,
}

/// Changes of the listeners: a worker also accepts from those of another worker while that one does not.
#[derive(Debug)]
pub enum Intake {
    /// `key` is for [`Intake::Close`].
    Open {
        /// Any number that is not in use.
        key: usize,
        /// The listeners of the other worker.
        listeners: Vec<OwnedFd>,
    },
    /// Stops accepting from these listeners.
    Close {
        /// The key from their [`Intake::Open`].
        key: usize,
    },
}

/// Serves until `shutdown` completes, then drains: accepts clients that have already connected, and no more, lets
/// requests in flight finish, closes idle connections, and aborts the remaining ones when `Limits::drain` is over.
///
/// Must run inside a `LocalSet`.
pub async fn serve<B: Backend>(
    edge: Edge<B>,
    listeners: Vec<OwnedFd>,
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
        let table = &sweeping.table;
        let give_back = || sweeping.backend.give_back_memory();
        table.sweep(&sweeping.limits, give_back).await
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
                        Err(error) => surus_log::say!("cannot stand in for a worker: {error}"),
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
        while let Some(accepted) = each.listener.pending().await {
            open(&edge, accepted, true);
        }
    }
    // A client may be sending on a connection that looks idle from here: closing it now would lose that request.
    edge.table.order_busy(Command::Finish);
    let _ = tokio::time::timeout(LAST_REQUESTS, edge.table.closed()).await;
    edge.table.order_all(Command::Retire);
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

/// A listener that is accepted from, until this is dropped.
struct Accepting {
    key: Option<usize>,
    listener: Rc<Listener>,
    task: JoinHandle<()>,
}

impl Accepting {
    fn start<B: Backend>(
        edge: &Rc<Edge<B>>,
        listener: OwnedFd,
        key: Option<usize>,
    ) -> io::Result<Self> {
        let listener = Rc::new(Listener::new(listener)?);
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

/// A listener, registered with the event loop as a socket that becomes readable. Tokio's own listeners would register
/// each accepted connection before its descriptor can be moved to a high number.
enum Listener {
    /// With its address, if that is also the local address of every connection (it is not for `0.0.0.0` and `[::]`).
    Tcp(TcpStream, Option<SocketAddr>),
    Unix(UnixStream),
}

/// An accepted connection.
enum Accepted {
    Tcp(TcpStream, SocketAddr, Option<SocketAddr>),
    Unix(UnixStream),
}

impl Listener {
    fn new(listener: OwnedFd) -> io::Result<Self> {
        let socket = SockRef::from(&listener);
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        if address.is_unix() {
            return Ok(Listener::Unix(UnixStream::from_std(listener.into())?));
        }
        let address = address.as_socket();
        let address = address.filter(|address| !address.ip().is_unspecified());
        Ok(Listener::Tcp(
            TcpStream::from_std(listener.into())?,
            address,
        ))
    }

    async fn accept(&self) -> io::Result<Accepted> {
        const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);
        match self {
            Listener::Tcp(listener, local) => {
                let take = || Ok(acceptfrom_with(listener, FLAGS)?);
                let (socket, peer) = listener.async_io(Interest::READABLE, take).await?;
                let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                let peer = peer.ok_or(io::ErrorKind::ConnectionAborted)?;
                let stream = TcpStream::from_std(lifted(socket).into())?;
                Ok(Accepted::Tcp(stream, peer, *local))
            }
            Listener::Unix(listener) => {
                let take = || Ok(accept_with(listener, FLAGS)?);
                let socket = listener.async_io(Interest::READABLE, take).await?;
                let stream = UnixStream::from_std(lifted(socket).into())?;
                Ok(Accepted::Unix(stream))
            }
        }
    }

    /// A connection that waits in the queue right now.
    async fn pending(&self) -> Option<Accepted> {
        let mut accept = pin!(self.accept());
        poll_fn(|cx| match accept.as_mut().poll(cx) {
            Poll::Ready(accepted) => Poll::Ready(accepted.ok()),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }
}

async fn accept<B: Backend>(edge: Rc<Edge<B>>, listener: Rc<Listener>) {
    let mut failing = false;
    loop {
        match listener.accept().await {
            Ok(accepted) => {
                failing = false;
                open(&edge, accepted, false);
            }
            // The client has disconnected before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            // Out of file descriptors or memory: the connection stays in the queue, so accepting again at once would be
            // a busy loop.
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    surus_log::say!("cannot accept a connection: {error}");
                }
                // Make room by closing an idle connection.
                edge.table.shed_idle();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

fn open<B: Backend>(edge: &Rc<Edge<B>>, accepted: Accepted, draining: bool) {
    let connection = match &accepted {
        Accepted::Tcp(stream, peer, local) => {
            let Some(local) = local.or_else(|| stream.local_addr().ok()) else {
                return;
            };
            Connection::new(*peer, local)
        }
        Accepted::Unix(_) => Connection::new(Peer::Unix, LOCAL),
    };
    let refused = |why| {
        edge.refused(&Refused {
            client: connection.peer,
            why,
            first: b"",
        });
    };
    // With the PROXY protocol, its header names the client, which is counted later.
    let place = match edge.settings.proxy_protocol {
        true => Ok(None),
        false => edge.admit(connection.peer),
    };
    let Ok(place) = place else {
        refused(Refusal::Crowd);
        return accepted.refuse(edge);
    };
    if edge.table.open() >= edge.limits.connections && !edge.table.shed_idle() {
        refused(Refusal::Full);
        return accepted.refuse(edge);
    }
    let transport: Box<dyn Transport> = match accepted {
        Accepted::Tcp(stream, ..) => {
            // Fails only if the client has already disconnected, which the connection will notice by itself.
            let _ = stream.set_nodelay(true);
            // Without this the kernel would buffer megabytes for a client that does not read, and the edge would not
            // notice. It is not set on the listener: connections in its queue may be older than this worker.
            let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT);
            Box::new(Tcp::from(stream))
        }
        Accepted::Unix(stream) => Box::new(Unix::from(stream)),
    };
    spawn_local(lifecycle::run(
        Rc::clone(edge),
        transport,
        connection,
        place,
        draining,
    ));
}

impl Accepted {
    fn refuse<B: Backend>(self, edge: &Rc<Edge<B>>) {
        match self {
            Accepted::Tcp(stream, ..) => refuse(edge, stream),
            Accepted::Unix(stream) => refuse(edge, stream),
        }
    }
}

/// Sends a client a 503 response. Reads until the client closes, or a second has passed: closing with an unread request
/// would reset the connection, and the client could lose the response.
fn refuse<B: Backend>(
    edge: &Rc<Edge<B>>,
    mut stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
) {
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
