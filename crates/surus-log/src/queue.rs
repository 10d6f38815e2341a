//! The lines of one log that wait to be written, and those that were dropped.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::target::Target;
use crate::{dropped, Log};

/// An empty buffer that is larger is given back.
const KEPT: usize = 64 * 1024;

pub(crate) struct Queue {
    pub(crate) target: Option<Arc<Target>>,
    /// Of a file.
    pub(crate) path: Option<PathBuf>,
    /// Whole lines, but for the first one, of which a part may have been written.
    pub(crate) waiting: Vec<u8>,
    edge: Edge,
    lost: Lost,
    /// Whose lines these are.
    pub(crate) owner: u32,
    pub(crate) has_thread: bool,
    /// The thread waits for lines.
    pub(crate) is_idle: bool,
}

/// How what was written last ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    /// With a line.
    Whole,
    /// In a line, whose rest comes first of what waits.
    Begun,
    /// In a line whose rest was dropped.
    Torn,
}

/// Lines that were dropped and of which no line tells yet.
struct Lost {
    lines: u64,
    /// So many bytes that wait came before them.
    behind: usize,
    why: Option<io::Error>,
    /// It is told as soon as nothing waits before it; else with the next line.
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

/// What is written at a time.
pub(crate) struct Chunk {
    pub(crate) bytes: Vec<u8>,
    /// Bytes of it that have not waited: the end of a torn line, and the line that says what was dropped.
    added: usize,
    /// Lines of which it says that they were dropped.
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

    /// The lines of another process are that one's.
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

    /// What is written next: as many lines as fit, one at least. They go on waiting until they are written.
    pub(crate) fn chunk(&self, most: usize, log: Log) -> Chunk {
        let (mut bytes, mut tells) = (Vec::new(), 0);
        if self.edge == Edge::Torn {
            bytes.push(b'\n');
        }
        // Programs read the access log, and do not expect it there.
        if self.edge != Edge::Begun && self.lost.is_due() && log == Log::Error {
            let message = self.lost.message(log);
            let line = crate::line::own(&format_args!("{message}"), self.path.is_some());
            bytes.extend_from_slice(line.as_bytes());
            tells = self.lost.lines;
        }
        let added = bytes.len();
        // Up to where lines are missing.
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

    /// Notes what has become of a chunk.
    pub(crate) fn note(&mut self, log: Log, chunk: &Chunk, written: io::Result<usize>) {
        let error = match written {
            Ok(0) => Some(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                let is_whole = chunk.bytes[count - 1] == b'\n';
                if count < chunk.added {
                    // It tells it again, in a line of its own.
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
        // What is waited for in vain should not stay.
        if self.waiting.is_empty() && self.waiting.capacity() > KEPT {
            self.waiting = Vec::new();
        }
    }

    /// There is no room for these.
    pub(crate) fn lose_newest(&mut self, log: Log, lines: &[u8]) {
        let lines = count(lines);
        dropped::count(log, lines);
        if self.lost.lines == 0 {
            self.lost.behind = self.waiting.len();
        }
        self.lost.lines += lines;
        self.lost.at_once = true;
    }

    /// There is nothing to write to, or no time.
    pub(crate) fn lose_all(&mut self, log: Log) {
        dropped::count(log, count(&self.waiting));
        self.waiting.clear();
        self.lost = Lost::NOTHING;
    }
}

pub(crate) fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|&&byte| byte == b'\n').count() as u64
}
