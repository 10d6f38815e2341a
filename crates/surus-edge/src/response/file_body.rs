//! A file as the body of a response.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::{Bytes, BytesMut};

use super::range::Span;
use crate::os::descriptors::lifted;

/// Bytes per read and write.
const CHUNK: u64 = 64 * 1024;

/// An open file, or parts of it, on the way to a client.
///
/// It is read on the edge's own thread, as nginx does by default: files that are served often are in the page cache,
/// and a helper thread costs more than a read from there.
#[derive(Debug)]
pub struct FileBody {
    file: File,
    segments: VecDeque<Segment>,
    remaining: u64,
}

/// A piece of the body.
#[derive(Debug)]
pub(crate) enum Segment {
    /// The head of a part in a multipart response.
    Text(Bytes),
    Part(Span),
}

impl FileBody {
    pub(crate) fn new(file: File, segments: VecDeque<Segment>) -> Self {
        let length = |segment: &Segment| match segment {
            Segment::Text(text) => text.len() as u64,
            Segment::Part(span) => span.len(),
        };
        let remaining = segments.iter().map(length).sum();
        FileBody {
            // A short file is read at once and closed.
            file: if remaining > CHUNK {
                lifted(file)
            } else {
                file
            },
            remaining,
            segments,
        }
    }

    pub(crate) fn remaining(&self) -> u64 {
        self.remaining
    }

    /// The file and the part of it that is sent, if that is the whole body.
    pub(crate) fn part(&self) -> Option<(&File, Span)> {
        match self.segments.front() {
            Some(Segment::Part(span)) if self.segments.len() == 1 => Some((&self.file, *span)),
            _ => None,
        }
    }

    pub(crate) fn next_chunk(&mut self) -> Option<io::Result<Bytes>> {
        let chunk = match self.segments.pop_front()? {
            Segment::Text(text) => Ok(text),
            Segment::Part(span) => self.read(span),
        };
        match &chunk {
            Ok(bytes) => self.remaining -= bytes.len() as u64,
            Err(_) => {
                self.segments.clear();
                self.remaining = 0;
            }
        }
        Some(chunk)
    }

    fn read(&mut self, span: Span) -> io::Result<Bytes> {
        let mut chunk = BytesMut::zeroed(span.len().min(CHUNK) as usize);
        let count = match self.file.read_at(&mut chunk, span.start)? {
            // Shorter than when it was opened: the announced length cannot be reached, so the response is cut off.
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => count,
        };
        chunk.truncate(count);
        let start = span.start + count as u64;
        if start < span.end {
            self.segments
                .push_front(Segment::Part(Span { start, ..span }));
        }
        Ok(chunk.freeze())
    }
}
