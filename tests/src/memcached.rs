//! A memcached server.

use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::sync::OnceLock;

use nix::sys::signal::Signal;

use crate::ports;
use crate::process::Process;
use crate::temp::TempDir;

#[derive(Debug)]
pub struct Memcached {
    port: u16,
    _process: Process,
    _folder: TempDir,
}

impl Memcached {
    /// The test binary's server.
    pub fn shared() -> &'static Self {
        static SERVER: OnceLock<Memcached> = OnceLock::new();
        SERVER.get_or_init(Self::start)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// A server of one's own, which ends with its value.
    pub fn start() -> Self {
        let folder = TempDir::new("memcached");
        let port = ports::free();
        let mut command = Command::new("memcached");
        command
            .args(["-l", "127.0.0.1", "-p", &port.to_string(), "-U", "0"])
            // Root is refused without a user to become; anybody else stays who they are.
            .args(["-u", "nobody", "-m", "16", "-t", "1"]);
        let mut process = Process::start("memcached", command, Signal::SIGKILL, folder.path());
        process.wait_until(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        Self {
            port,
            _process: process,
            _folder: folder,
        }
    }
}
