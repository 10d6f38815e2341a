//! The control socket: a line of JSON in, a line of JSON out, only for the user that the master runs as.
//!
//! Its name is one server's: nobody takes it from a server that lives, but for its successor.

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
/// The kernel's: `sun_path` with its end.
const LONGEST_NAME: usize = 107;
/// A client that says nothing for so long is closed, unless it waits for an answer.
const SILENCE: Duration = Duration::from_secs(10);
/// How long a server that has the name may take to say whether it ends, and another one to take a name.
const PROMPT: Duration = Duration::from_secs(5);

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

/// Where a master has its control socket.
#[derive(Clone, Debug)]
pub struct Door {
    /// The socket.
    pub path: PathBuf,
    /// Another name for it: a link by the process id, for those who do not know the path.
    pub alias: Option<PathBuf>,
    /// Without it the server does not start: it was asked for.
    pub required: bool,
}

#[derive(Debug)]
pub(crate) struct Control {
    path: PathBuf,
    alias: Option<PathBuf>,
    /// Device and inode of the name, once it is taken: it may be another server's later.
    taken: Option<(u64, u64)>,
    /// What it is called until it gets its name.
    unpublished: Option<PathBuf>,
    listener: UnixListener,
    clients: Clients<UnixStream, Request>,
    /// The master that is replaced: its name may be taken from it.
    predecessor: Option<i32>,
}

impl Control {
    /// Binds to a temporary name, for [`Control::publish`].
    ///
    /// # Errors
    /// The name is another server's, or cannot be made.
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

    /// Takes its name: a socket that nobody serves any more is replaced in one step, and so is the predecessor's.
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
            // For convenience: without it the socket is found by its own name.
            let made = alias.parent().map(fs::create_dir_all);
            let _ = fs::remove_file(&alias);
            if made.is_some_and(|made| made.is_ok()) && symlink(&self.path, &alias).is_ok() {
                self.alias = Some(alias);
            }
        }
        Ok(())
    }

    /// A successor has renamed its own socket over this one, or a worker has it after the fork.
    pub(crate) fn leave_behind(&mut self) {
        self.taken = None;
        self.unpublished = None;
        if let Some(alias) = self.alias.take() {
            let _ = fs::remove_file(alias);
        }
    }

    /// In a worker after the fork: neither the socket nor its names are the worker's.
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

    /// Accepts, reads, and returns what is newly asked for.
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

/// Held while a name is checked and then taken. A folder that cannot be locked, or that
/// somebody else holds for long, does not keep a server from its socket.
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

/// An error says whose the name is.
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
    // One whose queue is full, since it has come to a stop, lives.
    socket.set_nonblocking(true)?;
    match socket.connect(&SockAddr::unix(path)?) {
        Ok(()) => Ok(Some(getsockopt(&socket, sockopt::PeerCredentials)?.pid())),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Some(0)),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// It has its last requests, and has let go of its port: a server that is started again does not wait for that.
fn is_ending(path: &Path) -> bool {
    ask(path, Request::Status, PROMPT).is_ok_and(|status| status["ending"] == true)
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
