//! Addresses of listeners.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::str::FromStr;

use socket2::SockRef;

/// A TCP address, or the path of a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Such as `127.0.0.1:8080`.
    Tcp(SocketAddr),
    /// Such as `unix:/run/surus.sock`.
    Unix(PathBuf),
}

impl Address {
    /// The TCP address, if it is one.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) => None,
        }
    }

    /// Whether the kernel is to choose a port.
    pub fn is_any_port(&self) -> bool {
        self.tcp().is_some_and(|address| address.port() == 0)
    }

    /// The address of this socket. `None` if it has neither kind.
    pub(crate) fn of(socket: impl AsFd) -> Option<Self> {
        let address = SockRef::from(&socket).local_addr().ok()?;
        let tcp = address.as_socket().map(Address::Tcp);
        tcp.or_else(|| Some(Address::Unix(address.as_pathname()?.into())))
    }

    /// Whether `other` is what `self` requests; a port of 0 means any.
    pub(crate) fn means(&self, other: &Address) -> bool {
        match (self, other) {
            (Address::Tcp(own), Address::Tcp(other)) => {
                own.ip() == other.ip() && (own.port() == other.port() || own.port() == 0)
            }
            _ => self == other,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Tcp(address)
    }
}

impl FromStr for Address {
    type Err = std::net::AddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("unix:") {
            Some(path) => Ok(Address::Unix(path.into())),
            None => text.parse().map(Address::Tcp),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
