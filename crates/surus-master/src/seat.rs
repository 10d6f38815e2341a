use std::io::Write;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// What a worker gets from the master, and its way to tell how its start went.
#[derive(Debug)]
pub struct Seat {
    /// From 0.
    pub index: usize,
    pub listeners: Vec<TcpListener>,
    /// What [`Listeners::hold`](crate::Listeners::hold) was given: the worker's own copies.
    pub held: Vec<OwnedFd>,
    pub(crate) report: Option<UnixStream>,
}

/// On the wire a report is one byte for its kind, then text until the end of the stream.
pub(crate) const READY: u8 = b'R';
pub(crate) const FAILED: u8 = b'F';

impl Seat {
    /// The worker serves.
    pub fn ready(&mut self) {
        self.send(READY, "");
    }

    /// The application did not boot. The worker should exit now.
    pub fn boot_failed(&mut self, message: &str) {
        self.send(FAILED, message);
    }

    fn send(&mut self, kind: u8, text: &str) {
        let Some(mut report) = self.report.take() else {
            return;
        };
        let mut message = vec![kind];
        message.extend_from_slice(text.as_bytes());
        // Without a master to read it this worker is about to be killed anyway.
        let _ = report.write_all(&message);
    }
}
