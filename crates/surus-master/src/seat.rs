use std::io::{self, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use crate::board::Tally;
use crate::protocol::{decode, encode, Order, Report};

/// What a worker gets from the master.
#[derive(Debug)]
pub struct Seat {
    /// From 0.
    pub index: usize,
    /// The sockets of every seat. A worker accepts from those it is told to adopt, its own among them.
    pub listeners: Vec<Vec<TcpListener>>,
    /// What [`Listeners::hold`](crate::Listeners::hold) was given: the worker's own copies.
    pub held: Vec<OwnedFd>,
    /// OPcache may not know of files that have changed since this Unix time: the process is to see to that first.
    pub refresh: Option<u64>,
    /// Where the worker counts.
    pub tally: Tally,
    /// Where reports go and orders come from.
    pub master: Channel,
}

/// A worker's connection to its master.
#[derive(Debug)]
pub struct Channel {
    pub(crate) stream: UnixStream,
    received: Vec<u8>,
}

impl Channel {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Channel {
            stream,
            received: Vec::new(),
        }
    }

    /// Reports are short and the master reads them at once. Without a master this worker is about to be killed anyway.
    pub fn send(&self, report: &Report) {
        let _ = (&self.stream).write_all(&encode(report));
    }

    /// Another handle, to wait with.
    pub fn stream(&self) -> io::Result<UnixStream> {
        self.stream.try_clone()
    }

    /// The orders that are complete with these bytes.
    pub fn orders(&mut self, bytes: &[u8]) -> Vec<Order> {
        self.received.extend_from_slice(bytes);
        decode(&mut self.received)
    }
}
