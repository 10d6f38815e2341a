//! Listening sockets, bound before the fork: one per worker and address, so that the kernel spreads connections.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

use socket2::{Domain, Protocol, Socket, Type};

/// Connections the kernel holds ready per socket (it caps this at net.core.somaxconn).
const BACKLOG: i32 = 4096;

/// The sockets of every worker. The master keeps them open, so that a replacement finds its predecessor's queue.
#[derive(Debug)]
pub struct Listeners {
    per_worker: Vec<Vec<TcpListener>>,
    addresses: Vec<SocketAddr>,
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

    /// In a worker, after the fork: its own sockets. The others are closed here, or they would take connections that
    /// nobody accepts once their worker is gone.
    pub(crate) fn take(&mut self, worker: usize) -> (Vec<TcpListener>, Vec<OwnedFd>) {
        let own = std::mem::take(&mut self.per_worker[worker]);
        self.per_worker.clear();
        (own, std::mem::take(&mut self.held))
    }

    pub(crate) fn close(&mut self) {
        self.per_worker.clear();
        self.held.clear();
    }
}

#[derive(Debug)]
pub struct BindError {
    address: SocketAddr,
    error: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.address;
        match self.error.kind() {
            io::ErrorKind::AddrInUse => {
                write!(
                    f,
                    "cannot listen on {address}: another process does already"
                )
            }
            io::ErrorKind::PermissionDenied => {
                write!(
                    f,
                    "cannot listen on {address}: not permitted (ports below 1024 need root)"
                )
            }
            _ => write!(f, "cannot listen on {address}: {}", self.error),
        }
    }
}

impl std::error::Error for BindError {}

pub fn bind(addresses: &[SocketAddr], workers: usize) -> Result<Listeners, BindError> {
    let mut listeners = Listeners {
        per_worker: (0..workers).map(|_| Vec::new()).collect(),
        addresses: Vec::new(),
        held: Vec::new(),
    };
    for &address in addresses {
        let failed = |error| BindError { address, error };
        let address = probe(address).map_err(failed)?;
        for own in &mut listeners.per_worker {
            own.push(listen(address).map_err(failed)?);
        }
        listeners.addresses.push(address);
    }
    Ok(listeners)
}

/// Sockets with SO_REUSEPORT bind beside each other, those of a second server as well. A bind without it tells.
fn probe(address: SocketAddr) -> io::Result<SocketAddr> {
    let socket = socket(address)?;
    socket.bind(&address.into())?;
    socket
        .local_addr()?
        .as_socket()
        .ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
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

    #[test]
    fn every_worker_gets_a_socket_of_its_own_on_the_same_address() {
        let mut listeners = bind(&[any_port()], 3).unwrap();
        let address = listeners.addresses()[0];
        assert_ne!(address.port(), 0);
        assert!(listeners.per_worker.iter().all(|own| own.len() == 1));
        assert!(listeners
            .per_worker
            .iter()
            .all(|own| own[0].local_addr().unwrap() == address));
        listeners.add_silent(1);
        assert_eq!(listeners.workers(), 4);
        assert_eq!(listeners.take(1).0.len(), 1);
    }

    #[test]
    fn a_second_server_on_the_same_port_is_refused() {
        let first = bind(&[any_port()], 2).unwrap();
        let error = bind(first.addresses(), 2).unwrap_err();
        let expected = format!(
            "cannot listen on {}: another process does already",
            first.addresses()[0]
        );
        assert_eq!(error.to_string(), expected);
        let address = first.addresses()[0];
        drop(first);
        bind(&[address], 2).unwrap();
    }
}
