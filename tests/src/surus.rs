//! The server under test.

use std::env;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use command_fds::{CommandFdExt, FdMapping};
use nix::sys::signal::Signal;

use crate::ports;
use crate::process::Process;
use crate::temp::TempDir;
use crate::waiting::wait_for;

/// How long workers may take to answer the master.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the server has its control socket, below its folder.
pub const CONTROL: &str = "surus.run";

/// What PHP has of its user, whatever the server has.
const OF_USER: [&str; 3] = ["HOME", "USER", "LOGNAME"];

/// How an application runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Classic,
    Coroutine,
    /// As classic, in processes that have one request at a time.
    Process,
    /// As coroutine, in isolates that are put back after each request.
    Snapshot,
}

impl Mode {
    pub const ALL: [Self; 3] = [Self::Classic, Self::Coroutine, Self::Process];
    /// In which requests share a process.
    pub const ISOLATES: [Self; 2] = [Self::Classic, Self::Coroutine];

    pub fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Coroutine => "coroutine",
            Self::Process => "process",
            Self::Snapshot => "snapshot",
        }
    }

    /// What is served of a folder that has a script for each way to run.
    pub fn script(self, folder: &Path) -> PathBuf {
        folder.join(match self {
            Self::Coroutine | Self::Snapshot => "app.php",
            Self::Classic | Self::Process => "index.php",
        })
    }
}

/// A server about to start: one worker unless told otherwise.
#[derive(Debug)]
pub struct Options {
    arguments: Vec<OsString>,
    config: Option<String>,
    workers: usize,
    variables: Vec<(String, String)>,
    socket: Option<OwnedFd>,
    wrapper: Vec<OsString>,
    output: Option<OwnedFd>,
    errors: Option<OwnedFd>,
}

impl Options {
    /// Its standard output is this, not a file.
    pub fn output(mut self, to: impl Into<OwnedFd>) -> Self {
        self.output = Some(to.into());
        self
    }

    /// Its standard error is.
    pub fn errors(mut self, to: impl Into<OwnedFd>) -> Self {
        self.errors = Some(to.into());
        self
    }

    /// Another program that runs the server, with its arguments.
    pub fn under(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(OsString::from).collect();
        self
    }

    pub fn mode(self, mode: Mode) -> Self {
        self.argument("--mode").argument(mode.name())
    }

    /// Shows errors to clients.
    pub fn dev(self) -> Self {
        self.argument("--dev")
    }

    /// The text of a configuration file.
    pub fn config(mut self, text: &str) -> Self {
        self.config = Some(text.to_owned());
        self
    }

    /// In all modes, a client that disconnects cancels its request.
    pub fn cancel_on_disconnect(self) -> Self {
        self.argument("--set").argument("cancel_on_disconnect=true")
    }

    pub fn workers(mut self, count: usize) -> Self {
        self.workers = count;
        self
    }

    /// A variable of its environment, and of PHP's.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Starts what cannot be served, waits for its end, and returns what it has said.
    pub fn boot_error(self) -> String {
        let control = TempDir::new("boot");
        let mut command = Command::new(binary());
        command
            .arg("serve")
            .args(&self.arguments)
            .env(PASSED_ON, passed_on(&self.variables))
            .envs(self.variables)
            .env("RUNTIME_DIRECTORY", control.path())
            .args(["--workers", "1", "--listen", "127.0.0.1:0"]);
        if let Some(text) = &self.config {
            command
                .arg("--config")
                .arg(control.file("surus.toml", text));
        }
        let output = command.output().expect("the server can be started");
        assert_eq!(output.status.code(), Some(1), "it has booted");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// A listening socket that it inherits as descriptor 3 (`LISTEN_FDS`).
    pub fn socket(mut self, socket: OwnedFd) -> Self {
        self.socket = Some(socket);
        self
    }

    /// Starts it and waits until it is ready.
    pub fn start(self) -> Surus {
        let folder = TempDir::new("surus");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()));
        let mut words = self.wrapper.clone();
        words.push(binary().into());
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .arg("serve")
            .args(&self.arguments)
            .args(["--workers", &self.workers.to_string()])
            .args(["--listen", &address.to_string()])
            .env_remove("SURUS_SOAK")
            .env(PASSED_ON, passed_on(&self.variables))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env("TMPDIR", folder.path())
            .env("RUNTIME_DIRECTORY", folder.path().join(CONTROL))
            .env("STATE_DIRECTORY", folder.path().join("state"));
        if let Some(parent_fd) = self.socket {
            command.env("LISTEN_FDS", "1");
            let mapping = FdMapping {
                parent_fd,
                child_fd: 3,
            };
            command
                .fd_mappings(vec![mapping])
                .expect("pass a socket on");
        }
        if let Some(text) = &self.config {
            command.arg("--config").arg(folder.file("surus.toml", text));
        }
        let speaks = self.output.is_none();
        let outputs = [self.output, self.errors];
        let mut process =
            Process::start_with("surus", command, Signal::SIGKILL, folder.path(), outputs);
        process.wait_until(|process| match speaks {
            true => process
                .stdout()
                .lines()
                .any(|line| line.contains("surus ready on")),
            // It cannot say so.
            false => TcpStream::connect(address).is_ok(),
        });
        Surus {
            address,
            process,
            folder,
        }
    }
}

/// A running server. Its temporary files go to a folder of its own.
#[derive(Debug)]
pub struct Surus {
    address: SocketAddr,
    process: Process,
    folder: TempDir,
}

impl Surus {
    /// Will serve `path`, a script or a folder, with one worker unless told otherwise.
    pub fn serve(path: &Path) -> Options {
        Options {
            arguments: vec![path.into()],
            config: None,
            workers: 1,
            variables: Vec::new(),
            socket: None,
            wrapper: Vec::new(),
            output: None,
            errors: None,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// The log so far.
    ///
    /// The server writes it a little later than things happen: it is read once it has stopped growing.
    pub fn log(&self) -> String {
        let mut log = self.process.stderr();
        for _ in 0..50 {
            sleep(Duration::from_millis(100));
            let now = self.process.stderr();
            if now.len() == log.len() {
                break;
            }
            log = now;
        }
        log
    }

    /// What a command such as `surus reload` makes of this server: its exit code, and what it wrote to both outputs.
    pub fn command(&self, arguments: &[&str]) -> (Option<i32>, String) {
        run(arguments, &self.folder.path().join(CONTROL))
    }

    /// A command without a server.
    pub fn run(arguments: &[&str]) -> (Option<i32>, String) {
        let nowhere = TempDir::new("nowhere");
        run(arguments, nowhere.path())
    }

    /// PHP's version as a number: 80236.
    pub fn php() -> u32 {
        let folder = TempDir::new("version");
        let script = folder.file("version.php", "<?php echo PHP_VERSION_ID;");
        let (code, text) = Self::run(&["php", script.to_str().expect("a path in UTF-8")]);
        assert_eq!(code, Some(0), "{text}");
        text.parse().expect("a number")
    }

    /// `surus status --json`, once every worker has answered: who asks is told after 0.3 s without those that are slow,
    /// which they may be where the machine is.
    pub fn status(&self) -> serde_json::Value {
        let begun = Instant::now();
        loop {
            let (code, text) = self.command(&["status", "--json"]);
            assert_eq!(code, Some(0), "{text}");
            let status: serde_json::Value = serde_json::from_str(&text).expect("a status in JSON");
            let mut workers = status["workers"].as_array().into_iter().flatten();
            if workers.all(|worker| worker["state"] != "stuck") || begun.elapsed() > PATIENCE {
                return status;
            }
        }
    }

    /// Waits until the first worker has so many requests in flight.
    ///
    /// # Panics
    /// If it has not for a minute.
    pub fn wait_for_in_flight(&self, count: u64) {
        wait_for(&format!("there are not {count} requests in flight"), || {
            self.status()["workers"][0]["in_flight"] == count
        });
    }

    /// The process ids of the workers that serve.
    pub fn workers(&self) -> Vec<i32> {
        let status = self.status();
        let workers = status["workers"].as_array().expect("a list of workers");
        workers
            .iter()
            .filter(|worker| worker["state"] == "ready")
            .map(|worker| worker["pid"].as_i64().expect("a process id") as i32)
            .collect()
    }

    /// Where the server and its scripts put temporary files (`TMPDIR`).
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// The server's environment is not PHP's: this says what of it is.
const PASSED_ON: &str = "SURUS_ENV";

/// The folder for temporary files, and what the test has set.
fn passed_on(variables: &[(String, String)]) -> String {
    let names = variables.iter().map(|(name, _)| name.as_str());
    let names = names.filter(|name| !name.starts_with("SURUS_") && !OF_USER.contains(name));
    let mut names: Vec<&str> = names.chain(["TMPDIR"]).collect();
    names.sort_unstable();
    names.dedup();
    let entries: Vec<String> = names
        .iter()
        .map(|name| format!("{name} = \"${name}\""))
        .collect();
    format!("{{ {} }}", entries.join(", "))
}

fn run(arguments: &[&str], control: &Path) -> (Option<i32>, String) {
    let output = Command::new(binary())
        .args(arguments)
        .env_remove("SURUS_SOAK")
        .env("RUNTIME_DIRECTORY", control)
        .output()
        .expect("run a command");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    (output.status.code(), text)
}

/// `SURUS_BIN`, or what `cargo build --release` makes. No binary is a failure: nothing is skipped.
pub fn binary() -> PathBuf {
    let path = env::var_os("SURUS_BIN").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/surus"),
        PathBuf::from,
    );
    assert!(
        path.exists(),
        "no server at {}: build it with cargo build --release",
        path.display()
    );
    path
}
