//! The process that owns the jobs: one thread, one `poll`. All that has arrived by then is one batch: written at once, synced at
//! once, answered after that. So a thousand pushes at the same time cost one visit to the disk.

mod asked;
mod door;
mod pushed;
mod streams;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{poll, PollFd, PollFlags, Timespec};

use crate::book::{Book, Peer};
use crate::clock::Clock;
use crate::holder::Holder;
use crate::job::{Id, Pushed};
use crate::log::Log;
use crate::message::{Delivery, ToClient, ToOwner};
use crate::peer::Socket;
use crate::record::Record;
use door::Door;

/// How often processes are looked at that may be dead.
const LOOK: Duration = Duration::from_millis(20);
/// Ends of jobs are on disk after this time at the latest: a loss of power lets those run again that have ended since.
const SYNC: Duration = Duration::from_secs(1);
/// How often the clock is looked at while jobs are delayed: the machine may sleep.
const GLANCE: Duration = Duration::from_secs(60);
/// Between two attempts to write the log anew.
const REWRITE: Duration = Duration::from_secs(10);

/// Why an owner has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was asked to.
    Ended,
    /// Another owner has taken over.
    Yielded,
}

/// Owns the jobs in this folder until SIGTERM. `most`: bytes that they may take. `observe` is told how many wait, are delayed, run, have
/// failed and were done, and what bytes they take.
///
/// # Errors
/// The folder cannot be used, or the disk has failed: what it has is not known, and must be read again.
pub fn own(folder: &Path, most: u64, observe: &dyn Fn([u64; 6])) -> io::Result<Outcome> {
    // Also those of a limit on the size of files, which is an error of the write then.
    let signals = [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGHUP,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGXFSZ,
    ];
    let signals = SigSet::from_iter(signals);
    signals.thread_block()?;
    let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    let door = Door::open(folder)?;
    let (log, records) = Log::open(folder)?;
    let mut owner = Owner {
        most,
        // Nothing is due before the clock is known.
        book: Book::restored(records, 0),
        clock: Clock::new(),
        log,
        door,
        sockets: HashMap::new(),
        holders: HashMap::new(),
        last_peer: 0,
        batch: Batch::default(),
        unsynced_since: None,
        write_failed: false,
        has_strangers: false,
        yielded: false,
        rewrite_not_before: None,
    };
    owner.keep_time();
    let time = owner.clock.now();
    for record in owner.book.give_up_lost(time) {
        owner.log.owe(&record);
    }
    owner.book.wake(time);
    owner.book.streams.begin(time);
    owner.run(&signals, observe)
}

struct Owner {
    most: u64,
    book: Book,
    clock: Clock,
    log: Log,
    door: Door,
    sockets: HashMap<Peer, Socket>,
    holders: HashMap<Peer, Holder>,
    last_peer: Peer,
    batch: Batch,
    unsynced_since: Option<Instant>,
    /// The log could not be written; said once.
    write_failed: bool,
    /// Somebody is not understood; said once.
    has_strangers: bool,
    yielded: bool,
    rewrite_not_before: Option<Instant>,
}

/// Pushes that are not on disk yet.
#[derive(Default)]
struct Batch {
    records: Vec<u8>,
    ids: Vec<Id>,
    batches: Vec<Id>,
    /// Those that have new entries.
    streams: BTreeSet<String>,
    acknowledged: Vec<Record>,
    answers: Vec<(Peer, u64, Result<Pushed, String>)>,
}

impl Owner {
    fn run(&mut self, signals: &SignalFd, observe: &dyn Fn([u64; 6])) -> io::Result<Outcome> {
        loop {
            observe(self.book.totals());
            self.wait(signals)?;
            if self.has_ended(signals)? {
                self.finish()?;
                let ended = if self.yielded {
                    Outcome::Yielded
                } else {
                    Outcome::Ended
                };
                return Ok(ended);
            }
            if let Some(clock) = self.clock.look() {
                self.clock = clock;
                self.keep_time();
            }
            self.accept();
            self.receive();
            let time = self.clock.now();
            self.book.wake(time);
            if self.book.has_doubts() {
                for record in self.book.bury(Holder::is_alive, time) {
                    self.log.owe(&record);
                }
            }
            self.save()?;
            self.deliver();
            self.deliver_entries();
            self.write_owed();
            self.flush();
            self.tidy()?;
        }
    }

    /// Delays are as long as was said, whatever the clock was set to.
    fn keep_time(&mut self) {
        let (clock, record) = self.book.follow_clock(self.clock);
        self.clock = clock;
        if let Some(record) = record {
            self.log.owe(&record);
        }
    }

    fn wait(&self, signals: &SignalFd) -> io::Result<()> {
        let mut descriptors = vec![
            PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.door.descriptor(), PollFlags::IN),
        ];
        for socket in self.sockets.values() {
            let mut flags = PollFlags::IN;
            flags.set(PollFlags::OUT, socket.has_to_send());
            descriptors.push(PollFd::from_borrowed_fd(socket.descriptor(), flags));
        }
        let due = self
            .book
            .next_due(self.clock.now())
            .map(|due| Duration::from_millis(due.saturating_sub(self.clock.now())).min(GLANCE));
        let look = self.book.has_doubts().then_some(LOOK);
        let sync = self
            .unsynced_since
            .map(|since| SYNC.saturating_sub(since.elapsed()));
        let timeout = [due, look, sync].into_iter().flatten().min();
        let timeout = timeout.and_then(|time| Timespec::try_from(time).ok());
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn has_ended(&self, signals: &SignalFd) -> io::Result<bool> {
        let mut ended = self.yielded;
        while let Some(signal) = signals.read_signal()? {
            ended |= signal.ssi_signo == Signal::SIGTERM as u32;
        }
        Ok(ended)
    }

    /// Takes no more, and leaves a log that has everything.
    fn finish(&mut self) -> io::Result<()> {
        self.save()?;
        self.write_owed();
        self.flush();
        self.log.sync()
    }

    fn accept(&mut self) {
        while let Some(stream) = self.door.accept() {
            if let Ok(socket) = Socket::new(stream) {
                self.last_peer += 1;
                self.sockets.insert(self.last_peer, socket);
            }
        }
    }

    fn receive(&mut self) {
        // Older ones first: a process that comes with another connection has left the one before.
        let mut peers: Vec<Peer> = self.sockets.keys().copied().collect();
        peers.sort_unstable();
        for peer in peers {
            let received = self.sockets.get_mut(&peer).map(Socket::receive);
            match received {
                Some(Ok(messages)) => messages
                    .into_iter()
                    .for_each(|message| self.obey(peer, message)),
                Some(Err(error)) => {
                    if error.kind() == io::ErrorKind::InvalidData {
                        self.note_stranger(peer);
                    }
                    self.leave(peer);
                }
                None => {}
            }
        }
    }

    /// Its messages are of another version of this program. It comes again and again, and this is said once.
    fn note_stranger(&mut self, peer: Peer) {
        let Some(socket) = self.sockets.get(&peer) else {
            return;
        };
        if !std::mem::replace(&mut self.has_strangers, true) {
            surus_log::say!(
                "{}: process {} is not understood, and has no jobs: is it of another version? Start it again",
                self.door.folder().display(),
                socket.holder.pid()
            );
        }
    }

    fn leave(&mut self, peer: Peer) {
        if let Some(socket) = self.sockets.remove(&peer) {
            self.book.leave(peer, socket.holder);
        }
        self.holders.remove(&peer);
    }

    fn obey(&mut self, peer: Peer, message: ToOwner) {
        let time = self.clock.now();
        match message {
            ToOwner::Hello { holds } => {
                let Some(socket) = self.sockets.get_mut(&peer) else {
                    return;
                };
                socket.is_known = true;
                let holder = socket.holder;
                self.holders.insert(peer, holder);
                for record in self.book.claim(peer, holder, &holds, time) {
                    self.log.owe(&record);
                }
            }
            ToOwner::Push { request, id, push } => {
                let result = self.push(id, push, time);
                self.batch.answers.push((peer, request, result));
            }
            ToOwner::Subscribe(wanted) => {
                if self.holders.contains_key(&peer) {
                    self.book.subscribe(peer, &wanted);
                }
            }
            ToOwner::Ended { id, ending } => {
                if let Some(record) = self.book.end(peer, id, ending, time) {
                    self.log.owe(&record);
                }
                self.send(peer, &ToClient::Noted { id });
            }
            ToOwner::Ask { request, question } => {
                let text = self.answer(question, time).to_string();
                self.send(peer, &ToClient::Answer { request, text });
            }
            ToOwner::Change {
                request,
                id,
                change,
            } => {
                let result = self.change(id, change, time);
                self.batch.answers.push((peer, request, result));
            }
            ToOwner::Read { request, wanted } => self.read(peer, request, wanted),
            ToOwner::Unread { request } => {
                // Otherwise it has its answer, or its group was forgotten.
                if !self.book.streams.unread(peer, request) {
                    let result = Ok(Vec::new());
                    self.send(peer, &ToClient::Entries { request, result });
                }
            }
            ToOwner::Claim {
                stream,
                group,
                positions,
                keeps,
            } => {
                let streams = &mut self.book.streams;
                streams.claim(peer, &stream, &group, &positions, keeps, time);
            }
            ToOwner::Progress { id, done } => self.book.note_progress(peer, id, done),
            ToOwner::Batch { request, id, batch } => {
                let result = self.push_batch(id, *batch, time);
                self.batch.answers.push((peer, request, result));
            }
            ToOwner::Yield => self.yielded = true,
        }
    }

    fn send(&mut self, peer: Peer, message: &ToClient) {
        if let Some(socket) = self.sockets.get_mut(&peer) {
            socket.send(message);
        }
    }

    /// Ends and beginnings need not be on disk at once: the kernel has them, whatever happens to processes. If even that fails,
    /// jobs run on, and what the log lacks is written later.
    fn write_owed(&mut self) {
        let written = self.log.write_owed();
        self.note_written(&written.as_ref().map(|&()| ()));
        if !self.log.is_synced() {
            self.unsynced_since.get_or_insert_with(Instant::now);
        }
    }

    fn note_written(&mut self, written: &Result<(), &io::Error>) {
        let folder = self.door.folder().display();
        match written {
            Err(error) if !self.write_failed => {
                surus_log::say!(
                    "{folder}: no job can be pushed, the log of jobs cannot be written: {error}"
                );
            }
            Ok(()) if self.write_failed => {
                surus_log::say!("{folder}: the log of jobs can be written again")
            }
            _ => {}
        }
        self.write_failed = written.is_err();
    }

    fn deliver(&mut self) {
        let time = self.clock.now();
        while let Some((peer, job, record)) = self.book.next(&self.holders, time) {
            let delivery = Delivery {
                id: job.id,
                queue: job.queue.clone(),
                payload: job.payload.clone(),
                attempt: job.attempts,
                pushed: job.pushed,
            };
            self.log.owe(&record);
            self.send(peer, &ToClient::Job(delivery));
        }
    }

    fn flush(&mut self) {
        let mut gone = Vec::new();
        for (&peer, socket) in &mut self.sockets {
            if socket.flush(self.most).is_err() {
                gone.push(peer);
            }
        }
        gone.into_iter().for_each(|peer| self.leave(peer));
    }

    fn tidy(&mut self) -> io::Result<()> {
        if self
            .unsynced_since
            .is_some_and(|since| since.elapsed() >= SYNC)
        {
            self.log.sync()?;
            self.unsynced_since = None;
        }
        let may_rewrite = self
            .rewrite_not_before
            .is_none_or(|time| time <= Instant::now());
        if may_rewrite && self.log.is_wasteful(self.book.bytes()) {
            self.rewrite_not_before = Some(Instant::now() + REWRITE);
            let written = self.log.rewrite(self.book.records());
            self.note_written(&written.as_ref().map(|&()| ()));
        }
        Ok(())
    }
}
