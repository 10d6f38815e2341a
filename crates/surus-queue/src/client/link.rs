//! Keeps a connection to the owner, and tells a new owner all that the last one has not confirmed.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::rc::Weak;
use std::time::{Duration, Instant};

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::time::sleep;

use super::{Client, Shared, State};
use crate::message::{read, write, ToClient, ToOwner, SOCKET};

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// As long as the client exists.
pub(super) async fn run(shared: Weak<Shared>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let Some(client) = shared.upgrade().map(|shared| Client { shared }) else {
            return;
        };
        match connect(&client.shared).await {
            Ok(stream) => {
                let begun = Instant::now();
                client.shared.state.borrow_mut().begin();
                drop(client);
                let _ = follow(&shared, &stream).await;
                // One that ends each connection, because it does not understand this process, is not asked as fast as possible.
                if begun.elapsed() > LONGEST_PAUSE {
                    pause = FIRST_PAUSE;
                }
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                if let Some(shared) = shared.upgrade() {
                    let mut state = shared.state.borrow_mut();
                    state.is_connected = false;
                    state.out.clear();
                }
            }
            Err(_) => {
                (client.shared.summon)();
                drop(client);
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

async fn connect(shared: &Shared) -> io::Result<UnixStream> {
    // Through the folder's descriptor: a name of a socket has 108 bytes at most.
    let folder = File::open(&shared.folder)?;
    UnixStream::connect(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd())).await
}

impl State {
    /// There is a new connection.
    fn begin(&mut self) {
        self.is_connected = true;
        self.reads.retain(|_, asked| !asked.answer.is_closed());
        let out = &mut self.out;
        out.clear();
        let holds = self.held.iter().copied().collect();
        write(&ToOwner::Hello { holds }, out);
        for (id, ending) in &self.ended {
            let (id, ending) = (*id, ending.clone());
            write(&ToOwner::Ended { id, ending }, out);
        }
        for wanted in self.subscriptions.values() {
            write(&ToOwner::Subscribe(wanted.clone()), out);
        }
        for (&request, (id, pushing, _)) in &self.pushes {
            write(&pushing.clone().message(request, *id), out);
        }
        for ((stream, group), positions) in &self.entries {
            let claim = ToOwner::Claim {
                stream: stream.clone(),
                group: group.clone(),
                positions: positions.iter().copied().collect(),
                keeps: true,
            };
            write(&claim, out);
        }
        for (&request, asked) in &self.reads {
            let wanted = asked.wanted.clone();
            write(&ToOwner::Read { request, wanted }, out);
            if asked.ends {
                write(&ToOwner::Unread { request }, out);
            }
        }
        for (&request, (question, _)) in &self.questions {
            let question = question.clone();
            write(&ToOwner::Ask { request, question }, out);
        }
    }
}

/// Until the connection ends.
async fn follow(shared: &Weak<Shared>, stream: &UnixStream) -> io::Result<()> {
    let (mut received, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let Some(owner) = shared.upgrade() else {
            return Ok(());
        };
        let sent = owner.state.borrow_mut().flush(stream)?;
        let interest = match sent {
            true => Interest::READABLE,
            false => Interest::READABLE | Interest::WRITABLE,
        };
        tokio::select! {
            ready = stream.ready(interest) => {
                if !ready?.is_readable() {
                    continue;
                }
            }
            () = owner.wake.notified() => continue,
        }
        match stream.try_read(&mut piece) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => received.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        }
        let client = Client { shared: owner };
        for message in read(&mut received)? {
            client.hear(message);
        }
    }
}

/// Whether all was sent.
fn flush(out: &mut Vec<u8>, stream: &UnixStream) -> io::Result<bool> {
    let mut sent = 0;
    while sent < out.len() {
        match stream.try_write(&out[sent..]) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    out.drain(..sent);
    Ok(out.is_empty())
}

impl State {
    fn flush(&mut self, stream: &UnixStream) -> io::Result<bool> {
        // Not in the way of others, and never more than one of a job.
        if self.out.is_empty() {
            for (id, done) in std::mem::take(&mut self.progress) {
                write(&ToOwner::Progress { id, done }, &mut self.out);
            }
        }
        flush(&mut self.out, stream)
    }
}

impl Client {
    fn hear(&self, message: ToClient) {
        let mut state = self.shared.state.borrow_mut();
        match message {
            ToClient::Pushed { request, result } => {
                if let Some((.., sender)) = state.pushes.remove(&request) {
                    let _ = sender.send(result);
                }
            }
            ToClient::Entries { request, result } => {
                drop(state);
                self.heard_entries(request, result);
            }
            ToClient::Answer { request, text } => {
                if let Some((_, sender)) = state.questions.remove(&request) {
                    let _ = sender.send(text);
                }
            }
            ToClient::Noted { id } => {
                state.ended.remove(&id);
                state.held.remove(&id);
                self.shared.noted.notify_waiters();
            }
            ToClient::Job(job) => {
                drop(state);
                self.arrived(job);
            }
        }
    }
}
