//! `surus status`, `reload`, `upgrade`, `stop`: find the server, send a request, print the answer.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use surus_master::{ask, Address, Door, Request};

use crate::cli::{ControlArgs, StatusArgs, TopArgs};
use crate::environment::path_in as variable;
use crate::{failed, misconfigured, print, queue, table};

/// Timeout of an upgrade, which takes as long as the application needs to boot. A reload is bounded by the server's
/// `boot_timeout`, so this is for a server that is stopped.
const BOOT: Duration = Duration::from_secs(15 * 60);
/// How long a reload may take before the command prints what it waits for, and how often it checks that.
const QUIET: Duration = Duration::from_secs(2);
const PROMPT: Duration = Duration::from_secs(5);

/// The folder for the control sockets of this user's servers.
pub(crate) fn folder() -> PathBuf {
    if let Some(folder) = variable("RUNTIME_DIRECTORY") {
        return folder;
    }
    let user = nix::unistd::Uid::effective();
    if user.is_root() {
        return PathBuf::from("/run/surus");
    }
    match variable("XDG_RUNTIME_DIR") {
        Some(folder) => folder.join("surus"),
        None => std::env::temp_dir().join(format!("surus-{user}")),
    }
}

/// The location of this server's socket: the configured one, with a link in the folder where commands search for
/// servers, or in that folder. Removes sockets that killed servers have left behind.
pub(crate) fn door(chosen: Option<&Path>) -> Door {
    let folder = folder();
    for socket in sockets(&folder) {
        let gone = std::os::unix::net::UnixStream::connect(&socket).is_err_and(|error| {
            // A link may have lost its target.
            matches!(
                error.kind(),
                io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound
            )
        });
        if gone {
            let _ = fs::remove_file(socket);
        }
    }
    let own = folder.join(format!("{}.sock", std::process::id()));
    match chosen {
        Some(path) => Door {
            path: path.to_owned(),
            alias: Some(own),
            required: true,
        },
        None => Door {
            path: own,
            alias: None,
            required: false,
        },
    }
}

fn sockets(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "sock")
        })
        .collect();
    found.sort();
    found
}

/// Finds the server that the arguments select.
pub(crate) fn find(arguments: &ControlArgs) -> Result<PathBuf, String> {
    if let Some(socket) = &arguments.control {
        return Ok(socket.clone());
    }
    let folder = folder();
    let missing = |what: &str| {
        let folder = folder.display();
        format!(
            "no server{what} was found in {folder}: is it another user's, or started with another RUNTIME_DIRECTORY? \
             --control takes the path of its socket"
        )
    };
    if let Some(pid) = arguments.pid {
        let socket = folder.join(format!("{pid}.sock"));
        return match socket.try_exists() {
            Ok(false) => Err(missing(&format!(" with the process id {pid}"))),
            _ => Ok(socket),
        };
    }
    let wanted = arguments.path.as_ref().map(|path| full(path));
    let mut found: Vec<(Option<i64>, String, PathBuf)> = Vec::new();
    let mut replaced = Vec::new();
    for socket in sockets(&folder) {
        let Ok(status) = ask(&socket, Request::Status, PROMPT) else {
            continue;
        };
        let text = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
        let names = ["path", "config"].map(|key| PathBuf::from(text(key)));
        let is_meant = |wanted: &PathBuf| {
            let mut names = names.iter();
            names.any(|name| name.starts_with(wanted) || full(name) == *wanted)
        };
        if !wanted.as_ref().is_none_or(is_meant) {
            continue;
        }
        replaced.extend(status["predecessor"].as_i64());
        let pid = status["pid"].as_i64();
        // The links of a server and of its predecessor lead to the same socket for a moment.
        if !found.iter().any(|(other, ..)| *other == pid) {
            found.push((pid, described(&status), socket));
        }
    }
    // Without servers that drain after an upgrade, and those that have ended since they were asked.
    found.retain(|(pid, _, socket)| {
        let is_replaced = pid.is_some_and(|pid| replaced.contains(&pid));
        !is_replaced && socket.exists()
    });
    match &found[..] {
        [(_, _, socket)] => Ok(socket.clone()),
        [] => Err(missing(&match &arguments.path {
            Some(path) => format!(" of {}", path.display()),
            None => String::new(),
        })),
        several => {
            let names = several.iter().map(|(pid, what, _)| {
                let pid = pid.unwrap_or_default();
                format!("\n  --pid {pid}  {what}")
            });
            let names: String = names.collect();
            Err(format!("several servers run; which one is meant?{names}"))
        }
    }
}

/// Describes a server, so that it can be distinguished from others, also of the same site.
fn described(status: &Value) -> String {
    let listen = status["listen"].as_array().into_iter().flatten();
    let listen: Vec<&str> = listen.filter_map(Value::as_str).collect();
    let path = status["path"].as_str().unwrap_or_default();
    let config = status["config"].as_str();
    let config = config.map_or_else(String::new, |config| format!("  ({config})"));
    format!("{}  {path}{config}", listen.join(", "))
}

/// Whether a running server of this site, which would be replaced, listens on this address.
pub(crate) fn listens(chosen: Option<&Path>, site: &Path, address: &Address) -> bool {
    let text = Value::from(address.to_string());
    let sockets = sockets(&folder());
    let mut all = chosen
        .into_iter()
        .chain(sockets.iter().map(PathBuf::as_path));
    all.any(|socket| {
        let Ok(status) = ask(socket, Request::Status, PROMPT) else {
            return false;
        };
        let listening = status["listen"].as_array().into_iter().flatten();
        let source = status["path"].as_str().map(Path::new);
        source == Some(site) && listening.chain([&status["admin"]]).any(|it| *it == text)
    })
}

fn full(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

pub(crate) fn reload(arguments: &ControlArgs) -> ExitCode {
    command(arguments, Request::Reload, "reloaded", reload_told)
}

pub(crate) fn upgrade(arguments: &ControlArgs) -> ExitCode {
    command(
        arguments,
        Request::Upgrade,
        "the new binary has taken over",
        at_once,
    )
}

pub(crate) fn stop(arguments: &ControlArgs) -> ExitCode {
    command(arguments, Request::Stop, "stopping", at_once)
}

/// Sends a request and waits for the answer.
fn at_once(socket: &Path, request: Request) -> io::Result<Value> {
    ask(socket, request, BOOT)
}

/// Sends a request, and prints what the server waits for meanwhile. The master bounds each step by `boot_timeout` or
/// less, so this waits as long as the master answers.
fn reload_told(socket: &Path, request: Request) -> io::Result<Value> {
    let (answered, answer) = mpsc::channel();
    let path = socket.to_owned();
    // Ends with the program.
    thread::spawn(move || _ = answered.send(ask(&path, request, Duration::MAX)));
    let mut told = String::new();
    loop {
        match answer.recv_timeout(QUIET) {
            Ok(answer) => return answer,
            Err(RecvTimeoutError::Disconnected) => return Err(io::ErrorKind::BrokenPipe.into()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let status = match ask(socket, Request::Status, PROMPT) {
            Ok(status) => status,
            // It may be too busy to answer, or have ended after it sent the result.
            Err(error) => match answer.recv_timeout(PROMPT) {
                Ok(answer) => return answer,
                Err(_) => return Err(error),
            },
        };
        let reloads = &status["reloads"];
        if let Some(what) = reloads["waits_for"].as_str().filter(|what| *what != told) {
            let left = reloads["gives_up_in_s"].as_f64().unwrap_or(0.0);
            surus_log::say!(
                "waiting for {what}, for at most {left:.0} s more (boot_timeout); \
                 Ctrl-C ends the wait, not the reload"
            );
            told = what.to_owned();
        }
    }
}

fn command(
    arguments: &ControlArgs,
    request: Request,
    done: &str,
    ask: impl Fn(&Path, Request) -> io::Result<Value>,
) -> ExitCode {
    let socket = match find(arguments) {
        Ok(socket) => socket,
        Err(error) => return misconfigured(&error),
    };
    match ask(&socket, request) {
        Ok(answer) if answer["ok"] == true => {
            print(&format!("{done}\n"));
            ExitCode::SUCCESS
        }
        Ok(answer) => failed(&answer["error"].as_str().unwrap_or("the server refused")),
        Err(error) => unreachable(&socket, &error),
    }
}

fn unreachable(socket: &Path, error: &io::Error) -> ExitCode {
    let why = match error.kind() {
        io::ErrorKind::NotFound => {
            "no server has its control socket here: see `control` in surus.toml, or find it with --pid".to_owned()
        }
        io::ErrorKind::PermissionDenied => format!(
            "this socket is not permitted to user {}: only the server's own user and root may use it",
            nix::unistd::Uid::effective()
        ),
        io::ErrorKind::ConnectionRefused => {
            "nobody listens here: the server has ended, or this is no control socket".to_owned()
        }
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            "there is no answer: the server has come to a stop, or this is no control socket".to_owned()
        }
        _ => error.to_string(),
    };
    misconfigured(&format!("{}: {why}", socket.display()))
}

/// The status of a server, with its queues: the process that has the jobs knows them.
fn seen(socket: &Path) -> io::Result<Value> {
    let mut status = ask(socket, Request::Status, PROMPT)?;
    if let Some(queues) = queue::counts(&status) {
        status["queues"] = queues;
    }
    Ok(status)
}

pub(crate) fn status(arguments: &StatusArgs) -> ExitCode {
    let socket = match find(&arguments.server) {
        Ok(socket) => socket,
        Err(error) => return misconfigured(&error),
    };
    match seen(&socket) {
        Ok(status) if arguments.json => {
            print(&format!("{}\n", pretty(&status)));
            ExitCode::SUCCESS
        }
        Ok(status) => {
            print(&table::status(&status));
            ExitCode::SUCCESS
        }
        Err(error) => unreachable(&socket, &error),
    }
}

pub(crate) fn top(arguments: &TopArgs) -> ExitCode {
    let mut socket = match find(&arguments.server) {
        Ok(socket) => socket,
        Err(error) => return misconfigured(&error),
    };
    let clear = if std::io::stdout().is_terminal() {
        "\x1b[H\x1b[J"
    } else {
        ""
    };
    let pause = arguments.every;
    let mut before: Option<(Instant, Value)> = None;
    for look in 1u64.. {
        let status = match seen(&socket) {
            Ok(status) => status,
            // An upgrade changes the process id, and so the path of the socket.
            Err(error) => match find(&arguments.server) {
                Ok(found) if found != socket => {
                    socket = found;
                    continue;
                }
                _ => return unreachable(&socket, &error),
            },
        };
        let now = Instant::now();
        let rate = before
            .as_ref()
            .map(|(then, status)| (status, now.duration_since(*then)));
        print(&format!("{clear}{}\n", table::top(&status, rate)));
        before = Some((now, status));
        if arguments.count.is_some_and(|count| look >= count) {
            break;
        }
        std::thread::sleep(pause);
    }
    ExitCode::SUCCESS
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
