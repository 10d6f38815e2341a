//! The control socket: one line of JSON per request and per response, only for the user that the master runs as.
//!
//! Its name belongs to one server: only its successor can take the name from a running server.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{symlink, DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::{getsockopt, sockopt};
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::clients::{ClientId, Clients, Heard};
use crate::protocol::{decode, encode};

/// Requests are one short line.
const LONGEST_REQUEST: usize = 4096;
/// The limit of the kernel: `sun_path` without its NUL.
const LONGEST_NAME: usize = 107;
/// A client that sends nothing for this time is closed, unless it waits for a response.
const SILENCE: Duration = Duration::from_secs(10);
/// How long to wait for a server that has the name to say whether it ends, and for the lock on the folder.
const PROMPT: Duration = Duration::from_secs(5);

/// The requests of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Status, as `surus status` prints it.
    Status,
    /// Load new code.
    Reload,
    /// Start a new binary or configuration.
    Upgrade,
    /// Stop, after requests in flight have finished.
    Stop,
}

/// The location of a master's control socket.
#[derive(Clone, Debug)]
pub struct Door {
    /// Path of the socket.
    pub path: PathBuf,
    /// Another name: a link named after the process id, for commands that do not know the path.
    pub alias: Option<PathBuf>,
    /// The server does not start without it, because it was configured.
    pub required: bool,
}

#[derive(Debug)]
pub(crate) struct Control {
    path: PathBuf,
    alias: Option<PathBuf>,
    /// Device and inode of the socket file, once it has its name: later the name may belong to another server.
    taken: Option<(u64, u64)>,
    /// The temporary name, until it gets its name.
    unpublished: Option<PathBuf>,
    listener: UnixListener,
    clients: Clients<UnixStream, Request>,
    /// The master that is replaced: this one may take its name.
    predecessor: Option<i32>,
}

impl Control {
    /// Binds to a temporary name, for [`Control::publish`].
    ///
    /// # Errors
    /// Another server has the name, or the socket cannot be created.
    pub(crate) fn bind(door: &Door, predecessor: Option<i32>) -> io::Result<Self> {
        let path = std::path::absolute(&door.path)?;
        let new = path.with_extension(format!("{}.new", std::process::id()));
        if new.as_os_str().len() > LONGEST_NAME {
            return Err(io::Error::other(format!(
                "the path is too long: {LONGEST_NAME} bytes are the most for a socket, with the suffix that it has at first",
            )));
        }
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o755)
                .create(folder)?;
        }
        may_take(&path, predecessor)?;
        let _ = fs::remove_file(&new);
        let listener = UnixListener::bind(&new)?;
        fs::set_permissions(&new, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Control {
            path,
            alias: door.alias.clone(),
            taken: None,
            unpublished: Some(new),
            listener,
            clients: Clients::new(LONGEST_REQUEST, SILENCE, false),
            predecessor,
        })
    }

    /// Takes the name: atomically replaces a socket that nobody serves any more, or that of the predecessor.
    ///
    /// # Errors
    /// Another server was faster.
    pub(crate) fn publish(&mut self) -> io::Result<()> {
        let Some(new) = &self.unpublished else {
            return Ok(());
        };
        // Servers that start at the same time check and rename one after the other.
        let _lock = lock_folder(&self.path);
        may_take(&self.path, self.predecessor)?;
        let found = fs::symlink_metadata(new)?;
        fs::rename(new, &self.path)?;
        self.unpublished = None;
        self.taken = Some((found.dev(), found.ino()));
        if let Some(alias) = self.alias.take_if(|alias| *alias != self.path) {
            // Optional: without the link the socket is found by its own name.
            let made = alias.parent().map(fs::create_dir_all);
            let _ = fs::remove_file(&alias);
            if made.is_some_and(|made| made.is_ok()) && symlink(&self.path, &alias).is_ok() {
                self.alias = Some(alias);
            }
        }
        Ok(())
    }

    /// Keeps the socket file on drop: a successor has replaced it with its own, or this is a worker after the fork.
    pub(crate) fn leave_behind(&mut self) {
        self.taken = None;
        self.unpublished = None;
        if let Some(alias) = self.alias.take() {
            let _ = fs::remove_file(alias);
        }
    }

    /// In a worker after the fork: neither the socket nor its names belong to the worker.
    pub(crate) fn forget(mut self) {
        self.alias = None;
        self.leave_behind();
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = PollFd<'_>> {
        use std::os::fd::AsFd;
        let listener = PollFd::new(self.listener.as_fd(), PollFlags::POLLIN);
        std::iter::once(listener).chain(self.clients.descriptors())
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.clients.due()
    }

    /// Accepts, reads, and returns new requests.
    pub(crate) fn read(&mut self) -> Vec<(ClientId, Request)> {
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_ok() {
                self.clients.add(stream, None);
            }
        }
        self.clients.serve(|received| {
            let asked = decode(received).into_iter().next();
            asked.map_or(Heard::Part, Heard::Asked)
        })
    }

    /// Answers every client that waits for this.
    pub(crate) fn answer_all(&mut self, request: Request, answer: &Value) {
        self.clients.answer_all(request, &encode(answer), false);
    }

    pub(crate) fn answer(&mut self, id: ClientId, answer: &Value) {
        self.clients.answer(id, &encode(answer), false);
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if let Some(new) = &self.unpublished {
            let _ = fs::remove_file(new);
        }
        if let Some(taken) = self.taken {
            let _lock = lock_folder(&self.path);
            let found = fs::symlink_metadata(&self.path);
            if found.is_ok_and(|found| (found.dev(), found.ino()) == taken) {
                let _ = fs::remove_file(&self.path);
            }
        }
        if let Some(alias) = &self.alias {
            let _ = fs::remove_file(alias);
        }
    }
}

/// The lock that is held while a name is checked and then taken. If the folder cannot be locked, or is locked by
/// somebody else for long, the server continues without the lock.
fn lock_folder(path: &Path) -> Option<Flock<File>> {
    let mut folder = File::open(path.parent()?).ok()?;
    let begun = Instant::now();
    while begun.elapsed() < PROMPT {
        folder = match Flock::lock(folder, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Some(lock),
            Err((folder, Errno::EWOULDBLOCK)) => folder,
            Err(_) => return None,
        };
        thread::sleep(Duration::from_millis(5));
    }
    None
}

/// Whether the name may be taken. The error says which server has it.
fn may_take(path: &Path, predecessor: Option<i32>) -> io::Result<()> {
    let refused = |why: String| Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    match fs::symlink_metadata(path) {
        Err(_) => return Ok(()),
        Ok(found) if !found.file_type().is_socket() => {
            return refused("there is a file of that name that is not a socket".to_owned());
        }
        Ok(_) => {}
    }
    let Some(owner) = owner(path)? else {
        return Ok(());
    };
    if predecessor == Some(owner) || is_ending(path) {
        return Ok(());
    }
    refused(format!("the server with the process id {owner} uses it"))
}

/// The process that listens on a socket of this name; `None` if nobody does.
fn owner(path: &Path) -> io::Result<Option<i32>> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // A server whose queue is full, because it is stopped, still exists.
    socket.set_nonblocking(true)?;
    match socket.connect(&SockAddr::unix(path)?) {
        Ok(()) => Ok(Some(getsockopt(&socket, sockopt::PeerCredentials)?.pid())),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Some(0)),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether that server drains, and has closed its listeners: a restarted server need not wait for its end.
fn is_ending(path: &Path) -> bool {
    ask(path, Request::Status, PROMPT).is_ok_and(|status| status["ending"] == true)
}

pub(crate) fn outcome(result: Result<(), String>) -> Value {
    match result {
        Ok(()) => json!({"ok": true}),
        Err(error) => json!({"ok": false, "error": error}),
    }
}

/// Sends a request to the master behind `path`. An error means that there is none.
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
