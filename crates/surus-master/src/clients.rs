//! Clients that query the master over a socket. Their number is limited, and none blocks another.
//!
//! The master serves them from its own loop, so nothing here blocks. A client that sends only a part of a request, or
//! does not read its response, has [`Clients::patience`]. If all places are taken, one of the address with the most
//! clients is disconnected, so that well-behaved clients are served.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags};

/// Most clients at a time.
const PLACES: usize = 64;

/// The number of a client.
pub(crate) type ClientId = u64;

/// A connection of either kind.
pub(crate) trait Stream: Read + Write + AsFd {
    /// Closes the sending direction.
    fn end(&self);
}

impl Stream for TcpStream {
    fn end(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

impl Stream for UnixStream {
    fn end(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

/// The result of parsing a client's bytes.
#[derive(Debug)]
pub(crate) enum Heard<A> {
    /// Not all of a request.
    Part,
    /// A request, to be answered later.
    Asked(A),
    /// The response is ready. It is the client's last one.
    Answered(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It may send a request.
    Speaking,
    /// It waits for a response, without a timeout.
    Waiting,
    /// It gets its last response: further input is ignored.
    Ending,
}

#[derive(Debug)]
struct Client<S, A> {
    id: ClientId,
    stream: S,
    address: Option<IpAddr>,
    received: Vec<u8>,
    /// Bytes of responses.
    unsent: Vec<u8>,
    /// It has closed its sending direction.
    silent: bool,
    asked: Option<A>,
    phase: Phase,
    since: Instant,
}

#[derive(Debug)]
pub(crate) struct Clients<S, A> {
    all: Vec<Client<S, A>>,
    next: ClientId,
    /// A client with a longer request is disconnected.
    longest: usize,
    patience: Duration,
    /// Whether a client that has closed its sending direction still gets its response.
    half_closed: bool,
}

impl<S: Stream, A: Copy + PartialEq> Clients<S, A> {
    pub(crate) fn new(longest: usize, patience: Duration, half_closed: bool) -> Self {
        Clients {
            all: Vec::new(),
            next: 0,
            longest,
            patience,
            half_closed,
        }
    }

    /// `stream` must be non-blocking.
    pub(crate) fn add(&mut self, stream: S, address: Option<IpAddr>) {
        if self.all.len() >= PLACES && !self.make_room() {
            return;
        }
        self.all.push(Client {
            id: self.next,
            stream,
            address,
            received: Vec::new(),
            unsent: Vec::new(),
            silent: false,
            asked: None,
            phase: Phase::Speaking,
            since: Instant::now(),
        });
        self.next += 1;
    }

    /// Disconnects a client that the master waits for. False: all of them wait for the master.
    fn make_room(&mut self) -> bool {
        let mut held = HashMap::new();
        for client in &self.all {
            *held.entry(client.address).or_insert(0) += 1;
        }
        let late = self.all.iter().enumerate();
        let late = late.filter(|(_, client)| client.phase != Phase::Waiting);
        // The oldest client of the address with the most: clients are in order of arrival.
        let found = late.rev().max_by_key(|(_, client)| held[&client.address]);
        let found = found.map(|(at, _)| at);
        found.map(|at| self.all.remove(at)).is_some()
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.all.iter().map(|client| {
            let mut flags = PollFlags::empty();
            // A half-closed socket would always be readable.
            flags.set(PollFlags::POLLIN, !client.silent);
            flags.set(PollFlags::POLLOUT, !client.unsent.is_empty());
            PollFd::new(client.stream.as_fd(), flags)
        })
    }

    /// When the time of the next client is over.
    pub(crate) fn due(&self) -> Option<Instant> {
        let timed = self.all.iter();
        let timed = timed.filter(|client| client.phase != Phase::Waiting || client.is_behind());
        timed.map(|client| client.since + self.patience).min()
    }

    /// Reads and writes what is possible now, and returns new requests.
    pub(crate) fn serve(&mut self, hear: impl Fn(&mut Vec<u8>) -> Heard<A>) -> Vec<(ClientId, A)> {
        let mut asked = Vec::new();
        let (longest, patience, half_closed) = (self.longest, self.patience, self.half_closed);
        self.all.retain_mut(|client| {
            if !client.read(longest, half_closed) {
                return false;
            }
            if client.phase == Phase::Speaking {
                match hear(&mut client.received) {
                    Heard::Part if client.silent => return false,
                    Heard::Part => {}
                    Heard::Asked(what) => {
                        client.asked = Some(what);
                        client.enter(Phase::Waiting);
                        asked.push((client.id, what));
                    }
                    Heard::Answered(answer) => {
                        client.unsent.extend(answer);
                        client.enter(Phase::Ending);
                    }
                }
            }
            let waits = client.phase == Phase::Waiting && !client.is_behind();
            client.write() && (waits || client.since.elapsed() < patience)
        });
        asked
    }

    /// Answers all clients that wait for this. `last`: no other response follows.
    pub(crate) fn answer_all(&mut self, asked: A, answer: &[u8], last: bool) {
        self.answer_where(|client| client.asked == Some(asked), answer, last);
    }

    pub(crate) fn answer(&mut self, id: ClientId, answer: &[u8], last: bool) {
        self.answer_where(|client| client.id == id, answer, last);
    }

    fn answer_where(&mut self, which: impl Fn(&Client<S, A>) -> bool, answer: &[u8], last: bool) {
        self.all.retain_mut(|client| {
            if !which(client) {
                return true;
            }
            client.asked = None;
            client.unsent.extend_from_slice(answer);
            client.enter(if last { Phase::Ending } else { Phase::Speaking });
            client.write()
        });
    }
}

impl<S: Stream, A> Client<S, A> {
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.since = Instant::now();
    }

    /// It has not read all of its responses.
    fn is_behind(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// False at its end.
    fn read(&mut self, longest: usize, half_closed: bool) -> bool {
        let mut bytes = [0; 1024];
        loop {
            match self.stream.read(&mut bytes) {
                // The client may close its side and still wait for its response.
                Ok(0) => {
                    self.silent = true;
                    return half_closed && (self.phase != Phase::Ending || self.is_behind());
                }
                // Read and discarded: closing with unread input would reset the connection, and the response could be
                // lost.
                Ok(_) if self.phase == Phase::Ending => {}
                Ok(count) if self.received.len() + count <= longest => {
                    self.received.extend_from_slice(&bytes[..count]);
                }
                Ok(_) => return false,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// False at its end.
    fn write(&mut self) -> bool {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(0) => return false,
                Ok(count) => {
                    self.unsent.drain(..count);
                    self.since = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        if self.phase == Phase::Ending {
            // The client closes the connection, or its time ends.
            self.stream.end();
            return !self.silent;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = Clients<UnixStream, u8>;

    fn clients() -> Pairs {
        Clients::new(100, Duration::from_secs(3600), true)
    }

    fn connect(clients: &mut Pairs, address: u8) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        clients.add(ours, Some(IpAddr::from([10, 0, 0, address])));
        theirs
    }

    /// Each byte is a request; zero is answered at once.
    fn hear(received: &mut Vec<u8>) -> Heard<u8> {
        match received.pop() {
            None => Heard::Part,
            Some(0) => Heard::Answered(b"nothing".to_vec()),
            Some(byte) => Heard::Asked(byte),
        }
    }

    fn text(stream: &mut UnixStream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn who_asks_finds_a_place_among_those_who_say_nothing() {
        let mut clients = clients();
        let other = connect(&mut clients, 2);
        let mut silent: Vec<_> = (0..PLACES * 2).map(|_| connect(&mut clients, 1)).collect();
        let mut one = connect(&mut clients, 3);
        assert_eq!(clients.all.len(), PLACES);
        one.write_all(&[7]).unwrap();
        let asked = clients.serve(hear);
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].1, 7);
        clients.answer(asked[0].0, b"seven", true);
        assert_eq!(text(&mut one), "seven");
        // It is the oldest, but the only one of its address.
        other.set_nonblocking(true).unwrap();
        let error = (&other).read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(text(&mut silent[0]), "");
    }

    #[test]
    fn who_waits_for_us_is_not_sent_away() {
        let mut clients = clients();
        let mut waiting: Vec<_> = (0..PLACES).map(|_| connect(&mut clients, 1)).collect();
        for one in &mut waiting {
            one.write_all(&[5]).unwrap();
        }
        assert_eq!(clients.serve(hear).len(), PLACES);
        let mut late = connect(&mut clients, 1);
        assert_eq!(text(&mut late), "");
        assert_eq!(clients.due(), None);
        clients.answer_all(5, b"five", true);
        for mut one in waiting {
            assert_eq!(text(&mut one), "five");
        }
    }

    #[test]
    fn an_answer_that_is_longer_than_a_buffer_arrives_whole() {
        let mut clients = clients();
        let mut one = connect(&mut clients, 1);
        one.write_all(&[1]).unwrap();
        one.shutdown(Shutdown::Write).unwrap();
        let asked = clients.serve(hear);
        let long = vec![b'x'; 3_000_000];
        clients.answer(asked[0].0, &long, true);
        let reader = std::thread::spawn(move || text(&mut one).len());
        while !clients.all.is_empty() {
            clients.serve(hear);
        }
        assert_eq!(reader.join().unwrap(), long.len());
    }

    #[test]
    fn patience_has_an_end() {
        let mut clients: Pairs = Clients::new(100, Duration::from_millis(1), true);
        let mut silent = connect(&mut clients, 1);
        let mut waiting = connect(&mut clients, 1);
        waiting.write_all(&[1]).unwrap();
        clients.serve(hear);
        assert!(clients.due().is_some());
        std::thread::sleep(Duration::from_millis(5));
        clients.serve(hear);
        assert_eq!(text(&mut silent), "");
        assert_eq!(clients.all.len(), 1);
    }

    #[test]
    fn too_long_a_request_is_its_clients_end() {
        let mut clients: Pairs = Clients::new(3, Duration::from_secs(60), true);
        let mut one = connect(&mut clients, 1);
        one.write_all(&[1; 4]).unwrap();
        assert!(clients.serve(hear).is_empty());
        assert!(clients.all.is_empty());
    }
}
