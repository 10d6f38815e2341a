//! The waiting lines of one log, and the number of those that were dropped.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::target::Target;
use crate::{dropped, Log};

/// An empty buffer that is larger than this is freed.
const KEPT: usize = 64 * 1024;

pub(crate) struct Queue {
    pub(crate) target: Option<Arc<Target>>,
    /// The path, if the log is a file.
    pub(crate) path: Option<PathBuf>,
    /// Complete lines, except that a part of the first one may have been written.
    pub(crate) waiting: Vec<u8>,
    edge: Edge,
    lost: Lost,
    /// The process id of the owner of these lines.
    pub(crate) owner: u32,
    pub(crate) has_thread: bool,
    /// The thread waits for lines.
    pub(crate) is_idle: bool,
}

/// How the last write has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    /// At the end of a line.
    Whole,
    /// Inside a line, whose rest is at the beginning of the waiting bytes.
    Begun,
    /// Inside a line whose rest was dropped.
    Torn,
}

/// Dropped lines that were not reported in the log yet.
struct Lost {
    lines: u64,
    /// The number of waiting bytes before them.
    behind: usize,
    why: Option<io::Error>,
    /// Report them as soon as the bytes before them are written; otherwise with the next line.
    at_once: bool,
}

impl Lost {
    const NOTHING: Lost = Lost {
        lines: 0,
        behind: 0,
        why: None,
        at_once: false,
    };

    fn is_due(&self) -> bool {
        self.lines > 0 && self.behind == 0
    }

    fn message(&self, log: Log) -> String {
        let lines = self.lines;
        let s = if lines == 1 { " was" } else { "s were" };
        let why = match &self.why {
            Some(error) => error.to_string(),
            None => "nobody has read them in time".to_owned(),
        };
        format!("{lines} line{s} dropped from {}: {why}", log.name())
    }
}

/// Bytes that are written together.
pub(crate) struct Chunk {
    pub(crate) bytes: Vec<u8>,
    /// Bytes in it that are not from the waiting ones: the end of a torn line, and the report about dropped lines.
    added: usize,
    /// The number of dropped lines that it reports.
    tells: u64,
}

impl Queue {
    pub(crate) const fn new() -> Self {
        Queue {
            target: None,
            path: None,
            waiting: Vec::new(),
            edge: Edge::Whole,
            lost: Lost::NOTHING,
            owner: 0,
            has_thread: false,
            is_idle: false,
        }
    }

    /// After a fork: the lines of the other process are left to that one.
    pub(crate) fn forked(&mut self, owner: u32) {
        self.owner = owner;
        self.has_thread = false;
        self.waiting.clear();
        self.edge = Edge::Whole;
        self.lost = Lost::NOTHING;
    }

    pub(crate) fn target(&mut self, log: Log) -> Option<Arc<Target>> {
        if self.target.is_none() {
            self.target = Target::standard(log).ok().map(Arc::new);
        }
        self.target.clone()
    }

    pub(crate) fn has_work(&self, log: Log) -> bool {
        let tells = log == Log::Error && self.lost.at_once && self.lost.is_due();
        !self.waiting.is_empty() || tells
    }

    /// The next chunk: as many lines as fit, but at least one. They stay in the queue until they are written.
    pub(crate) fn chunk(&self, most: usize, log: Log) -> Chunk {
        let (mut bytes, mut tells) = (Vec::new(), 0);
        if self.edge == Edge::Torn {
            bytes.push(b'\n');
        }
        // Not in the access log: programs read it, and do not expect such a line.
        if self.edge != Edge::Begun && self.lost.is_due() && log == Log::Error {
            let message = self.lost.message(log);
            let line = crate::line::own(&format_args!("{message}"), self.path.is_some());
            bytes.extend_from_slice(line.as_bytes());
            tells = self.lost.lines;
        }
        let added = bytes.len();
        // Up to the position of dropped lines.
        let end = match self.lost.lines {
            1.. if self.lost.behind > 0 => self.lost.behind.min(self.waiting.len()),
            _ => self.waiting.len(),
        };
        let waiting = &self.waiting[..end];
        let fits = &waiting[..end.min(most.saturating_sub(added))];
        let end = match fits.iter().rposition(|&byte| byte == b'\n') {
            Some(last) => last + 1,
            None => {
                let first = waiting.iter().position(|&byte| byte == b'\n');
                first.map_or(end, |first| first + 1)
            }
        };
        bytes.extend_from_slice(&waiting[..end]);
        Chunk {
            bytes,
            added,
            tells,
        }
    }

    /// Processes the result of writing a chunk.
    pub(crate) fn note(&mut self, log: Log, chunk: &Chunk, written: io::Result<usize>) {
        let error = match written {
            Ok(0) => Some(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                let is_whole = chunk.bytes[count - 1] == b'\n';
                if count < chunk.added {
                    // The report was not written completely: it is repeated, on a new line.
                    self.edge = if is_whole { Edge::Whole } else { Edge::Torn };
                    return;
                }
                self.edge = if is_whole { Edge::Whole } else { Edge::Begun };
                self.told(chunk.tells);
                self.remove(count - chunk.added);
                if log != Log::Error && self.lost.is_due() {
                    crate::say!("{}", self.lost.message(log));
                    self.lost = Lost::NOTHING;
                }
                return;
            }
            Err(error) => Some(error),
        };
        if self.edge == Edge::Begun {
            self.edge = Edge::Torn;
        }
        let lines = count(&chunk.bytes[chunk.added..]);
        self.remove(chunk.bytes.len() - chunk.added);
        dropped::count(log, lines);
        self.lost.lines += lines;
        self.lost.behind = 0;
        self.lost.at_once = false;
        self.lost.why = error;
    }

    fn told(&mut self, lines: u64) {
        if lines > 0 {
            self.lost.lines -= lines.min(self.lost.lines);
            if self.lost.lines == 0 {
                self.lost = Lost::NOTHING;
            }
        }
    }

    fn remove(&mut self, bytes: usize) {
        self.waiting.drain(..bytes.min(self.waiting.len()));
        self.lost.behind = self.lost.behind.saturating_sub(bytes);
        // Frees a large buffer that is no longer needed.
        if self.waiting.is_empty() && self.waiting.capacity() > KEPT {
            self.waiting = Vec::new();
        }
    }

    /// Drops these new lines: there is no room for them.
    pub(crate) fn lose_newest(&mut self, log: Log, lines: &[u8]) {
        let lines = count(lines);
        dropped::count(log, lines);
        if self.lost.lines == 0 {
            self.lost.behind = self.waiting.len();
        }
        self.lost.lines += lines;
        self.lost.at_once = true;
    }

    /// Drops all waiting lines: there is nothing to write to, or no time left.
    pub(crate) fn lose_all(&mut self, log: Log) {
        dropped::count(log, count(&self.waiting));
        self.waiting.clear();
        self.lost = Lost::NOTHING;
    }
}

pub(crate) fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|&&byte| byte == b'\n').count() as u64
}
