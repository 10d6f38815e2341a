//! Notifies a service manager: systemd's `Type=notify` and its watchdog.

use std::env;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The service manager, if one has started this process.
#[derive(Debug)]
pub(crate) struct Manager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// How often it must be notified.
    pub(crate) watchdog: Option<Duration>,
}

impl Manager {
    pub(crate) fn from_env() -> Self {
        let address = env::var("NOTIFY_SOCKET").ok().and_then(|name| {
            match name.strip_prefix('@') {
                Some(name) => SocketAddr::from_abstract_name(name),
                None => SocketAddr::from_pathname(&name),
            }
            .ok()
        });
        let socket = address.and_then(|address| Some((UnixDatagram::unbound().ok()?, address)));
        // Half of the manager's timeout, as its manual recommends.
        let watchdog = env::var("WATCHDOG_USEC")
            .ok()
            .filter(|_| socket.is_some())
            .and_then(|text| text.parse().ok())
            .map(|micros: u64| Duration::from_micros(micros / 2));
        Manager { socket, watchdog }
    }

    /// Sends lines such as `READY=1`. Errors are ignored.
    pub(crate) fn tell(&self, lines: &str) {
        if let Some((socket, address)) = &self.socket {
            let _ = socket.send_to_addr(lines.as_bytes(), address);
        }
    }
}
