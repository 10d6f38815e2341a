//! Listening sockets, bound before the fork: one per worker and address, so that the kernel spreads connections.
//!
//! Some are inherited: from a service manager (socket activation, `LISTEN_FDS`), which decides the addresses, and from
//! the master that this one replaces (an upgrade), so that no connection is lost with a queue that is closed.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use listenfd::ListenFd;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::address::Address;
use crate::unix;

/// Connections that the kernel queues per socket (it caps this at net.core.somaxconn).
const BACKLOG: i32 = 4096;

/// The sockets of every worker. The master keeps them open, so that a new worker gets its predecessor's queue.
#[derive(Debug)]
pub struct Listeners {
    per_worker: Vec<Vec<OwnedFd>>,
    addresses: Vec<Address>,
    accepting: usize,
    held: Vec<OwnedFd>,
    /// Unix sockets that are removed with the server: their paths, and device and inode.
    files: Vec<(PathBuf, Option<(u64, u64)>)>,
}

impl Listeners {
    /// The addresses, with ports that the kernel has chosen instead of 0.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Adds workers that do not listen: their seats come after those of the ones that do.
    pub fn add_silent(&mut self, workers: usize) {
        let count = self.per_worker.len() + workers;
        self.per_worker.resize_with(count, Vec::new);
    }

    /// Adds a file that each worker inherits with its seat, and that the master closes together with the sockets.
    pub fn hold(&mut self, held: OwnedFd) {
        self.held.push(held);
    }

    pub(crate) fn workers(&self) -> usize {
        self.per_worker.len()
    }

    /// The number of workers that listen.
    pub(crate) fn accepting(&self) -> usize {
        self.accepting
    }

    /// Takes all sockets, in a worker after the fork: a worker may have to accept in place of another one.
    pub(crate) fn take(&mut self) -> (Vec<Vec<OwnedFd>>, Vec<OwnedFd>) {
        (
            std::mem::take(&mut self.per_worker),
            std::mem::take(&mut self.held),
        )
    }

    /// Copies for a new master.
    pub(crate) fn duplicate(&self) -> io::Result<Vec<OwnedFd>> {
        let all = self.per_worker.iter().flatten();
        all.map(OwnedFd::try_clone).collect()
    }

    /// Removes the socket files, so that nobody connects any more. Only if there is no successor.
    pub(crate) fn remove_files(&mut self) {
        for (path, file) in self.files.drain(..) {
            if unix::file(&path) == file {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    pub(crate) fn close(&mut self) {
        self.per_worker.clear();
        self.held.clear();
    }
}

/// An address that cannot be bound, and why.
#[derive(Debug)]
pub struct BindError {
    address: Address,
    error: io::Error,
    /// The flag to choose another address.
    flag: &'static str,
}

impl BindError {
    pub(crate) fn of_admin(address: SocketAddr, error: io::Error) -> Self {
        BindError {
            address: address.into(),
            error,
            flag: "--set admin=ADDRESS:PORT",
        }
    }
}

impl BindError {
    /// The key of the address in a configuration.
    pub fn key(&self) -> &'static str {
        match self.flag {
            "--listen" => "server.listen",
            _ => "server.admin",
        }
    }

    /// The address, if another process listens on it already.
    pub fn taken(&self) -> Option<&Address> {
        let is_taken = self.error.kind() == io::ErrorKind::AddrInUse;
        is_taken.then_some(&self.address)
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = &self.address;
        match self.error.kind() {
            io::ErrorKind::AlreadyExists => {
                write!(
                    f,
                    "cannot listen on {address}: there is a file that is not a socket"
                )
            }
            io::ErrorKind::NotFound => {
                write!(f, "cannot listen on {address}: there is no such folder")
            }
            io::ErrorKind::PermissionDenied if address.tcp().is_none() => {
                write!(
                    f,
                    "cannot listen on {address}: not permitted to make a file there"
                )
            }
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
    sockets: Vec<OwnedFd>,
    /// Where this process tells its predecessor why it does not start.
    pub(crate) reasons: Option<UnixDatagram>,
}

impl Inherited {
    /// Takes the sockets that the environment names (`LISTEN_FDS`). Must be called once, before any other file is
    /// opened.
    pub fn from_env() -> Self {
        let mut given = ListenFd::from_env();
        let count = given.len();
        let mut inherited = Inherited::default();
        for index in 0..count {
            match given.take_tcp_listener(index) {
                Ok(socket) => inherited.sockets.extend(socket.map(OwnedFd::from)),
                Err(_) => match given.take_unix_listener(index) {
                    Ok(socket) => inherited.sockets.extend(socket.map(OwnedFd::from)),
                    Err(_) => inherited.reasons = given.take_unix_datagram(index).ok().flatten(),
                },
            }
        }
        inherited
    }

    /// Each address once, in order.
    fn addresses(&self) -> Vec<Address> {
        let mut addresses = Vec::new();
        for address in self.sockets.iter().filter_map(Address::of) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        addresses
    }

    /// Takes the sockets of `address`; a port of 0 means any.
    fn take(&mut self, address: &Address) -> Vec<OwnedFd> {
        let means = |socket: &OwnedFd| Address::of(socket).is_some_and(|own| address.means(&own));
        let (taken, left) = self.sockets.drain(..).partition(means);
        self.sockets = left;
        taken
    }
}

/// Binds `addresses` for this number of workers, using inherited sockets. `upgrade` says from whom: from a master,
/// whose successor may have another configuration, or from a service manager, whose sockets replace `addresses`.
pub fn bind(
    addresses: &[Address],
    workers: usize,
    mut inherited: Inherited,
    upgrade: bool,
) -> Result<Listeners, BindError> {
    let mut listeners = Listeners {
        per_worker: (0..workers).map(|_| Vec::new()).collect(),
        addresses: Vec::new(),
        accepting: workers,
        held: Vec::new(),
        files: Vec::new(),
    };
    let activated = inherited.addresses();
    let addresses = if upgrade || activated.is_empty() {
        addresses
    } else {
        &activated
    };
    for address in addresses {
        let failed = |error| BindError {
            address: address.clone(),
            error,
            flag: "--listen",
        };
        let mut sockets = inherited.take(address);
        let address = match (sockets.first().and_then(Address::of), address) {
            (Some(found), _) => found,
            (None, &Address::Tcp(asked)) => probe(asked).map_err(failed)?.into(),
            (None, Address::Unix(path)) => {
                sockets.push(unix::listen(path, BACKLOG).map_err(failed)?.into());
                address.clone()
            }
        };
        let is_managers = !upgrade && activated.contains(&address);
        if let (Address::Unix(path), false) = (&address, is_managers) {
            listeners.files.push((path.clone(), unix::file(path)));
        }
        let missing = workers.saturating_sub(sockets.len());
        let more = (0..missing)
            .map(|_| another(sockets.first(), &address))
            .collect::<io::Result<Vec<_>>>()
            .map_err(failed)?;
        for (index, socket) in sockets.into_iter().chain(more).enumerate() {
            listeners.per_worker[index % workers].push(socket);
        }
        listeners.addresses.push(address);
    }
    Ok(listeners)
}

/// Checks which of these could not be bound now, without listening.
pub fn can_listen(addresses: &[Address], admin: Option<SocketAddr>) -> Vec<BindError> {
    let of_listen = addresses.iter().filter_map(|address| {
        let error = match address {
            Address::Tcp(address) => probe(*address).err()?,
            Address::Unix(path) => unix::probe(path).err()?,
        };
        Some(BindError {
            address: address.clone(),
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

/// A socket for one more worker. If the first one does not have SO_REUSEPORT, the workers share that socket.
fn another(first: Option<&OwnedFd>, address: &Address) -> io::Result<OwnedFd> {
    match (first, address) {
        (Some(first), Address::Unix(_)) => first.try_clone(),
        (Some(first), _) if !SockRef::from(first).reuse_port()? => first.try_clone(),
        (_, Address::Tcp(address)) => listen(*address).map(OwnedFd::from),
        (None, Address::Unix(path)) => unix::listen(path, BACKLOG).map(OwnedFd::from),
    }
}

/// Detects a second server: with SO_REUSEPORT its sockets could have the same address, but a bind without it fails.
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

    fn any_port() -> Address {
        Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    fn bind_new(addresses: &[Address], workers: usize) -> Result<Listeners, BindError> {
        bind(addresses, workers, Inherited::default(), false)
    }

    #[test]
    fn every_worker_gets_a_socket_of_its_own_on_the_same_address() {
        let mut listeners = bind_new(&[any_port()], 3).unwrap();
        let address = listeners.addresses()[0].clone();
        assert!(!address.is_any_port());
        listeners.add_silent(1);
        assert_eq!(listeners.workers(), 4);
        assert_eq!(listeners.accepting(), 3);
        let mut per_worker = listeners.take().0;
        assert!(per_worker.pop().unwrap().is_empty());
        assert!(per_worker.iter().all(|own| own.len() == 1));
        assert!(per_worker
            .iter()
            .all(|own| Address::of(&own[0]).as_ref() == Some(&address)));
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
        let address = first.addresses()[0].clone();
        drop(first);
        bind_new(&[address], 2).unwrap();
    }

    fn of(sockets: Vec<OwnedFd>) -> Inherited {
        Inherited {
            sockets,
            reasons: None,
        }
    }

    fn inherit(from: &Listeners) -> Inherited {
        of(from.duplicate().unwrap())
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
        let manager = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = manager.local_addr().unwrap();
        let other = "127.0.0.1:1".parse().unwrap();
        let listeners = bind(&[other], 2, of(vec![manager.into()]), false).unwrap();
        assert_eq!(listeners.addresses(), [Address::Tcp(address)]);
        assert!(listeners.per_worker.iter().all(|own| own.len() == 1));
    }

    #[test]
    fn a_unix_socket_is_shared_and_goes_with_the_last_server() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let here = [Address::Unix(path.clone())];
        let mut first = bind_new(&here, 2).unwrap();
        assert_eq!(first.addresses(), here);
        assert!(first.per_worker.iter().all(|own| own.len() == 1));
        let error = bind_new(&here, 1).unwrap_err();
        assert_eq!(error.taken(), here.first());

        let mut next = bind(&here, 3, inherit(&first), true).unwrap();
        assert!(next.per_worker.iter().all(|own| !own.is_empty()));
        first.close();
        drop(first);
        assert!(path.exists(), "its successor has it");
        next.remove_files();
        assert!(!path.exists());

        // The file of another server is not removed either, nor that of a service manager.
        let mut one = bind_new(&here, 1).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut managed = bind_new(&here, 1).unwrap();
        one.remove_files();
        let mut activated = bind(&[], 1, inherit(&managed), false).unwrap();
        activated.remove_files();
        assert!(path.exists());
        managed.remove_files();
        assert!(!path.exists());
    }
}
