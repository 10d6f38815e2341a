//! A Redis server.

use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::sync::OnceLock;

use nix::sys::signal::Signal;

use crate::ports;
use crate::process::Process;
use crate::temp::TempDir;

#[derive(Debug)]
pub struct Redis {
    port: u16,
    process: Option<Process>,
    folder: TempDir,
}

impl Redis {
    /// The test binary's server.
    pub fn shared() -> &'static Self {
        static SERVER: OnceLock<Redis> = OnceLock::new();
        SERVER.get_or_init(Self::start)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// A server of one test, which may [`Redis::kill`] it.
    pub fn own() -> Self {
        Self::start()
    }

    /// Nobody is there any more.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// It is there again, at the same port, and has forgotten all.
    pub fn again(&mut self) {
        self.process = Some(Self::run(self.port, &self.folder));
    }

    fn start() -> Self {
        let folder = TempDir::new("redis");
        let port = ports::free();
        Self {
            port,
            process: Some(Self::run(port, &folder)),
            folder,
        }
    }

    fn run(port: u16, folder: &TempDir) -> Process {
        let mut command = Command::new("redis-server");
        command
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(folder.path());
        let mut process = Process::start("redis", command, Signal::SIGKILL, folder.path());
        process.wait_until(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        process
    }
}
