//! A worker as the master sees it: its process id, its channel, its answers.

use std::fs;
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::unistd::Pid;
use rustix::net::{sendmsg, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use serde_json::Value;

use crate::protocol::{decode, encode, Order, Report};
use crate::state::Now;

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    /// `None` once the worker has closed its end.
    channel: Option<UnixStream>,
    received: Vec<u8>,
    /// A plain process. It answers no questions: it does one thing at a time.
    pub(crate) plain: bool,
    /// The oldest question that it has not answered.
    pub(crate) asked: Option<(u64, Now)>,
    /// The newest question that it has answered.
    pub(crate) answered: u64,
    pub(crate) status: Value,
}

impl Process {
    pub(crate) fn new(pid: Pid, channel: UnixStream, plain: bool) -> Self {
        Process {
            pid,
            channel: Some(channel),
            received: Vec::new(),
            plain,
            asked: None,
            answered: 0,
            status: Value::Null,
        }
    }

    pub(crate) fn channel(&self) -> Option<&UnixStream> {
        self.channel.as_ref()
    }

    /// Sends an order. Orders are short and few. If the socket buffer is full, the worker is blocked, and the watchdog
    /// will kill it.
    pub(crate) fn order(&self, order: &Order) {
        if let Some(mut channel) = self.channel.as_ref() {
            let _ = channel.write_all(&encode(order));
        }
    }

    /// Sends an order with a file.
    pub(crate) fn hand_over(&self, order: &Order, file: BorrowedFd<'_>) {
        let Some(channel) = &self.channel else {
            return;
        };
        let files = [file];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&files));
        let line = encode(order);
        // As above.
        let _ = sendmsg(
            channel,
            &[IoSlice::new(&line)],
            &mut control,
            SendFlags::NOSIGNAL,
        );
    }

    pub(crate) fn ask(&mut self, question: u64, now: Now) {
        if !self.plain {
            self.order(&Order::Status { question });
            self.asked.get_or_insert((question, now));
        }
    }

    pub(crate) fn answered(&mut self, question: u64, status: Value, now: Now) {
        self.answered = question;
        self.status = status;
        // Answers come in order. The time for later questions begins now: the worker is alive.
        if self.asked.is_some_and(|(asked, _)| question >= asked) {
            self.asked = None;
        } else if let Some((_, since)) = &mut self.asked {
            *since = now;
        }
    }

    /// The master itself was stopped for this time, perhaps with the whole machine: it does not count against the
    /// worker.
    pub(crate) fn forgive(&mut self, time: Duration) {
        if let Some((_, since)) = &mut self.asked {
            *since += time;
        }
    }

    pub(crate) fn reports(&mut self) -> Vec<Report> {
        let Some(mut channel) = self.channel.as_ref() else {
            return Vec::new();
        };
        match channel.read_to_end(&mut self.received) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The worker has exited: there are no more reports.
            Ok(_) | Err(_) => self.channel = None,
        }
        decode(&mut self.received)
    }

    /// Bytes of its resident memory, including shared memory; `None` once it has ended.
    pub(crate) fn resident(&self) -> Option<u64> {
        let statm = fs::read_to_string(format!("/proc/{}/statm", self.pid)).ok()?;
        let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
        Some(pages * PAGE)
    }
}

/// The unit of /proc/PID/statm on every machine that Debian's PHP is built for with this page size.
const PAGE: u64 = 4096;

pub(crate) fn unix_time() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs()
}
