use std::collections::VecDeque;
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::net::{recvmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use surus_log::Log;

use crate::board::Tally;
use crate::protocol::{decode, encode, Order, Report};

/// A seat is the place of one worker process, which successors take over. This is what its worker gets from the master.
#[derive(Debug)]
pub struct Seat {
    /// From 0.
    pub index: usize,
    /// The sockets of every seat. A worker accepts from those it is told to adopt, its own among them.
    pub listeners: Vec<Vec<OwnedFd>>,
    /// The worker's own copies of the files from [`Listeners::hold`](crate::Listeners::hold).
    pub held: Vec<OwnedFd>,
    /// OPcache may have old versions of files that have changed since this Unix time: the process must invalidate them
    /// first.
    pub refresh: Option<u64>,
    /// The worker's counters.
    pub tally: Tally,
    /// The channel for reports and orders.
    pub master: Channel,
}

/// A worker's connection to its master.
#[derive(Debug)]
pub struct Channel {
    pub(crate) stream: UnixStream,
    received: Vec<u8>,
    /// Files that came with orders that are still to be read.
    files: VecDeque<OwnedFd>,
}

/// Most files that one read may receive.
const FILES: usize = 8;

impl Channel {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Channel {
            stream,
            received: Vec::new(),
            files: VecDeque::new(),
        }
    }

    /// Sends a report. Reports are short, and the master reads them at once. Without a master this worker is about to
    /// be killed anyway.
    pub fn send(&self, report: &Report) {
        let _ = (&self.stream).write_all(&encode(report));
    }

    /// Another channel to the same master, for reports.
    pub fn another(&self) -> io::Result<Channel> {
        self.stream().map(Channel::new)
    }

    /// Another handle, to wait for orders.
    pub fn stream(&self) -> io::Result<UnixStream> {
        self.stream.try_clone()
    }

    /// Receives orders. Those about logs are carried out here. `None`: the master has exited.
    ///
    /// # Errors
    /// `WouldBlock`: nothing was received.
    pub fn receive(&mut self) -> io::Result<Option<Vec<Order>>> {
        let mut bytes = [0; 4096];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let parts = &mut [IoSliceMut::new(&mut bytes)];
        let count = recvmsg(&self.stream, parts, &mut control, flags)?.bytes;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                self.files.extend(files);
            }
        }
        if count == 0 {
            return Ok(None);
        }
        self.received.extend_from_slice(&bytes[..count]);
        let mut orders = decode(&mut self.received);
        orders.retain(|order| {
            let Order::Reopen { access } = order else {
                return true;
            };
            if let Some(file) = self.files.pop_front() {
                surus_log::adopt(if *access { Log::Access } else { Log::Error }, file);
            }
            false
        });
        Ok(Some(orders))
    }
}
