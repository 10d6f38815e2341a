//! Writes the lines of a server's logs. Whatever is at the other end (a full disk, a closed pipe, a pipe that nobody
//! reads, a stopped terminal), logging never blocks or ends anything: lines wait in bounded memory, and those that do
//! not fit are dropped and counted.
//!
//! - [`sink`]: one log, and who writes its lines; [`queue`]: the waiting lines
//! - [`target`]: where lines are written: standard output, standard error or a file
//! - [`mod@line`]: the format of the server's own lines; [`clock`]: its time
//! - [`mod@dropped`]: counts dropped lines, in memory that all processes of a server share
//!
//! ```text
//! command line   the caller writes, and waits
//! master         the caller writes what it can at once, the rest when its loop finds room: no threads (fork)
//! worker         a thread for each log writes
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

mod clock;
mod dropped;
mod line;
mod queue;
mod sink;
mod target;

use std::fmt;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub use clock::{now, Clock};
pub use dropped::{dropped, share, CELLS};
pub use line::{quote, set_format, Format};
use sink::Sink;

/// One of a server's logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// Messages of the server, PHP and the application: standard error, or a file.
    Error,
    /// A line for each request: standard output, or a file.
    Access,
    /// The message that the server is ready: standard output.
    Output,
    /// Standard error, even if the error log is a file: why a server does not start.
    Terminal,
}

static ERROR: Sink = Sink::new(Log::Error);
static ACCESS: Sink = Sink::new(Log::Access);
static OUTPUT: Sink = Sink::new(Log::Output);
static TERMINAL: Sink = Sink::new(Log::Terminal);

fn sinks() -> impl Iterator<Item = &'static Sink> {
    Log::ALL.into_iter().map(Log::sink)
}

impl Log {
    const ALL: [Log; 4] = [Log::Error, Log::Access, Log::Output, Log::Terminal];

    fn sink(self) -> &'static Sink {
        match self {
            Log::Error => &ERROR,
            Log::Access => &ACCESS,
            Log::Output => &OUTPUT,
            Log::Terminal => &TERMINAL,
        }
    }

    /// Its name in error messages.
    fn name(self) -> &'static str {
        match self {
            Log::Error => "the error log",
            Log::Access => "the access log",
            Log::Output => "standard output",
            Log::Terminal => "standard error",
        }
    }
}

/// Who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Writer {
    /// The caller, which waits until the line is written: on the command line.
    Caller = 0,
    /// The caller writes as much as possible at once, and the rest with [`flush`]: in the master.
    Loop = 1,
    /// A thread: in workers and in processes of process mode.
    Thread = 2,
}

static WRITER: AtomicU8 = AtomicU8::new(Writer::Caller as u8);

/// Sets how this process writes. It must not have other threads yet. Lines that its parent has not written yet are left
/// to the parent.
pub fn set_writer(writer: Writer) {
    sink::own_process();
    WRITER.store(writer as u8, Relaxed);
}

fn writer() -> Writer {
    match WRITER.load(Relaxed) {
        0 => Writer::Caller,
        1 => Writer::Loop,
        _ => Writer::Thread,
    }
}

/// Adds complete lines, each with its line feed.
pub fn write(log: Log, lines: &[u8]) {
    log.sink().write(lines, writer());
}

/// Writes a line of the server itself to its error log.
pub fn say(message: fmt::Arguments<'_>) {
    let is_file = ERROR.is_file();
    write(Log::Error, line::own(&message, is_file).as_bytes());
}

/// The same, and also to standard error if the log is a file: whoever starts a server reads that.
pub fn complain(message: fmt::Arguments<'_>) {
    if ERROR.is_file() {
        say(message);
        write(Log::Terminal, line::own(&message, false).as_bytes());
    } else {
        say(message);
    }
}

/// Writes a line to standard output.
pub fn announce(message: fmt::Arguments<'_>, format: Format) {
    write(Log::Output, line::announced(&message, format).as_bytes());
}

/// Writes a line of the server itself to its error log: `say!("reloaded after {time:?}")`.
#[macro_export]
macro_rules! say {
    ($($arguments:tt)*) => { $crate::say(::std::format_args!($($arguments)*)) };
}

/// Writes waiting lines, as many as possible at once. For [`Writer::Loop`].
pub fn flush() {
    for sink in sinks() {
        sink.flush();
    }
}

/// Descriptors to wait for: when one is writable, call [`flush`].
pub fn stuck() -> Vec<OwnedFd> {
    sinks().filter_map(Sink::stuck).collect()
}

/// Writes the waiting lines, for at most this time: the process is about to exit.
pub fn finish(patience: Duration) {
    let deadline = Instant::now() + patience;
    for sink in sinks() {
        sink.finish(deadline);
    }
}

/// How long [`finish`] may take when a process exits.
pub const LAST_LINES: Duration = Duration::from_millis(500);

/// Writes the log to this file from now on, which is created if it does not exist.
///
/// # Errors
/// It cannot be opened.
pub fn open(log: Log, path: &Path) -> io::Result<()> {
    log.sink().open(path)
}

/// Reopens the log files: they may have been renamed. Those that cannot be opened stay as they are, with a message.
/// Returns copies of the new ones, for [`adopt`] in other processes.
pub fn reopen() -> Vec<(Log, OwnedFd)> {
    let mut opened = Vec::new();
    for log in Log::ALL {
        match log.sink().reopen() {
            None => {}
            Some(Ok(file)) => opened.push((log, file)),
            Some(Err((path, error))) => say!(
                "cannot reopen {} {}: {error}; its lines go where they went before",
                log.name(),
                path.display()
            ),
        }
    }
    opened
}

/// Whether it is a file.
pub fn is_file(log: Log) -> bool {
    log.sink().is_file()
}

/// Where its lines go, for a program that this process becomes.
pub fn copy(log: Log) -> Option<OwnedFd> {
    log.sink().copy()
}

/// Continues the log in this file, which another process has opened.
pub fn adopt(log: Log, file: OwnedFd) {
    log.sink().adopt(file);
}

/// A writer of lines for the error log. It never fails.
#[derive(Clone, Copy, Debug, Default)]
pub struct ErrorLog;

impl Write for ErrorLog {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        write(Log::Error, lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
