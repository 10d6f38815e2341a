//! Listening sockets, bound before the fork: one per worker and address, so that the kernel spreads connections.
//!
//! Some are inherited: from a service manager (socket activation, `LISTEN_FDS`), which decides the addresses, and from
//! the master that this one replaces (an upgrade), so that no connection waits in a queue that goes away.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;

use listenfd::ListenFd;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

/// Connections the kernel holds ready per socket (it caps this at net.core.somaxconn).
const BACKLOG: i32 = 4096;

/// The sockets of every worker. The master keeps them open, so that a replacement finds its predecessor's queue.
#[derive(Debug)]
pub struct Listeners {
    per_worker: Vec<Vec<TcpListener>>,
    addresses: Vec<SocketAddr>,
    accepting: usize,
    held: Vec<OwnedFd>,
}

impl Listeners {
    /// What is listened on, with ports the kernel has chosen where 0 was asked for.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Adds workers that do not listen: their seats come behind those of the ones that do.
    pub fn add_silent(&mut self, workers: usize) {
        let count = self.per_worker.len() + workers;
        self.per_worker.resize_with(count, Vec::new);
    }

    /// Something that each worker inherits with its seat, and that the master closes together with the sockets.
    pub fn hold(&mut self, held: OwnedFd) {
        self.held.push(held);
    }

    pub(crate) fn workers(&self) -> usize {
        self.per_worker.len()
    }

    /// Those that listen.
    pub(crate) fn accepting(&self) -> usize {
        self.accepting
    }

    /// In a worker, after the fork: everything, since a worker may have to stand in for another one.
    pub(crate) fn take(&mut self) -> (Vec<Vec<TcpListener>>, Vec<OwnedFd>) {
        (
            std::mem::take(&mut self.per_worker),
            std::mem::take(&mut self.held),
        )
    }

    /// Copies for a new master.
    pub(crate) fn duplicate(&self) -> io::Result<Vec<OwnedFd>> {
        let all = self.per_worker.iter().flatten();
        all.map(|listener| Ok(listener.try_clone()?.into()))
            .collect()
    }

    pub(crate) fn close(&mut self) {
        self.per_worker.clear();
        self.held.clear();
    }
}

/// An address that cannot be listened on, and why.
#[derive(Debug)]
pub struct BindError {
    address: SocketAddr,
    error: io::Error,
    /// The flag that takes another one.
    flag: &'static str,
}

impl BindError {
    pub(crate) fn of_admin(address: SocketAddr, error: io::Error) -> Self {
        BindError {
            address,
            error,
            flag: "--set admin=ADDRESS:PORT",
        }
    }
}

impl BindError {
    /// What has the address in a configuration.
    pub fn key(&self) -> &'static str {
        match self.flag {
            "--listen" => "server.listen",
            _ => "server.admin",
        }
    }

    /// The address, if somebody listens on it already.
    pub fn taken(&self) -> Option<SocketAddr> {
        let is_taken = self.error.kind() == io::ErrorKind::AddrInUse;
        is_taken.then_some(self.address)
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.address;
        match self.error.kind() {
            io::ErrorKind::AddrInUse => {
                write!(
                    f,
                    "cannot listen on {address}: another process does already ({} takes another address)",
                    self.flag
                )
            }
            io::ErrorKind::AddrNotAvailable => {
                write!(
                    f,
                    "cannot listen on {address}: this machine has no such address"
                )
            }
            io::ErrorKind::PermissionDenied => {
                write!(
                    f,
                    "cannot listen on {address}: not permitted (ports below 1024 need root, with `user` for the \
                     workers, or CAP_NET_BIND_SERVICE; a port from 1024 up needs neither)"
                )
            }
            _ => write!(f, "cannot listen on {address}: {}", self.error),
        }
    }
}

impl std::error::Error for BindError {}

/// The sockets that this process was started with.
#[derive(Debug, Default)]
pub struct Inherited {
    sockets: Vec<TcpListener>,
    /// Where a predecessor wants to hear why its successor does not come up.
    pub(crate) reasons: Option<UnixDatagram>,
}

impl Inherited {
    /// Takes what the environment tells of (`LISTEN_FDS`). To be called once, and before any other file is opened.
    pub fn from_env() -> Self {
        let mut given = ListenFd::from_env();
        let count = given.len();
        let mut inherited = Inherited::default();
        for index in 0..count {
            match given.take_tcp_listener(index) {
                Ok(socket) => inherited.sockets.extend(socket),
                Err(_) => inherited.reasons = given.take_unix_datagram(index).ok().flatten(),
            }
        }
        inherited
    }

    /// One of each address, in order.
    fn addresses(&self) -> Vec<SocketAddr> {
        let mut addresses = Vec::new();
        for address in self
            .sockets
            .iter()
            .filter_map(|each| each.local_addr().ok())
        {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        addresses
    }

    /// Takes those that `address` means; a port of 0 means any.
    fn take(&mut self, address: SocketAddr) -> Vec<TcpListener> {
        let means = |listener: &TcpListener| {
            listener.local_addr().is_ok_and(|own| {
                own.ip() == address.ip() && (own.port() == address.port() || address.port() == 0)
            })
        };
        let (taken, left) = self.sockets.drain(..).partition(means);
        self.sockets = left;
        taken
    }
}

/// Binds `addresses` for so many workers, with what is inherited. `upgrade` says from whom: from a master, whose
/// successor may have another configuration, or from a service manager, whose sockets are the ones to serve.
pub fn bind(
    addresses: &[SocketAddr],
    workers: usize,
    mut inherited: Inherited,
    upgrade: bool,
) -> Result<Listeners, BindError> {
    let mut listeners = Listeners {
        per_worker: (0..workers).map(|_| Vec::new()).collect(),
        addresses: Vec::new(),
        accepting: workers,
        held: Vec::new(),
    };
    let activated = inherited.addresses();
    let addresses = if upgrade || activated.is_empty() {
        addresses
    } else {
        &activated
    };
    for &address in addresses {
        let failed = |error| BindError {
            address,
            error,
            flag: "--listen",
        };
        let taken = inherited.take(address);
        let address = match taken.first() {
            Some(listener) => listener.local_addr().map_err(failed)?,
            None => probe(address).map_err(failed)?,
        };
        let missing = workers.saturating_sub(taken.len());
        let more = (0..missing)
            .map(|_| another(taken.first(), address))
            .collect::<io::Result<Vec<_>>>()
            .map_err(failed)?;
        for (index, listener) in taken.into_iter().chain(more).enumerate() {
            listeners.per_worker[index % workers].push(listener);
        }
        listeners.addresses.push(address);
    }
    Ok(listeners)
}

/// Which of these could not be listened on now. They are not.
pub fn can_listen(addresses: &[SocketAddr], admin: Option<SocketAddr>) -> Vec<BindError> {
    let of_listen = addresses.iter().filter_map(|&address| {
        let error = probe(address).err()?;
        Some(BindError {
            address,
            error,
            flag: "--listen",
        })
    });
    let of_admin = admin.and_then(|address| {
        let error = probe(address).err()?;
        Some(BindError::of_admin(address, error))
    });
    of_listen.chain(of_admin).collect()
}

/// A socket for one more worker. Where the first one does not share its port, it is shared itself.
fn another(first: Option<&TcpListener>, address: SocketAddr) -> io::Result<TcpListener> {
    match first {
        Some(first) if !SockRef::from(first).reuse_port()? => first.try_clone(),
        _ => listen(address),
    }
}

/// Sockets with SO_REUSEPORT bind beside each other, those of a second server as well. A bind without it tells.
pub(crate) fn probe(address: SocketAddr) -> io::Result<SocketAddr> {
    let socket = socket(address)?;
    socket.bind(&address.into())?;
    socket
        .local_addr()?
        .as_socket()
        .ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket(address)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // Connections of a predecessor in TIME_WAIT must not keep its successor from starting.
    socket.set_reuse_address(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any_port() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    fn bind_new(addresses: &[SocketAddr], workers: usize) -> Result<Listeners, BindError> {
        bind(addresses, workers, Inherited::default(), false)
    }

    #[test]
    fn every_worker_gets_a_socket_of_its_own_on_the_same_address() {
        let mut listeners = bind_new(&[any_port()], 3).unwrap();
        let address = listeners.addresses()[0];
        assert_ne!(address.port(), 0);
        listeners.add_silent(1);
        assert_eq!(listeners.workers(), 4);
        assert_eq!(listeners.accepting(), 3);
        let mut per_worker = listeners.take().0;
        assert!(per_worker.pop().unwrap().is_empty());
        assert!(per_worker.iter().all(|own| own.len() == 1));
        assert!(per_worker
            .iter()
            .all(|own| own[0].local_addr().unwrap() == address));
    }

    #[test]
    fn a_second_server_on_the_same_port_is_refused() {
        let first = bind_new(&[any_port()], 2).unwrap();
        let error = bind_new(first.addresses(), 2).unwrap_err();
        let expected = format!(
            "cannot listen on {}: another process does already (--listen takes another address)",
            first.addresses()[0]
        );
        assert_eq!(error.to_string(), expected);
        let address = first.addresses()[0];
        drop(first);
        bind_new(&[address], 2).unwrap();
    }

    fn of(sockets: Vec<TcpListener>) -> Inherited {
        Inherited {
            sockets,
            reasons: None,
        }
    }

    fn inherit(from: &Listeners) -> Inherited {
        let copies = from.duplicate().unwrap();
        of(copies.into_iter().map(TcpListener::from).collect())
    }

    #[test]
    fn a_successor_takes_every_socket_whatever_its_number_of_workers() {
        let first = bind_new(&[any_port()], 3).unwrap();
        for workers in [1, 2, 3, 5] {
            let next = bind(&[any_port()], workers, inherit(&first), true).unwrap();
            assert_eq!(next.addresses(), first.addresses());
            let sockets = next.per_worker.iter().map(Vec::len).sum::<usize>();
            assert_eq!(sockets, workers.max(3));
            assert!(next.per_worker.iter().all(|own| !own.is_empty()));
        }
    }

    #[test]
    fn the_sockets_of_a_service_manager_win_over_the_configuration() {
        let manager = TcpListener::bind(any_port()).unwrap();
        let address = manager.local_addr().unwrap();
        let other = SocketAddr::from(([127, 0, 0, 1], 1));
        let listeners = bind(&[other], 2, of(vec![manager]), false).unwrap();
        assert_eq!(listeners.addresses(), [address]);
        assert!(listeners.per_worker.iter().all(|own| own.len() == 1));
    }
}
