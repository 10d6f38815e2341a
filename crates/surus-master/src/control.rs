//! The control socket: a line of JSON in, a line of JSON out, only for the user that the master runs as.
//!
//! The master serves it from its own loop, so nothing here waits: clients are few, short-lived and bounded.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

use crate::protocol::{decode, encode};

const CLIENTS: usize = 32;
/// Requests are one short line.
const LONGEST_REQUEST: usize = 4096;
/// A client that says nothing for so long is closed, unless it waits for an answer.
const SILENCE: Duration = Duration::from_secs(10);

/// What a client may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// What `surus status` prints.
    Status,
    /// New code.
    Reload,
    /// A new binary or configuration.
    Upgrade,
    /// The end, once requests in flight have finished.
    Stop,
}

pub(crate) type ClientId = u64;

#[derive(Debug)]
struct Client {
    id: ClientId,
    stream: UnixStream,
    received: Vec<u8>,
    /// Waits for an answer to this.
    asked: Option<Request>,
    since: Instant,
}

#[derive(Debug)]
pub(crate) struct Control {
    path: PathBuf,
    /// What it is called until it gets its name.
    unpublished: Option<PathBuf>,
    listener: UnixListener,
    clients: Vec<Client>,
    next: ClientId,
}

impl Control {
    /// Binds beside the final name, for [`Control::publish`].
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o755)
                .create(folder)?;
        }
        if fs::symlink_metadata(path).is_ok_and(|found| !found.file_type().is_socket()) {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "there is a file of that name that is not a socket",
            ));
        }
        let new = path.with_extension(format!("{}.new", std::process::id()));
        let _ = fs::remove_file(&new);
        let listener = UnixListener::bind(&new)?;
        fs::set_permissions(&new, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Control {
            path: path.to_owned(),
            unpublished: Some(new),
            listener,
            clients: Vec::new(),
            next: 0,
        })
    }

    /// Takes its name: a socket that a predecessor has left, or still serves, is replaced in one step.
    pub(crate) fn publish(&mut self) {
        let Some(new) = self.unpublished.take() else {
            return;
        };
        if let Err(error) = fs::rename(&new, &self.path) {
            eprintln!(
                "surus: no control socket at {}: {error}",
                self.path.display()
            );
            let _ = fs::remove_file(new);
            self.leave_behind();
        }
    }

    /// A successor has renamed its own socket over this one.
    pub(crate) fn leave_behind(&mut self) {
        self.path = PathBuf::new();
        self.unpublished = None;
    }

    /// In a worker after the fork: neither the socket nor its name is the worker's.
    pub(crate) fn forget(mut self) {
        self.leave_behind();
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let clients = self.clients.iter().map(|client| client.stream.as_fd());
        std::iter::once(self.listener.as_fd()).chain(clients)
    }

    /// Accepts, reads, and returns what is newly asked for.
    pub(crate) fn read(&mut self) -> Vec<(ClientId, Request)> {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.clients.len() < CLIENTS && stream.set_nonblocking(true).is_ok() {
                self.clients.push(Client {
                    id: self.next,
                    stream,
                    received: Vec::new(),
                    asked: None,
                    since: Instant::now(),
                });
                self.next += 1;
            }
        }
        let mut asked = Vec::new();
        self.clients.retain_mut(|client| {
            let alive = client.read();
            if client.asked.is_none() {
                client.asked = decode(&mut client.received).into_iter().next();
                asked.extend(client.asked.map(|request| (client.id, request)));
            }
            alive && (client.asked.is_some() || client.since.elapsed() < SILENCE)
        });
        asked
    }

    /// Answers every client that waits for this.
    pub(crate) fn answer_all(&mut self, request: Request, answer: &Value) {
        self.answer_where(|client| client.asked == Some(request), answer);
    }

    pub(crate) fn answer(&mut self, id: ClientId, answer: &Value) {
        self.answer_where(|client| client.id == id, answer);
    }

    fn answer_where(&mut self, which: impl Fn(&Client) -> bool, answer: &Value) {
        let line = encode(answer);
        self.clients
            .retain_mut(|client| !which(client) || client.answer(&line));
    }
}

impl Client {
    /// False at its end.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 1024];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) if self.received.len() + count <= LONGEST_REQUEST => {
                    self.received.extend_from_slice(&bytes[..count]);
                }
                Ok(_) => return false,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
    }

    /// A status of hundreds of workers still fits into a socket's buffer, so this does not wait for the client.
    fn answer(&mut self, line: &[u8]) -> bool {
        self.asked = None;
        self.since = Instant::now();
        self.stream.write_all(line).is_ok()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let name = self.unpublished.as_ref().unwrap_or(&self.path);
        if !name.as_os_str().is_empty() {
            let _ = fs::remove_file(name);
        }
    }
}

pub(crate) fn outcome(result: Result<(), String>) -> Value {
    match result {
        Ok(()) => json!({"ok": true}),
        Err(error) => json!({"ok": false, "error": error}),
    }
}

/// Asks the master behind `path`. An error means that there is none.
pub fn ask(path: &Path, request: Request, patience: Duration) -> io::Result<Value> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(&encode(&request))?;
    let mut received = Vec::new();
    let mut bytes = [0; 16 * 1024];
    loop {
        match stream.read(&mut bytes)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => received.extend_from_slice(&bytes[..count]),
        }
        if let Some(answer) = decode(&mut received).into_iter().next() {
            return Ok(answer);
        }
    }
}
